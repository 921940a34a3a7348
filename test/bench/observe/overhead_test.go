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
	"howdah/internal/observe/machine"
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
			run := func(seconds int) once {
				args := append([]string{"-n", "-c", fmt.Sprint(*clients), "-j", "2", "-T", fmt.Sprint(seconds)}, load.args...)
				began := cpu(b, server)
				tps := observetest.StartBench(b, server, "", args...).Result().TPS
				return once{tps, 1e6 * (cpu(b, server) - began) / (tps * float64(seconds))}
			}
			run(5) // a warm-up
			for b.Loop() {
				measure(b, server, run)
			}
		})
	}
}

// once is what a run found. What the server's processes used for a transaction, the observer's backend
// among them, tells what observing costs also on a machine that others use.
type once struct{ tps, micros float64 }

// cpu is what the server's processes have used, in seconds.
func cpu(b *testing.B, server *pgtest.Server) float64 {
	system := machine.System{}
	family, ok := system.CPU("server.cpu", system.TreeOf(observetest.Postmaster(b, server)))
	if !ok {
		b.Fatal("the server's processes are not seen")
	}
	return family.Counters["server.cpu"]
}

func measure(b *testing.B, server *pgtest.Server, run func(seconds int) once) {
	var with, without, used, usedWithout []float64
	for pair := range *pairs {
		for turn := range 2 {
			if turn == pair%2 {
				one := observed(b, server, run)
				with, used = append(with, one.tps), append(used, one.micros)
			} else {
				one := run(*seconds)
				without, usedWithout = append(without, one.tps), append(usedWithout, one.micros)
			}
		}
		fmt.Printf("pair %d: %.0f TPS without, %.0f with: %.4f\n", pair+1, without[pair], with[pair], with[pair]/without[pair])
	}
	b.ReportMetric(compare(b, "TPS", without, with), "tps-with/without")
	b.ReportMetric(compare(b, "µs of the server's CPU a transaction", usedWithout, used), "cpu-with/without")
}

// compare prints both, and returns the ratio of their medians.
func compare(b *testing.B, what string, without, with []float64) float64 {
	c, err := stats.Compare(without, with)
	if err != nil {
		b.Fatal(err)
	}
	ratio := c.Other.Median / c.Base.Median
	fmt.Printf("%s: without %.5g (%.5g to %.5g), with %.5g (%.5g to %.5g); ratio %.4f (%.4f to %.4f), of medians %.4f; carried: %v, P %.2g\n",
		what, c.Base.Median, c.Base.Least, c.Base.Greatest, c.Other.Median, c.Other.Least, c.Other.Greatest,
		c.Ratio.Median, c.Ratio.Least, c.Ratio.Greatest, ratio, c.Carried, c.P)
	return ratio
}

// observed runs as the lab does.
func observed(b *testing.B, server *pgtest.Server, run func(seconds int) once) once {
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
	found := run(*seconds)
	cancel()
	rows := <-done
	if rows < *seconds/2 {
		b.Fatalf("it observed %d rows in %d s", rows, *seconds)
	}
	fmt.Printf("  %d rows; observer %.2f %% of a CPU, its backend %.2f %%\n", rows, 100*own/float64(rows), 100*backend/float64(rows))
	return found
}
