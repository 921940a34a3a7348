package serve

import (
	"net"
	"net/netip"
	"testing"

	"howdah/internal/host/hostapi"
	"howdah/internal/identity/home"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
)

func TestOwnAddresses(t *testing.T) {
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	etcdtest.Put(t, store, cache,
		state.Put(state.Control("s2"), hostapi.ControlMember{Name: "s2", URL: "https://192.0.2.2:7777"}),
		state.Put(state.Control("s3"), hostapi.ControlMember{Name: "s3", URL: "https://[2001:db8::3]:7443"}),
		state.Put(state.Host("h1"), member.Host{Name: "h1", Address: "192.0.2.9"}),
		state.Put(state.Assign("h1", "db.m1"), member.Assignment{Port: 15432, RESTPort: 25432}),
	)
	for _, test := range []struct {
		name, address, listen string
		own, others           []string
	}{
		{
			"one machine", "127.93.0.1", "127.93.0.1:7443",
			[]string{"127.93.0.1:7443", "127.93.0.1:2379", "[::ffff:127.93.0.1]:2380", "127.93.1.2:25432", "127.93.9.4:5432", "127.93.0.1:80", "10.200.0.7:80"},
			[]string{"127.0.0.1:7443", "127.0.0.1:2379", "127.94.0.1:7443", "192.0.2.1:80", "10.201.0.1:80", "[::1]:7443"},
		},
		{
			"the machine's address", "192.0.2.1", "192.0.2.1:7443",
			[]string{"192.0.2.1:7443", "192.0.2.1:2379", "192.0.2.1:2380", "[::ffff:192.0.2.1]:2379"},
			[]string{"192.0.2.1:80", "192.0.2.1:8080", "127.0.0.1:7443"},
		},
		{
			"all addresses", "192.0.2.1", "0.0.0.0:7443",
			[]string{"192.0.2.1:7443", "192.0.2.1:2379", "127.0.0.1:7443", "127.77.5.4:7443", "[::1]:7443", "[::ffff:127.0.0.1]:7443"},
			[]string{"192.0.2.1:80", "127.0.0.1:7442", "198.51.100.1:7443"},
		},
		{"all addresses, in short", "192.0.2.1", ":7443", []string{"127.0.0.1:7443", "[::1]:7443"}, []string{"127.0.0.1:80"}},
		{"localhost", "127.0.0.1", "localhost:7443", []string{"127.0.0.1:7443", "[::1]:7443", "127.0.0.1:2379"}, []string{"127.0.0.1:80"}},
		{
			"others of the home", "192.0.2.1", "192.0.2.1:7443",
			[]string{
				"192.0.2.2:7777", "192.0.2.2:2379", "192.0.2.2:2380", "[2001:db8::3]:7443", "[2001:db8::3]:2379",
				"192.0.2.9:7444", "192.0.2.9:7464", "192.0.2.9:7483", "192.0.2.9:15432", "192.0.2.9:25432",
			},
			[]string{"192.0.2.2:7443", "192.0.2.9:80", "192.0.2.9:7484", "192.0.2.9:5432", "192.0.2.10:15432"},
		},
	} {
		h := &home.Home{Config: home.Config{Network: "127.93", Listen: test.listen}}
		o := Config{Home: h, Address: test.address, Pool: "10.200.0.0/21"}.own(cache)
		for _, at := range test.own {
			if !o.listens(netip.MustParseAddrPort(at)) {
				t.Errorf("%s: %s is not known", test.name, at)
			}
		}
		for _, at := range test.others {
			if o.listens(netip.MustParseAddrPort(at)) {
				t.Errorf("%s: %s is not ours", test.name, at)
			}
		}
	}
}

// TestThisMachine checks that an address of an interface counts like loopback.
func TestThisMachine(t *testing.T) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && !ofThisMachine(p.Addr().WithZone("")) {
			t.Errorf("%s is not known", p.Addr())
		}
	}
	if ofThisMachine(netip.MustParseAddr("198.51.100.1")) {
		t.Error("an address that is kept for documentation is this machine's")
	}
}
