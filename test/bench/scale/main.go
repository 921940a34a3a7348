// Command scale measures what a control plane costs with many hosts and databases, as `make
// bench-scale` does. It uses a real control plane, and hosts that only pretend (package fleet),
// each in a process of its own. For each number of instances it prints the time of calls, of a
// change on its way to a host, of a round of the reconciler and of a start. It also prints the
// memory and CPU time of the control plane.
//
// All share the machine. What the hosts need of it slows the control plane down, and is part of the
// figures. But if CPUs are short, the hosts go last, as if they were other machines.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	parts := map[string]func([]string) error{"serve": control, "hosts": pretend}
	if len(os.Args) > 1 && parts[os.Args[1]] != nil {
		exit(parts[os.Args[1]](os.Args[2:]))
		return
	}
	b := &bench{}
	sizes := flag.String("sizes", "100,1000,10000", "numbers of instances; there are a tenth as many hosts")
	flag.IntVar(&b.calls, "n", 300, "calls of each kind that are measured")
	flag.IntVar(&b.changes, "changes", 60, "changes that are measured")
	flag.Float64Var(&b.busy, "busy", 0.1, "share of the databases whose hosts report new positions all the time")
	flag.IntVar(&b.users, "users", 2, "how many create instances at a time")
	flag.DurationVar(&b.detection, "detection", 15*time.Second, "after how long a silent host counts as lost: longer than an agent's default, because a thousand hosts are pretended on the same CPUs")
	flag.StringVar(&b.profiles, "profiles", "", "directory for profiles of the control plane")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var results []result
	for _, text := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 10 {
			exit(fmt.Errorf("size %q: it must be a number of at least 10", text))
		}
		r, err := b.measure(ctx, n)
		if err != nil {
			exit(err)
		}
		results = append(results, r)
	}
	table(os.Stdout, results)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-scale:", err)
		os.Exit(1)
	}
}
