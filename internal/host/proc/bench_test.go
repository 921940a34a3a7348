package proc

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

// BenchmarkKill50 kills a member of 50 processes in each containment:
//
//	go test -run '^$' -bench . -benchtime 20x ./internal/host/proc
func BenchmarkKill50(b *testing.B) {
	for _, k := range kinds() {
		b.Run(k.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				took = append(took, killFifty(b, k))
			}
			reportMedian(b, took)
		})
	}
}

func killFifty(b *testing.B, k kind) time.Duration {
	b.StopTimer()
	defer b.StartTimer()
	host, group := benchmarked(b, k)
	command := Command{Path: "/bin/sh", LogFile: os.DevNull, DataDir: b.TempDir(), Env: []string{"PATH=/usr/bin:/bin"},
		Args: []string{"-c", `i=0; while [ $i -lt 49 ]; do sleep 1000 & i=$((i+1)); done; wait`}}
	if _, err := group.Start(context.Background(), command); err != nil {
		b.Fatal(err)
	}
	for begun := time.Now(); ; {
		processes, err := group.Processes()
		if err != nil {
			b.Fatal(err)
		}
		if len(processes) == 50 {
			break
		}
		if time.Since(begun) > 20*time.Second {
			b.Fatalf("%d processes", len(processes))
		}
	}
	proof, err := group.Kill(context.Background())
	if err != nil || proof.Found != 50 {
		b.Fatalf("found %d on %s: %v", proof.Found, host.Describe(), err)
	}
	if err := group.Remove(); err != nil {
		b.Fatal(err)
	}
	return proof.At.Sub(proof.Began)
}

// BenchmarkWatch measures the time from a SIGKILL to its Exit.
func BenchmarkWatch(b *testing.B) {
	for _, ours := range []bool{true, false} {
		name := map[bool]string{true: "a child", false: "not a child"}[ours]
		b.Run(name, func(b *testing.B) {
			host, group := benchmarked(b, best)
			var took []time.Duration
			for b.Loop() {
				took = append(took, killWatched(b, host, group, ours))
			}
			reportMedian(b, took)
			_, err := group.Kill(context.Background())
			if err := errors.Join(err, group.Remove()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func killWatched(b *testing.B, host *Host, group *Group, ours bool) time.Duration {
	command := Command{Path: "/bin/sleep", Args: []string{"1000"}, LogFile: os.DevNull}
	process, err := group.Start(context.Background(), command)
	if err != nil {
		b.Fatal(err)
	}
	watcher := host
	if !ours {
		watcher = &Host{processes: host.processes} // knows no children
	}
	exits, err := watcher.Watch(context.Background(), process)
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if err := host.Signal(process, syscall.SIGKILL); err != nil {
		b.Fatal(err)
	}
	exit := <-exits
	return exit.At.Sub(began)
}

func benchmarked(b *testing.B, k kind) (*Host, *Group) {
	b.Helper()
	k.config.Parent, k.config.StateDir = "howdah-proc-test-bench", b.TempDir()
	host, err := Open(k.config)
	if err != nil {
		b.Fatal(err)
	}
	if k.want != "" && host.containment != k.want {
		b.Skipf("needs the containment %s", k.want)
	}
	group, err := host.Group("bench")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_, err := group.Kill(context.Background())
		if err := errors.Join(err, group.Remove()); err != nil {
			b.Error(err)
		}
	})
	return host, group
}

func reportMedian(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-median")
	b.ReportMetric(float64(took[len(took)-1].Microseconds()), "µs-most")
	b.ReportMetric(0, "ns/op")
}
