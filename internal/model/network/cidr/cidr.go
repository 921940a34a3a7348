// Package cidr holds lists of IPv4 networks to the shortest form. It does no I/O.
//
// A list says who may connect: nil is everyone, and an empty one nobody.
package cidr

import (
	"fmt"
	"net/netip"
	"slices"
)

// Everyone is the network of all IPv4 addresses.
var Everyone = netip.MustParsePrefix("0.0.0.0/0")

// Minimal is the shortest list of the same addresses, sorted: no network is in
// another one, and two halves are their whole. nil where that is everyone.
func Minimal(all []netip.Prefix) []netip.Prefix {
	if all == nil {
		return nil
	}
	kept := []netip.Prefix{}
	for _, p := range all {
		kept = append(kept, p.Masked())
	}
	for merged := true; merged; {
		slices.SortFunc(kept, compare)
		kept = outermost(kept)
		kept, merged = joinHalves(kept)
	}
	if len(kept) == 1 && kept[0] == Everyone {
		return nil
	}
	return kept
}

// compare sorts a network before those inside of it.
func compare(a, b netip.Prefix) int {
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}

// outermost drops the networks of a sorted list that are in another one.
func outermost(sorted []netip.Prefix) []netip.Prefix {
	kept := []netip.Prefix{}
	for _, p := range sorted {
		if n := len(kept); n == 0 || !kept[n-1].Contains(p.Addr()) {
			kept = append(kept, p)
		}
	}
	return kept
}

// joinHalves puts the whole in the place of two neighbours that are its halves.
func joinHalves(sorted []netip.Prefix) (kept []netip.Prefix, joined bool) {
	kept = []netip.Prefix{}
	for _, p := range sorted {
		if n := len(kept); n > 0 && p.Bits() > 0 && kept[n-1].Bits() == p.Bits() {
			whole := netip.PrefixFrom(p.Addr(), p.Bits()-1).Masked()
			if kept[n-1].Addr() == whole.Addr() && whole.Contains(p.Addr()) {
				kept[n-1], joined = whole, true
				continue
			}
		}
		kept = append(kept, p)
	}
	return kept, joined
}

// Texts are the networks as records keep them; nil stays nil.
func Texts(all []netip.Prefix) []string {
	if all == nil {
		return nil
	}
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = p.String()
	}
	return texts
}

// Parse reads what Texts wrote; nil stays nil. It refuses what is no IPv4 network.
func Parse(texts []string) ([]netip.Prefix, error) {
	if texts == nil {
		return nil, nil
	}
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, err
		}
		if !p.Addr().Is4() {
			return nil, fmt.Errorf("%s is no IPv4 network", text)
		}
		all[i] = p
	}
	return all, nil
}

// Host is the network of one address.
func Host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// Same reports whether two lists in their shortest form are equal.
func Same(a, b []netip.Prefix) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }
