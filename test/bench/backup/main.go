// Command backup measures Howdah's backups on real processes, as `make bench-backup` does: snapshots
// against pg_basebackup, restores against a copy of the same files, clones, drills, what backups
// take from a busy database, and how far LatestRestorableTime is behind. What is compared alternates
// in one run, on the same data. It prints a table with the median, the greatest and the least of all
// rounds, and how the costs grow with the size of the database.
//
// It runs in a network namespace of its own and needs root. It leaves nothing behind, also after
// Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"howdah/internal/testkit/rig"
)

func main() {
	b := &bench{}
	only := flag.String("run", "", "only the rows whose name matches this regular expression: "+strings.Join(names(), ", "))
	flag.StringVar(&b.binary, "howdah", "bin/howdah", "the program to measure")
	flag.Float64Var(&b.size, "size", 5, "size of the database, in GB")
	flag.IntVar(&b.rounds, "n", 5, "rounds of each row")
	growth := flag.String("growth", "0.5,1,50", "sizes of which the costs are measured once, in GB, as far as there is room")
	flag.DurationVar(&b.lag, "lag", 10*time.Minute, "how long LatestRestorableTime is watched under load")
	flag.StringVar(&b.class, "class", "db.m5.large", "class of the databases")
	flag.StringVar(&b.tmp, "dir", os.TempDir(), "where everything is made; it must be a disk")
	flag.BoolVar(&b.keep, "keep", false, "keep the directories of the homes, with all data and logs")
	flag.StringVar(&b.json, "json", "", "also write all figures to this file")
	flag.Parse()
	if !rig.Isolate() {
		fmt.Fprintln(os.Stderr, "bench-backup needs root: it makes network namespaces")
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var err error
	if b.only, err = regexp.Compile(*only); err == nil {
		b.growth, err = sizes(*growth)
	}
	if err == nil && (b.size <= 0 || b.rounds < 1) {
		err = errors.New("a size, and a number of rounds, is at least 1")
	}
	if err == nil {
		err = b.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-backup:", err)
		stop()
		os.Exit(1)
	}
}

// sizes reads a list of sizes. An empty one has none.
func sizes(text string) ([]float64, error) {
	var all []float64
	for word := range strings.SplitSeq(text, ",") {
		if word == "" {
			continue
		}
		gb, err := strconv.ParseFloat(word, 64)
		if err != nil || gb <= 0 {
			return nil, fmt.Errorf("size %q: it must be a number of GB", word)
		}
		all = append(all, gb)
	}
	return all, nil
}
