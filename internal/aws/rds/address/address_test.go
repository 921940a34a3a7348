package address

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
)

// TestFree: addresses of a pool are given from a place of the resource's own on, without
// the first and the last one, until there is none left.
func TestFree(t *testing.T) {
	for _, tt := range []struct {
		pool string
		size int
	}{{"127.88.0.0/30", 2}, {"127.88.0.0/29", 6}, {"10.1.2.0/24", 254}} {
		pool, taken := netip.MustParsePrefix(tt.pool), map[string]bool{}
		for n := 0; ; n++ {
			a, found := free(pool, "db-X", func(a string) bool { return taken[a] })
			if !found {
				if n != tt.size {
					t.Errorf("%s has %d addresses, want %d", tt.pool, n, tt.size)
				}
				break
			}
			if taken[a] || !Contains(pool, a) {
				t.Fatalf("%s gives %s", tt.pool, a)
			}
			taken[a] = true
		}
	}
	pool := netip.MustParsePrefix("10.1.2.0/24")
	nobody := func(string) bool { return false }
	one, _ := free(pool, "db-A", nobody)
	again, _ := free(pool, "db-A", nobody)
	other, _ := free(pool, "db-B", nobody)
	if one != again || one == other {
		t.Errorf("%s, then %s; another resource has %s", one, again, other)
	}
}

// TestMayStay: which addresses will do for an endpoint that was, and shall be, public
// or not.
func TestMayStay(t *testing.T) {
	const private, public, foreign = "127.77.0.9", "127.88.0.9", "10.0.0.9"
	for _, tt := range []struct {
		pool      string
		address   string
		was, want bool
		stays     bool
	}{
		{"127.88.0.0/24", private, false, false, true},
		{"127.88.0.0/24", private, false, true, false},
		{"127.88.0.0/24", private, true, true, false}, // public, from before there was a pool
		{"127.88.0.0/24", private, true, false, true},
		{"127.88.0.0/24", public, true, true, true},
		{"127.88.0.0/24", public, true, false, false},
		{"127.88.0.0/24", public, false, false, false},
		{"127.88.0.0/24", foreign, true, true, false}, // the public pool became another one
		{"127.88.0.0/24", foreign, true, false, false},
		{"127.88.0.0/24", foreign, false, false, true}, // the private pool did
		{"", private, false, true, true},
		{"", private, true, true, true},
		{"", public, true, true, true}, // the pool was taken away
		{"", public, true, false, false},
		{"", private, true, false, true},
		{"", "nonsense", false, false, true},
	} {
		p := &Pools{Private: netip.MustParsePrefix("127.77.0.0/24")}
		if tt.pool != "" {
			p.Public = netip.MustParsePrefix(tt.pool)
		}
		if got := p.mayStay(tt.address, tt.was, tt.want); got != tt.stays {
			t.Errorf("pool %q, %s, was %v, shall be %v: stays %v", tt.pool, tt.address, tt.was, tt.want, got)
		}
	}
}

// TestReseat: an endpoint goes back to an address that it has not given back yet.
func TestReseat(t *testing.T) {
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	p := &Pools{Cache: cache, Private: netip.MustParsePrefix("127.77.0.0/21"), Public: netip.MustParsePrefix("127.88.0.0/30")}
	at := Seat{Address: "127.77.0.9"}
	out, ops, err := p.Reseat(at, "db-1", false, true)
	if err != nil || len(ops) != 1 || !Contains(p.Public, out.Address) {
		t.Fatalf("out: %+v, %d writes, %v", out, len(ops), err)
	}
	if diff := cmp.Diff([]string{at.Address}, out.Former); diff != "" {
		t.Error(diff)
	}
	back, ops, err := p.Reseat(out, "db-1", true, false)
	if err != nil || len(ops) != 0 || back.Address != at.Address || len(back.Former) != 1 || back.Former[0] != out.Address {
		t.Fatalf("back: %+v, %d writes, %v", back, len(ops), err)
	}
	if again, ops, err := p.Reseat(back, "db-1", false, false); err != nil || len(ops) != 0 || again.Address != back.Address {
		t.Errorf("again: %+v, %v", again, err)
	}
	etcdtest.Put(t, store, cache, state.Put(state.Address("127.88.0.1"), "db-2"))
	if got, _, err := p.Reseat(at, "db-1", false, true, "127.88.0.2"); err == nil {
		t.Errorf("a pool without a free address gave %+v", got)
	}
}

// TestPools: what a server is started with.
func TestPools(t *testing.T) {
	for _, tt := range []struct {
		pool, public string
		good         bool
	}{
		{"127.77.0.0/21", "", true},
		{"127.77.0.0/21", "127.77.16.0/24", true},
		{"127.77.0.0/21", "203.0.113.0/28", true},
		{"127.77.0.0/21", "127.77.1.0/24", false},
		{"127.77.0.0/21", "127.0.0.0/8", false},
		{"127.77.0.0/21", "203.0.113.1/32", false},
		{"127.77.0.0/21", "fd00::/64", false},
		{"127.77.0.0/21", "nonsense", false},
		{"nonsense", "", false},
		{"::/8", "", false},
	} {
		if _, err := Parse(nil, tt.pool, tt.public); (err == nil) != tt.good {
			t.Errorf("%q and %q: %v", tt.pool, tt.public, err)
		}
	}
}
