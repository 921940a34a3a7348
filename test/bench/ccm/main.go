// Command ccm measures a failover with a warm cache, and one with a cold cache, alternating on one
// Multi-AZ instance, as `make bench-ccm` does: how long it takes until the load is as fast as before,
// how much of what it reads is in the new primary's cache, and how the transactions a second went.
//
// The system's page cache is dropped before each failover, so that a miss costs what a disk costs. It
// needs root: it does that, and makes network namespaces.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"howdah/internal/testkit/rig"
)

func main() {
	b := &bench{}
	flag.StringVar(&b.binary, "howdah", "bin/howdah", "the program to measure")
	flag.StringVar(&b.dir, "dir", "/var/tmp", "where everything is made; it must be a disk")
	flag.StringVar(&b.svg, "svg", "", "the file for a plot of the seconds after a failover")
	flag.BoolVar(&b.costs, "costs", true, "measure also what it costs, and how fast it fills a cache")
	flag.IntVar(&b.pairs, "pairs", 12, "how often the cost is measured, with and without, 20 seconds each")
	flag.IntVar(&b.rounds, "n", 3, "rounds, each with a warm and a cold standby")
	flag.IntVar(&b.scale, "scale", 120, "of pgbench's tables: 120 is about 1.8 GB, and the cache has 2 GB")
	flag.IntVar(&b.iops, "iops", 3000, "reads a second that the disk of each member serves: 3000, as RDS's gp3 does")
	flag.IntVar(&b.mbps, "mbps", 125, "MB a second that it reads: 125, as RDS's gp3 does")
	flag.BoolVar(&b.free, "free", false, "let the disks be as fast as they are")
	flag.IntVar(&b.rate, "rate", 5000, "transactions a second of the load that is measured, as all members share the processors; 0 for as many as there can be")
	flag.DurationVar(&b.heat, "heat", 90*time.Second, "how long the load runs as fast as it can before each failover")
	flag.DurationVar(&b.after, "after", time.Minute, "how long it runs after it")
	flag.Parse()
	if !rig.Isolate() {
		fmt.Fprintln(os.Stderr, "bench-ccm needs root: it makes network namespaces, and drops the page cache")
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := b.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench-ccm:", err)
		os.Exit(1)
	}
}
