package haproxy

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/endpoint/conformance"
)

// BenchmarkPoint leads one endpoint to and fro.
func BenchmarkPoint(b *testing.B) {
	f := newForwarder(b, runDir(b))
	listen, targets := conformance.SomeListen(), []netip.AddrPort{nowhere, netip.AddrPortFrom(nowhere.Addr(), 2)}
	mustSync(b, f, lead(listen))
	b.ResetTimer()
	for i := range b.N {
		if err := f.Point(b.Context(), lead(listen, targets[i%2])); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSync: nothing to do for so many proxies.
func BenchmarkSync(b *testing.B) {
	for _, n := range []int{1, 50} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := newForwarder(b, runDir(b))
			var all []endpoint.Endpoint
			for range n {
				all = append(all, lead(conformance.SomeListen(), nowhere))
			}
			mustSync(b, f, all...)
			b.ResetTimer()
			for range b.N {
				mustSync(b, f, all...)
			}
		})
	}
}

// BenchmarkCut: half of the sessions idle, half waiting for a frozen server.
// notice-ms is from the call of Point until the last client has seen its end.
//
//	go test -run '^$' -bench Cut -benchtime 10x ./internal/edge/endpoint/haproxy
func BenchmarkCut(b *testing.B) {
	for _, n := range []int{80, 500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var worst, notice time.Duration
			for range b.N {
				took := cutOnce(b, n)
				notice += took
				worst = max(worst, took)
			}
			b.ReportMetric(float64(notice.Microseconds())/float64(b.N)/1000, "notice-ms")
			b.ReportMetric(float64(worst.Microseconds())/1000, "worst-notice-ms")
		})
	}
}

func cutOnce(b *testing.B, n int) time.Duration {
	b.Helper()
	f := newForwarder(b, runDir(b))
	listen := conformance.SomeListen()
	old, process := conformance.NewFreezer(b)
	next := conformance.NewServer(b)
	mustSync(b, f, lead(listen, old))
	clients := conformance.Connect(b, conformance.Prepare(b, 0, conformance.ClientsPart(listen, n)))
	process.Freeze(b)
	return clients.Measure(b, func() {
		if err := f.Point(b.Context(), lead(listen, next)); err != nil {
			b.Fatal(err)
		}
		if got, err := f.Cut(b.Context(), listen, old); err != nil || got != n {
			b.Fatalf("cut %d sessions, error %v", got, err)
		}
	})
}
