// Command ha measures Howdah's high availability on real processes, as `make bench-ha` does: how
// long nobody can write in each kind of failure, whether an acknowledged write was ever lost, and
// what an endpoint costs. It prints a table with the median, the least and the greatest of all
// runs.
//
// It runs in a network namespace of its own and needs root.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"howdah/internal/testkit/rig"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "writer" {
		// This is a client on a host that is cut off: see local.go.
		if err := localWriter(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "writer:", err)
			os.Exit(1)
		}
		return
	}
	b := &bench{}
	only := flag.String("run", "", "only the rows whose name matches this regular expression")
	flag.StringVar(&b.binary, "howdah", "bin/howdah", "the program to measure")
	flag.IntVar(&b.runs, "n", 10, "runs of each row")
	flag.DurationVar(&b.busy, "busy", defaultBusy, "how long the machine is kept busy to provoke false alarms")
	flag.BoolVar(&b.keep, "keep", false, "keep the directories of the homes, with all logs")
	flag.StringVar(&b.json, "json", "", "also write all figures to this file")
	flag.Parse()
	if !rig.Isolate() {
		fmt.Fprintln(os.Stderr, "bench-ha needs root: it makes network namespaces")
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	b.only = regexp.MustCompile(*only)
	if err := b.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench-ha:", err)
		os.Exit(1)
	}
}
