// Package cidr brings lists of IPv4 networks into their shortest form. It does no I/O.
//
// A list says who may connect: nil admits everyone, an empty list nobody.
package cidr

import (
	"fmt"
	"net/netip"
	"slices"
)

// Everyone is the network of all IPv4 addresses.
var Everyone = netip.MustParsePrefix("0.0.0.0/0")

// Minimal returns the shortest sorted list with the same addresses. No network in it lies inside
// another one, and two halves of a network become that network. It returns nil if the list covers
// all addresses.
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

// compare sorts a network before the networks inside it.
func compare(a, b netip.Prefix) int {
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}

// outermost drops each network of a sorted list that lies inside another one.
func outermost(sorted []netip.Prefix) []netip.Prefix {
	kept := []netip.Prefix{}
	for _, p := range sorted {
		if n := len(kept); n == 0 || !kept[n-1].Contains(p.Addr()) {
			kept = append(kept, p)
		}
	}
	return kept
}

// joinHalves replaces two neighbours that are the halves of a network by that network.
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

// Texts returns the networks in the form in which records keep them. nil stays nil.
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

// Parse reads what Texts wrote. nil stays nil. It refuses a text that is not an IPv4 network.
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
