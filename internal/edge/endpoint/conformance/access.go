package conformance

import (
	"errors"
	"net/netip"
	"os"

	"howdah/internal/edge/endpoint"
	"howdah/internal/model/network/cidr"
)

// only returns the endpoint with only these networks let in.
func only(e endpoint.Endpoint, networks ...netip.Prefix) endpoint.Endpoint {
	e.Allow = append([]netip.Prefix{}, networks...)
	return e
}

// change is Point for an endpoint with networks.
func (b *bench) change(e endpoint.Endpoint) {
	b.Helper()
	if err := b.fw.Point(b.ctx, e); err != nil {
		b.Fatalf("point: %v", err)
	}
}

// letsIn checks that a client from that address reaches the target.
func (b *bench) letsIn(from netip.Addr, listen, want netip.AddrPort) *Session {
	b.Helper()
	s, err := DialFrom(from, listen)
	if err != nil {
		b.Fatalf("from %s: %v", from, err)
	}
	b.Cleanup(func() { s.Close() })
	Check(b, s, want)
	return s
}

// keepsOut checks that a client from that address is turned away at once.
func (b *bench) keepsOut(from netip.Addr, listen netip.AddrPort) {
	b.Helper()
	s, err := DialFrom(from, listen)
	if err == nil {
		defer s.Close()
		_, _, err = s.Who()
	}
	if err == nil {
		b.Fatalf("a client from %s was let in", from)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		b.Errorf("a client from %s was left hanging", from)
	}
}

func admits(b *bench) {
	server, next := NewServer(b), NewServer(b)
	listen, open := SomeListen(), SomeListen()
	one, two := SomeAddr(), SomeAddr()
	b.sync(only(at(listen, server), cidr.Host(one)), at(open, server))
	early := b.letsIn(one, listen, server)
	b.keepsOut(two, listen)
	b.letsIn(two, open, server)

	b.change(only(at(listen, server), cidr.Host(two)))
	b.letsIn(two, listen, server)
	b.keepsOut(one, listen)
	Check(b, early, server)

	b.change(only(at(listen, next), cidr.Host(two)))
	b.letsIn(two, listen, next)
	b.keepsOut(one, listen)
	b.cut(listen, server, 2)

	b.change(only(at(listen, next)))
	b.keepsOut(one, listen)
	b.keepsOut(two, listen)
	b.change(only(at(listen), cidr.Host(two)))
	b.keepsOut(two, listen)

	all := []endpoint.Endpoint{at(listen, next), only(at(open, server), netip.PrefixFrom(one, 8))}
	b.sync(all...)
	b.letsIn(one, listen, next)
	b.letsIn(two, open, server)
	if mended := b.sync(all...); len(mended) > 0 {
		b.Errorf("mended %q where nothing was broken", mended)
	}
}

func admitsAfterDamage(b *bench) {
	server := NewServer(b)
	listen := SomeListen()
	one, two := SomeAddr(), SomeAddr()
	guarded := only(at(listen, server), cidr.Host(one))
	kill := b.earlier(guarded)
	kill()
	b.letsIn(one, listen, server)
	b.keepsOut(two, listen)
	if mended := b.sync(guarded); len(mended) > 0 {
		b.Errorf("mended %q after it was taken over", mended)
	}
	b.keepsOut(two, listen)
	b.Break(b.T, b.home, b.dir)
	b.sync(guarded)
	b.letsIn(one, listen, server)
	b.keepsOut(two, listen)
}

// admitsMany uses as many networks as a database can have by its groups. Some of them lie inside of
// others.
func admitsMany(b *bench) {
	server := NewServer(b)
	listen := SomeListen()
	one, two := netip.MustParseAddr("127.250.77.1"), netip.MustParseAddr("127.250.79.1")
	networks := []netip.Prefix{netip.MustParsePrefix("127.250.77.0/24"), cidr.Host(one)}
	for i := range 300 {
		networks = append(networks, cidr.Host(netip.AddrFrom4([4]byte{10, byte(i / 100), byte(2 * (i % 100)), 1})))
	}
	b.sync(only(at(listen, server), networks[2:]...))
	b.keepsOut(one, listen)
	b.change(only(at(listen, server), networks...))
	b.letsIn(one, listen, server)
	b.keepsOut(two, listen)
	if mended := b.sync(only(at(listen, server), networks...)); len(mended) > 0 {
		b.Errorf("mended %q where nothing was broken", mended)
	}
	b.change(only(at(listen, server), networks[2:3]...))
	b.keepsOut(one, listen)
}

// readdresses checks that the sessions of the old address are cut, that it refuses, and that the
// same clients may connect at the new one.
func readdresses(b *bench) {
	server := NewServer(b)
	before, after, other := SomeListen(), SomeListen(), SomeListen()
	in, out := SomeAddr(), SomeAddr()
	moving := func(listen netip.AddrPort) endpoint.Endpoint {
		e := only(at(listen, server), cidr.Host(in))
		e.ID = "moving"
		return e
	}
	b.sync(moving(before), at(other, server))
	lost, kept := b.letsIn(in, before, server), Join(b, other, server)
	b.sync(moving(after), at(other, server))
	if _, err := lost.Ended(answerTime); err != nil {
		b.Errorf("a session of the old address: %v", err)
	}
	Refuses(b, before)
	b.letsIn(in, after, server)
	b.keepsOut(out, after)
	Check(b, kept, server)
	// And back, as when somebody undoes a change at once.
	b.sync(moving(before), at(other, server))
	b.letsIn(in, before, server)
	b.keepsOut(out, before)
	Refuses(b, after)
}
