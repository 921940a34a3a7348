package nft

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/endpoint/conformance"
)

// many returns n endpoints that lead to target. The last tenth of them lead to two targets.
func many(n int, target netip.AddrPort) []endpoint.Endpoint {
	all := make([]endpoint.Endpoint, n)
	for i := range all {
		all[i] = lead(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 200, byte(i >> 8), byte(i)}), 5432), target)
		if i >= n-n/10 {
			all[i].Targets = append(all[i].Targets, netip.AddrPortFrom(target.Addr(), 9))
		}
	}
	return all
}

// BenchmarkPoint moves one of so many endpoints.
func BenchmarkPoint(b *testing.B) {
	for _, n := range []int{1, 500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := edge(b, config("edge", ""))
			target := conformance.NewServer(b)
			all := many(n, target)
			mustSync(b, f, all...)
			b.ResetTimer()
			for i := range b.N {
				moved := all[0]
				if i%2 == 0 {
					moved.Targets = nil
				}
				mustPoint(b, f, moved)
			}
		})
	}
}

// BenchmarkSync: nothing to do, somebody else changed other rules, somebody
// removed the table, one endpoint of many is new.
func BenchmarkSync(b *testing.B) {
	for _, n := range []int{1, 500} {
		all := many(n, netip.MustParseAddrPort("127.0.0.1:7"))
		for name, prepare := range map[string]func(b *testing.B, i int) []endpoint.Endpoint{
			"idle": func(*testing.B, int) []endpoint.Endpoint { return all },
			"others": func(b *testing.B, _ int) []endpoint.Endpoint {
				nft(b, "add", "table", "ip", "other")
				nft(b, "delete", "table", "ip", "other")
				return all
			},
			"mend": func(b *testing.B, _ int) []endpoint.Endpoint {
				nft(b, "flush", "ruleset")
				return all
			},
			"change": func(_ *testing.B, i int) []endpoint.Endpoint { return all[:n-i%2] },
		} {
			b.Run(fmt.Sprintf("%s-%d", name, n), func(b *testing.B) {
				f := edge(b, config("edge", ""))
				mustSync(b, f, all...)
				b.ResetTimer()
				for i := range b.N {
					b.StopTimer()
					want := prepare(b, i)
					b.StartTimer()
					mustSync(b, f, want...)
				}
			})
		}
	}
}

// BenchmarkCut: half of the sessions idle, half waiting for a frozen server.
// notice-ms is from the call of Point until the last client has seen its reset.
//
//	go test -run '^$' -bench Cut -benchtime 10x ./internal/edge/endpoint/nft
func BenchmarkCut(b *testing.B) {
	for _, n := range []int{80, 500} {
		for _, place := range []string{"here", "elsewhere"} {
			b.Run(fmt.Sprintf("%s-%d", place, n), func(b *testing.B) {
				var worst, notice, returned time.Duration
				for range b.N {
					took, call := cutOnce(b, place, n)
					notice += took
					returned += call
					worst = max(worst, took)
				}
				b.ReportMetric(float64(notice.Microseconds())/float64(b.N)/1000, "notice-ms")
				b.ReportMetric(float64(worst.Microseconds())/1000, "worst-notice-ms")
				b.ReportMetric(float64(returned.Microseconds())/float64(b.N)/1000, "returned-ms")
			})
		}
	}
}

func cutOnce(b *testing.B, place string, n int) (notice, returned time.Duration) {
	b.Helper()
	f := edge(b, config("edge", ""))
	part := conformance.ClientsPart(edgeListen, n)
	var child *conformance.Child
	if place == "here" {
		child = conformance.Prepare(b, 0, part)
		conformance.Apart(b, conformance.ServerPart(farServer), edgeServer, serverAddr) // for its address
	} else {
		child, _ = conformance.Apart(b, part, edgeServer, serverAddr)
	}
	at := netip.AddrPortFrom(edgeServer.Addr(), 0)
	old, process := conformance.NewFreezerAt(b, at)
	next, other := conformance.NewFreezerAt(b, at)
	mustSync(b, f, lead(edgeListen, old))
	clients := conformance.Connect(b, child)
	process.Freeze(b)
	notice = clients.Measure(b, func() {
		begin := time.Now()
		mustPoint(b, f, lead(edgeListen, next))
		mustCut(b, f, edgeListen, old, n)
		returned = time.Since(begin)
	})
	other.Freeze(b)
	if err := f.Remove(context.Background()); err != nil {
		b.Fatal(err)
	}
	return notice, returned
}
