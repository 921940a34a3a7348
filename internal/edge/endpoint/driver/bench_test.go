package driver

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/endpoint/conformance"
	"howdah/internal/edge/endpoint/haproxy"
	"howdah/internal/edge/endpoint/nft"
	"howdah/internal/testkit"
)

// BenchmarkPaths compares the ways to a server in another process on this machine: direct, and
// through each driver. They take turns, so that other work of the machine hits all of them. It
// reports medians.
//
//	go test -run '^$' -bench Paths -benchtime 1x ./internal/edge/endpoint/driver
func BenchmarkPaths(b *testing.B) {
	testkit.NeedRoot(b)
	const rounds, slice = 7, 300 * time.Millisecond
	server, _ := conformance.NewFreezer(b)
	paths := []struct {
		name string
		to   netip.AddrPort
	}{
		{"direct", server},
		{nft.Name, through(b, nft.Name, server)},
		{haproxy.Name, through(b, haproxy.Name, server)},
	}
	loads := []struct {
		name string
		run  func(testing.TB, netip.AddrPort, time.Duration) float64
	}{
		{"connections/s", connections},
		{"trips1/s", func(t testing.TB, to netip.AddrPort, d time.Duration) float64 { return trips(t, to, d, 1) }},
		{"trips16/s", func(t testing.TB, to netip.AddrPort, d time.Duration) float64 { return trips(t, to, d, 16) }},
	}
	for range b.N {
		for _, load := range loads {
			results := map[string][]float64{}
			for range rounds {
				for _, p := range paths {
					results[p.name] = append(results[p.name], load.run(b, p.to, slice))
				}
			}
			for _, p := range paths {
				slices.Sort(results[p.name])
				b.ReportMetric(results[p.name][rounds/2], p.name+"-"+load.name)
			}
		}
	}
}

// through makes an endpoint for server.
func through(b *testing.B, driver string, server netip.AddrPort) netip.AddrPort {
	b.Helper()
	fw, _, err := Open(b.Context(), configFor(b, driver))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := fw.Remove(context.Background()); err != nil {
			b.Error(err)
		}
	})
	listen := conformance.SomeListen()
	if _, err := fw.Sync(b.Context(), []endpoint.Endpoint{{ID: driver, Listen: listen, Targets: []netip.AddrPort{server}}}); err != nil {
		b.Fatal(err)
	}
	return listen
}

// connections opens sessions one after the other, asks each one question, and
// ends it with a reset, so that no port waits.
func connections(t testing.TB, to netip.AddrPort, d time.Duration) float64 {
	t.Helper()
	n, begin := 0, time.Now()
	for time.Since(begin) < d {
		s, err := conformance.Dial(to)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Who(); err != nil {
			t.Fatal(err)
		}
		if err := s.Conn.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
		s.Close()
		n++
	}
	return float64(n) / time.Since(begin).Seconds()
}

// trips asks as fast as answers come, in so many sessions at a time.
func trips(t testing.TB, to netip.AddrPort, d time.Duration, sessions int) float64 {
	t.Helper()
	counts := make([]int, sessions)
	var all sync.WaitGroup
	begin := time.Now()
	for i := range counts {
		s, err := conformance.Dial(to)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer s.Close()
			for time.Since(begin) < d {
				if _, _, err := s.Who(); err != nil {
					t.Error(err)
					return
				}
				counts[i]++
			}
		})
	}
	all.Wait()
	total := 0
	for _, c := range counts {
		total += c
	}
	return float64(total) / time.Since(begin).Seconds()
}
