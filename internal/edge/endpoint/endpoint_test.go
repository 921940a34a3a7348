package endpoint

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var compare = cmpopts.EquateComparable(netip.AddrPort{})

func at(listen string, targets ...string) Endpoint {
	e := Endpoint{ID: listen, Listen: netip.MustParseAddrPort(listen)}
	for _, t := range targets {
		e.Targets = append(e.Targets, netip.MustParseAddrPort(t))
	}
	return e
}

func TestNormal(t *testing.T) {
	given := []Endpoint{
		at("127.0.8.10:5432", "127.0.1.2:5433", "127.0.1.1:5433", "127.0.1.2:5433"),
		at("127.0.8.9:5433"),
		at("127.0.8.9:5432", "127.0.1.1:1"),
		at("10.9.0.1:5432", "10.0.0.1:1"),
	}
	want := []Endpoint{
		at("10.9.0.1:5432", "10.0.0.1:1"),
		at("127.0.8.9:5432", "127.0.1.1:1"),
		at("127.0.8.9:5433"),
		at("127.0.8.10:5432", "127.0.1.1:5433", "127.0.1.2:5433"),
	}
	before := given[0].Targets[0]
	got, err := Config{Pools: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}}.Normal(given...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if given[0].Targets[0] != before {
		t.Error("the argument was changed")
	}
}

func TestNormalRefuses(t *testing.T) {
	for name, all := range map[string][]Endpoint{
		"same address":        {at("127.0.0.1:1"), at("127.0.0.1:1", "127.0.0.2:2")},
		"leads to itself":     {at("127.0.0.1:1", "127.0.0.1:1")},
		"leads to another":    {at("127.0.0.1:1", "127.0.0.2:1"), at("127.0.0.2:1")},
		"outside the pool":    {at("10.10.0.1:1")},
		"no port":             {at("127.0.0.1:0")},
		"IPv6":                {at("[::1]:1")},
		"IPv4 in IPv6":        {at("[::ffff:127.0.0.1]:1")},
		"any address":         {at("0.0.0.0:1")},
		"target is IPv6":      {at("127.0.0.1:1", "[::1]:1")},
		"target without port": {at("127.0.0.1:1", "127.0.0.2:0")},
		"no address":          {{ID: "empty"}},
		"lets IPv6 in":        {allowing(at("127.0.0.1:1"), "::/0")},
		"lets nothing in":     {{Listen: netip.MustParseAddrPort("127.0.0.1:1"), Allow: []netip.Prefix{{}}}},
	} {
		if _, err := (Config{Pools: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}}).Normal(all...); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// allowing lets only these networks connect.
func allowing(e Endpoint, networks ...string) Endpoint {
	e.Allow = []netip.Prefix{}
	for _, n := range networks {
		e.Allow = append(e.Allow, netip.MustParsePrefix(n))
	}
	return e
}

func TestNormalNetworks(t *testing.T) {
	got, err := Config{}.Normal(
		allowing(at("127.0.0.1:1"), "10.1.0.0/16", "10.0.0.0/8", "9.0.0.7/8"), allowing(at("127.0.0.2:1")), at("127.0.0.3:1"), allowing(at("127.0.0.4:1"), "0.0.0.0/0", "10.0.0.0/8"))
	want := []Endpoint{allowing(at("127.0.0.1:1"), "9.0.0.0/8", "10.0.0.0/8"), allowing(at("127.0.0.2:1")), at("127.0.0.3:1"), at("127.0.0.4:1")}
	if diff := cmp.Diff(want, got, compare, cmpopts.EquateComparable(netip.Prefix{})); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
}

func TestCheck(t *testing.T) {
	for home, ok := range map[string]bool{"a": true, "north_1": true, "abcdefghij": true, "": false, "abcdefghijk": false, "A": false, "a-b": false, "a b": false} {
		if err := (Config{Home: home}).Check(); (err == nil) != ok || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("home %q: error %v", home, err)
		}
	}
}

func TestWith(t *testing.T) {
	all := []Endpoint{at("127.0.0.1:1"), at("127.0.0.3:1", "127.0.9.1:1")}
	with, old := With(all, at("127.0.0.2:1"))
	if old != nil || cmp.Diff([]Endpoint{all[0], at("127.0.0.2:1"), all[1]}, with, compare) != "" {
		t.Errorf("added: %v, old %v", with, old)
	}
	with, old = With(all, at("127.0.0.3:1", "127.0.9.2:1"))
	if old == nil || cmp.Diff(all[1], *old, compare) != "" || with[1].Targets[0].Addr() == all[1].Targets[0].Addr() {
		t.Errorf("replaced: %v, old %v", with, old)
	}
}

func TestSame(t *testing.T) {
	a := []Endpoint{at("127.0.0.1:1", "127.0.9.1:1")}
	renamed := at("127.0.0.1:1", "127.0.9.1:1")
	renamed.ID = "other"
	for name, c := range map[string]struct {
		b    []Endpoint
		want bool
	}{
		"itself":        {a, true},
		"other name":    {[]Endpoint{renamed}, true},
		"other target":  {[]Endpoint{at("127.0.0.1:1", "127.0.9.2:1")}, false},
		"other address": {[]Endpoint{at("127.0.0.2:1", "127.0.9.1:1")}, false},
		"none":          {nil, false},
		"nobody":        {[]Endpoint{allowing(a[0])}, false},
		"somebody":      {[]Endpoint{allowing(a[0], "10.0.0.0/8")}, false},
	} {
		if got := Same(a, c.b); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
