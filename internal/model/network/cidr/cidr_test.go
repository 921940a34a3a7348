package cidr

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parse(t *testing.T, text string) []netip.Prefix {
	t.Helper()
	all, err := Parse(strings.Fields(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestMinimal(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nobody", "", ""},
		{"sorted", "10.2.0.0/16 10.0.0.0/24", "10.0.0.0/24 10.2.0.0/16"},
		{"twice", "10.0.0.0/24 10.0.0.0/24", "10.0.0.0/24"},
		{"bits of hosts do not count", "10.0.0.7/24", "10.0.0.0/24"},
		{"inside of another", "10.1.2.3/32 10.0.0.0/8 10.1.0.0/16 11.0.0.0/8", "10.0.0.0/7"},
		{"at the same address", "10.0.0.0/16 10.0.0.0/8 10.0.0.0/24", "10.0.0.0/8"},
		{"halves of halves", "10.0.0.0/26 10.0.0.64/26 10.0.0.128/25", "10.0.0.0/24"},
		{"neighbours that are no halves", "10.0.1.0/24 10.0.2.0/24", "10.0.1.0/24 10.0.2.0/24"},
		{"single addresses", "127.0.0.1/32 127.0.0.2/32 127.0.0.3/32", "127.0.0.1/32 127.0.0.2/31"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Texts(Minimal(parse(t, tt.in)))
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
			if got == nil {
				t.Error("some list became everyone")
			}
		})
	}
}

func TestEveryone(t *testing.T) {
	for _, text := range []string{"0.0.0.0/0", "0.0.0.0/1 128.0.0.0/1", "10.0.0.0/8 0.0.0.0/0"} {
		if got := Minimal(parse(t, text)); got != nil {
			t.Errorf("%s: got %v", text, got)
		}
	}
	if got := Minimal(nil); got != nil {
		t.Errorf("everyone became %v", got)
	}
	if Same(nil, []netip.Prefix{}) || !Same(nil, nil) || !Same([]netip.Prefix{}, []netip.Prefix{}) {
		t.Error("everyone and nobody are the same")
	}
}

// The shortest list has the same addresses, and no network of it meets another.
func TestMinimalKeepsAddresses(t *testing.T) {
	contains := func(all []netip.Prefix, a netip.Addr) bool {
		for _, p := range all {
			if p.Contains(a) {
				return true
			}
		}
		return false
	}
	for range 500 {
		all := []netip.Prefix{}
		for range rand.IntN(12) {
			all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(rand.IntN(256))}), 24+rand.IntN(9)))
		}
		got := Minimal(all)
		for last := range 256 {
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(last)})
			if contains(all, a) != contains(got, a) {
				t.Fatalf("%s: %v became %v", a, all, got)
			}
		}
		for i, p := range got {
			for _, q := range got[:i] {
				if p.Overlaps(q) {
					t.Fatalf("%v became %v", all, got)
				}
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "10.0.0.1", "10.0.0.0/33", "::/0", "all"} {
		if _, err := Parse([]string{text}); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	if all, err := Parse(nil); all != nil || err != nil {
		t.Errorf("everyone: %v, %v", all, err)
	}
}
