package edge

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"howdah/internal/edge/nameserver"
	"howdah/internal/edge/seen"
	"howdah/internal/host/hostapi"
	"howdah/internal/model/route"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

// asked returns what a nameserver says of a name: its addresses, sorted by whoever answers, or a word.
func asked(at, name string) string {
	c := dns.Client{Timeout: 2 * time.Second}
	m, _, err := c.Exchange(new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.TypeA), at)
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, rr := range m.Answer {
		all = append(all, rr.(*dns.A).A.String())
	}
	if len(all) == 0 {
		return dns.RcodeToString[m.Rcode]
	}
	// They take turns: what counts is which there are.
	first := 0
	for i := range all {
		if all[i] < all[first] {
			first = i
		}
	}
	return strings.Join(append(all[first:], all[:first]...), " ")
}

// An edge answers for the names of all databases. Readers are in turn those that serve.
func TestNames(t *testing.T) {
	w := newWorld(t)
	named := func(id string, kind route.Kind, listen, name string, seats ...string) route.Route {
		r := w.route(id, kind, listen)
		r.Name, r.Seats = name, seats
		for n := range r.Members {
			r.Members[n].Seat = fmt.Sprintf("i%d", n+1)
		}
		return r
	}
	for _, r := range []route.Route{
		named("writer", route.Leader, "127.201.0.1:5432", "shop.cluster-c1.r.howdah.test"),
		named("readers", route.Readers, "127.201.0.2:5432", "shop.cluster-ro-c1.r.howdah.test"),
		named("i1", route.Seats, "127.201.0.11:5432", "one.c1.r.howdah.test", "i1"),
		named("i2", route.Seats, "127.201.0.12:5432", "two.c1.r.howdah.test", "i2"),
		named("i3", route.Seats, "127.201.0.13:5432", "three.c1.r.howdah.test", "i3"),
		named("some", route.Seats, "127.201.0.3:5432", "some.cluster-custom-c1.r.howdah.test", "i1", "i2"),
		named("unnamed", route.Seats, "127.201.0.4:5432", "", "i1", "i2"),
	} {
		w.putRoute(r)
	}
	w.put(state.Control("s1"), hostapi.ControlMember{Name: "s1", Zone: "howdah.test"})
	for _, name := range []string{"m2", "m3"} {
		w.serves(name, true, true)
	}
	w.elect("m1")
	at := testkit.FreeAddr(t)
	w.run(func(cfg *Config) {
		cfg.Names = nameserver.New(netip.MustParseAddrPort(at), slog.New(slog.DiscardHandler))
	})
	w.leadsTo("writer", "m1")
	says := func(name, want string) {
		t.Helper()
		testkit.Eventually(t, soon, func() error {
			if got := asked(at, name); got != want {
				return fmt.Errorf("%s: %s, want %s", name, got, want)
			}
			return nil
		})
	}
	says("shop.cluster-c1.r.howdah.test", "127.201.0.1")
	testkit.Eventually(t, soon, func() error {
		s, err := state.Get[seen.Status](t.Context(), w.home.Store, state.Edge("edge"))
		if err == nil && (s.Value.Names != at || s.Value.Started.IsZero()) {
			err = fmt.Errorf("its status is %+v", s.Value)
		}
		return err
	})
	says("shop.cluster-ro-c1.r.howdah.test", "127.201.0.12 127.201.0.13")
	says("some.cluster-custom-c1.r.howdah.test", "127.201.0.11 127.201.0.12")
	says("two.c1.r.howdah.test", "127.201.0.12")
	says("four.c1.r.howdah.test", "NXDOMAIN")
	says("example.com", "REFUSED")
	// One reader is left: the endpoint's own address leads there, and to the primary once it is gone, too.
	w.serves("m3", false, true)
	says("shop.cluster-ro-c1.r.howdah.test", "127.201.0.2")
	w.serves("m3", true, true)
	says("shop.cluster-ro-c1.r.howdah.test", "127.201.0.12 127.201.0.13")
	// The writer's name keeps its address, whoever leads.
	w.elect("m2")
	w.leadsTo("writer", "m2")
	says("shop.cluster-c1.r.howdah.test", "127.201.0.1")
	says("shop.cluster-ro-c1.r.howdah.test", "127.201.0.2") // m1 was not said to serve as a replica
	// A control plane that is of another opinion, and spoke later, is right.
	w.put(state.Control("s2"), hostapi.ControlMember{Name: "s2", Zone: "other.test"})
	says("two.c1.r.howdah.test", "REFUSED")
	says("two.c1.r.other.test", "NXDOMAIN")
	w.put(state.Control("s1"), hostapi.ControlMember{Name: "s1"})
	says("two.c1.r.other.test", "REFUSED")
	w.put(state.Control("s1"), hostapi.ControlMember{Name: "s1", Zone: "howdah.test"})
	says("two.c1.r.howdah.test", "127.201.0.12")
	// A route that is gone takes its name along.
	if _, err := w.home.Store.Commit(t.Context(), state.Delete(state.Route("i2"))); err != nil {
		t.Fatal(err)
	}
	says("two.c1.r.howdah.test", "NXDOMAIN")
}
