// Package observe measures what observing costs the server that is observed: runs of pgbench with and
// without an observer take turns. It is a benchmark, as it needs a server for a while and nothing else.
package observe

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"howdah/internal/lab/stats"
	"howdah/internal/observe"
	"howdah/internal/observe/observetest"
	"howdah/internal/observe/series"
	"howdah/internal/testkit/pgtest"
)

var (
	pairs   = flag.Int("pairs", 6, "how many pairs of runs")
	seconds = flag.Int("seconds", 20, "how long each run is")
	clients = flag.Int("clients", 16, "how many clients pgbench has")
	scale   = flag.Int("scale", 20, "how large the tables are")
	sample  = flag.Duration("sample", 250*time.Millisecond, "how often sessions are looked at; the lab's is 250ms")
)

// BenchmarkObserver prints the TPS of both, and the ratio of each pair. Every other pair begins with the
// observer, so a machine that drifts favours neither.
func BenchmarkObserver(b *testing.B) {
	for _, load := range []struct {
		name string
		args []string
	}{
		{"select-only", []string{"-S", "-M", "prepared"}},
		{"tpcb-like", nil},
	} {
		b.Run(load.name, func(b *testing.B) {
			server := pgtest.Start(b, pgtest.Options{Settings: "shared_buffers = '1GB'\nmax_wal_size = '8GB'\ncheckpoint_timeout = '30min'\n"})
			observetest.InitBench(b, server, *scale)
			run := func(seconds int) float64 {
				args := append([]string{"-n", "-c", fmt.Sprint(*clients), "-j", "2", "-T", fmt.Sprint(seconds)}, load.args...)
				return observetest.StartBench(b, server, "", args...).Result().TPS
			}
			run(5) // a warm-up
			for b.Loop() {
				measure(b, server, run)
			}
		})
	}
}

func measure(b *testing.B, server *pgtest.Server, run func(seconds int) float64) {
	var with, without []float64
	for pair := range *pairs {
		for turn := range 2 {
			if turn == pair%2 {
				with = append(with, observed(b, server, run))
			} else {
				without = append(without, run(*seconds))
			}
		}
		fmt.Printf("pair %d: %.0f TPS without, %.0f with: %.4f\n", pair+1, without[pair], with[pair], with[pair]/without[pair])
	}
	c, err := stats.Compare(without, with)
	if err != nil {
		b.Fatal(err)
	}
	fmt.Printf("without %.0f TPS (%.0f to %.0f), with %.0f (%.0f to %.0f); ratio %.4f (%.4f to %.4f), of medians %.4f; carried: %v, P %.2g\n",
		c.Base.Median, c.Base.Least, c.Base.Greatest, c.Other.Median, c.Other.Least, c.Other.Greatest,
		c.Ratio.Median, c.Ratio.Least, c.Ratio.Greatest, c.Other.Median/c.Base.Median, c.Carried, c.P)
	b.ReportMetric(c.Other.Median/c.Base.Median, "with/without")
}

// observed runs as the lab does.
func observed(b *testing.B, server *pgtest.Server, run func(seconds int) float64) float64 {
	observer, err := observe.Open(b.Context(), observe.Config{Conn: server.Config(), Sample: *sample})
	if err != nil {
		b.Fatal(err)
	}
	defer observer.Close()
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan int)
	var own, backend float64
	go func() {
		rows := 0
		_ = observer.Run(ctx, func(row series.Row) {
			rows++
			own += row.Values[series.ObserverCPU]
			backend += row.Values[series.ObserverBackendCPU]
		})
		done <- rows
	}()
	tps := run(*seconds)
	cancel()
	rows := <-done
	if rows < *seconds/2 {
		b.Fatalf("it observed %d rows in %d s", rows, *seconds)
	}
	fmt.Printf("  %d rows; observer %.2f %% of a CPU, its backend %.2f %%\n", rows, 100*own/float64(rows), 100*backend/float64(rows))
	return tps
}
