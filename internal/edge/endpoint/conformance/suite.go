package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"testing"
	"time"

	"howdah/internal/edge/endpoint"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

// Run runs the suite.
func Run(t *testing.T, d Driver) {
	tests := []struct {
		name string
		test func(*bench)
	}{
		{"a connection reaches the target of its address and port", reaches},
		{"without targets connections are refused", refusesWithoutTargets},
		{"an endpoint that is away refuses, and keeps its sessions", goesAway},
		{"point moves new connections and leaves old ones", points},
		{"a cut resets the sessions to one target", cuts},
		{"a cut resets sessions that are sending", cutsSenders},
		{"a cut works while there is no target", cutsWithoutTarget},
		{"a cut after several failovers finds its target's sessions", cutsOneOfMany},
		{"readers spread over their targets", spreads},
		{"a target that is no longer listed drains", drains},
		{"sync again changes nothing", syncsAgain},
		{"busy sessions survive every change of others", survivesChanges},
		{"sync cuts an endpoint that is gone", retires},
		{"an endpoint gets another address", readdresses},
		{"sync takes over after kill -9", takesOver},
		{"sync mends what someone else broke", mends},
		{"run mends at once", mendsAtOnce},
		{"remove leaves nothing, also of an earlier process", removes},
		{"only those who may connect reach the target", admits},
		{"who may connect stays so after kill -9 and after damage", admitsAfterDamage},
		{"many networks may connect", admitsMany},
		{"two homes side by side", twoHomes},
		{"two hundred endpoints", twoHundred},
		{"what cannot work is refused", refusesNonsense},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) { c.test(newBench(t, d)) })
	}
}

func reaches(b *bench) {
	one, two, three := NewServer(b), NewServer(b), NewServer(b)
	listenOne, listenTwo := SomeListen(), SomeListen()
	listenThree := netip.AddrPortFrom(listenOne.Addr(), 5433)
	b.sync(at(listenOne, one), at(listenTwo, two), at(listenThree, three))
	Join(b, listenOne, one)
	Join(b, listenTwo, two)
	Join(b, listenThree, three)
}

func refusesWithoutTargets(b *bench) {
	listen, server := SomeListen(), NewServer(b)
	b.sync(at(listen))
	Refuses(b, listen)
	b.point(listen, server)
	s := Join(b, listen, server)
	b.point(listen)
	Refuses(b, listen)
	Check(b, s, server)
	b.sync(at(listen, server))
	Join(b, listen, server)
}

func goesAway(b *bench) {
	listen, server := SomeListen(), NewServer(b)
	b.sync(at(listen, server))
	s := Join(b, listen, server)
	away := at(listen)
	away.Away = true
	b.change(away)
	Refuses(b, listen)
	Check(b, s, server)
	b.sync(away)
	Refuses(b, listen)
	Check(b, s, server)
	b.point(listen, server)
	Join(b, listen, server)
	Check(b, s, server)
}

func points(b *bench) {
	old, next := NewServer(b), NewServer(b)
	listen, other := SomeListen(), SomeListen()
	b.sync(at(listen, old), at(other, old))
	s := Join(b, listen, old)
	b.point(listen, next)
	Join(b, listen, next)
	Join(b, other, old)
	Check(b, s, old)
	b.point(listen, next)
	b.point(listen, old)
	Join(b, listen, old)
	added := SomeListen()
	b.point(added, next)
	Join(b, added, next)
}

func cuts(b *bench) {
	old, process := NewFreezer(b)
	next := NewServer(b)
	listen, other := SomeListen(), SomeListen()
	b.sync(at(listen, old), at(other, old))
	lost := JoinHalf(b, listen, old, 20)
	elsewhere := Join(b, other, old)
	process.Freeze(b)

	begin := time.Now()
	b.point(listen, next)
	survivor := Join(b, listen, next)
	b.cut(listen, old, len(lost))
	last := AllEnded(b, lost)
	if took := last.Sub(begin); took > CutTime {
		b.Errorf("the last client noticed after %s", took)
	}
	Check(b, survivor, next)
	Join(b, listen, next)
	b.cut(listen, old, 0)
	if _, err := elsewhere.Ended(CutTime / 10); err == nil {
		b.Error("a session through another endpoint was cut")
	}
	b.cut(other, old, 1)
}

// sendersTime is longer than CutTime, because a sender first has to get a turn beside the others.
var sendersTime = 2 * CutTime

func cutsSenders(b *bench) {
	old, process := NewFreezer(b)
	next := NewServer(b)
	listen := SomeListen()
	b.sync(at(listen, old))
	var ends []<-chan time.Time
	for range 4 {
		ends = append(ends, Join(b, listen, old).Flood())
	}
	process.Freeze(b)
	begin := time.Now()
	b.point(listen, next)
	b.cut(listen, old, len(ends))
	for _, end := range ends {
		select {
		case at := <-end:
			if took := at.Sub(begin); took > sendersTime {
				b.Errorf("a sender noticed after %s", took)
			}
		case <-time.After(answerTime):
			b.Error("a sender did not notice")
		}
	}
}

func cutsWithoutTarget(b *bench) {
	server, process := NewFreezer(b)
	listen := SomeListen()
	b.sync(at(listen, server))
	lost := JoinHalf(b, listen, server, 10)
	process.Freeze(b)
	b.point(listen)
	b.cut(listen, server, len(lost))
	AllEnded(b, lost)
	Refuses(b, listen)
}

func cutsOneOfMany(b *bench) {
	servers := make([]netip.AddrPort, 6)
	sessions := make([]*Session, len(servers))
	listen := SomeListen()
	b.sync(at(listen))
	for i := range servers {
		servers[i] = NewServer(b)
		b.point(listen, servers[i])
		sessions[i] = Join(b, listen, servers[i])
	}
	b.cut(listen, servers[1], 1)
	if _, err := sessions[1].Ended(answerTime); err != nil {
		b.Error(err)
	}
	for i, s := range sessions {
		if i != 1 {
			Check(b, s, servers[i])
		}
	}
}

func spreads(b *bench) {
	servers := []netip.AddrPort{NewServer(b), NewServer(b), NewServer(b)}
	listen := SomeListen()
	b.sync(at(listen, servers...))
	reached := map[netip.AddrPort]int{}
	for range 30 {
		server, _, err := joinAny(b, listen).Who()
		if err != nil {
			b.Fatal(err)
		}
		reached[server]++
	}
	for _, s := range servers {
		if reached[s] < 8 {
			b.Errorf("of 30 connections %d reached %s", reached[s], s)
		}
	}
	b.point(listen, servers[0], servers[1])
	for range 10 {
		if server, _, err := joinAny(b, listen).Who(); err != nil || server == servers[2] {
			b.Fatalf("reached %s, error %v", server, err)
		}
	}
	b.cut(listen, servers[2], reached[servers[2]])
	b.point(listen, servers[2])
	Join(b, listen, servers[2])
	b.point(listen, servers...)
	joinAny(b, listen)
}

func drains(b *bench) {
	stays, goes := NewServer(b), NewServer(b)
	listen := SomeListen()
	b.sync(at(listen, goes))
	s := Join(b, listen, goes)
	b.sync(at(listen, stays))
	Join(b, listen, stays)
	Check(b, s, goes)
	b.cut(listen, goes, 1)
}

func syncsAgain(b *bench) {
	server := NewServer(b)
	listen, other := SomeListen(), SomeListen()
	b.sync(at(listen, server), at(other))
	s := Join(b, listen, server)
	for range 3 {
		if mended := b.sync(at(other), at(listen, server, server)); len(mended) > 0 {
			b.Errorf("mended %q where nothing was broken", mended)
		}
	}
	b.sync(at(listen, server), at(other, server), at(SomeListen(), server))
	Check(b, s, server)
	Join(b, other, server)
}

// survivesChanges talks all the time while the rest of the home changes.
func survivesChanges(b *bench) {
	server, other := NewServer(b), NewServer(b)
	listen, changing := SomeListen(), SomeListen()
	b.sync(at(listen, server))
	s := Join(b, listen, server)
	stop, result := make(chan bool), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				result <- nil
				return
			default:
			}
			if _, _, err := s.Who(); err != nil {
				result <- err
				return
			}
		}
	}()
	for range 5 {
		b.sync(at(listen, server), at(changing, other))
		b.point(changing, server)
		b.sync(at(listen, server, other), at(changing))
		b.sync(at(listen, server))
	}
	close(stop)
	if err := <-result; err != nil {
		b.Errorf("a session of an endpoint that stayed: %v", err)
	}
}

func retires(b *bench) {
	server := NewServer(b)
	gone, stays := SomeListen(), SomeListen()
	b.sync(at(gone, server), at(stays, server))
	lost, kept := Join(b, gone, server), Join(b, stays, server)
	b.sync(at(stays, server))
	if _, err := lost.Ended(answerTime); err != nil {
		b.Errorf("session of an endpoint that is gone: %v", err)
	}
	Check(b, kept, server)
	Refuses(b, gone)
}

// earlier makes endpoints real in another process and kills that.
func (b *bench) earlier(all ...endpoint.Endpoint) (kill func()) {
	b.Helper()
	part, err := json.Marshal(forwarderPart{b.home, b.dir, all})
	if err != nil {
		b.Fatal(err)
	}
	c := start(b, "forwarder "+string(part))
	if line := c.Line(b); line != "synced" {
		b.Fatalf("earlier process: %s", line)
	}
	return c.kill
}

func takesOver(b *bench) {
	server, next := NewServer(b), NewServer(b)
	stays, moves, gone := SomeListen(), SomeListen(), SomeListen()
	kill := b.earlier(at(stays, server), at(moves, server), at(gone, server))
	kept, moved, lost := Join(b, stays, server), Join(b, moves, server), Join(b, gone, server)
	kill()
	Join(b, stays, server)
	b.sync(at(stays, server), at(moves, next))
	Check(b, kept, server)
	Check(b, moved, server)
	Join(b, moves, next)
	b.cut(moves, server, 1)
	if _, err := lost.Ended(answerTime); err != nil {
		b.Errorf("session of an endpoint that is gone: %v", err)
	}
	Refuses(b, gone)
	if mended := b.sync(at(stays, server), at(moves, next)); len(mended) > 0 {
		b.Errorf("mended %q after it was taken over", mended)
	}
}

func mends(b *bench) {
	server := NewServer(b)
	listen, closed := SomeListen(), SomeListen()
	all := []endpoint.Endpoint{at(listen, server), at(closed)}
	b.sync(all...)
	s := Join(b, listen, server)
	b.Break(b.T, b.home, b.dir)
	if mended := b.sync(all...); len(mended) == 0 {
		b.Error("sync does not say what it mended")
	}
	if b.SessionsSurviveBreak {
		Check(b, s, server)
	}
	Join(b, listen, server)
	Refuses(b, closed)
	if mended := b.sync(all...); len(mended) > 0 {
		b.Errorf("mended %q twice", mended)
	}
}

func mendsAtOnce(b *bench) {
	server := NewServer(b)
	listen := SomeListen()
	b.sync(at(listen, server))
	done := make(chan error)
	ctx, cancel := context.WithCancel(b.ctx)
	go func() { done <- b.fw.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Errorf("run: %v", err)
		}
	})
	s := Join(b, listen, server)
	var mended []string
	for range 3 {
		b.Break(b.T, b.home, b.dir)
		begin := time.Now()
		if b.SessionsSurviveBreak {
			Check(b, s, server)
		}
		testkit.Eventually(b, 15*time.Second, func() error {
			c, err := Dial(listen)
			if err == nil {
				defer c.Close()
				_, _, err = c.Who()
			}
			return err
		})
		if took := time.Since(begin); took > patience.For(500*time.Millisecond) {
			b.Errorf("mended after %s", took)
		}
		// It answers before Run has finished with it. So this waits for Run before the next time.
		mended = append(mended, b.sync(at(listen, server))...)
	}
	if len(mended) < 3 {
		b.Errorf("mended %q, want all three times", mended)
	}
}

func removes(b *bench) {
	server := NewServer(b)
	listen := SomeListen()
	kill := b.earlier(at(listen, server), at(SomeListen()))
	s := Join(b, listen, server)
	kill()
	if b.Traces(b.T, b.home, b.dir) == "" {
		b.Fatal("an endpoint leaves no trace: the test would see nothing")
	}
	for range 2 {
		if err := b.fw.Remove(b.ctx); err != nil {
			b.Fatal(err)
		}
		if left := b.Traces(b.T, b.home, b.dir); left != "" {
			b.Errorf("left behind:\n%s", left)
		}
	}
	if _, err := s.Ended(answerTime); err != nil {
		b.Errorf("session after remove: %v", err)
	}
	Refuses(b, listen)
	b.sync(at(listen, server))
	Join(b, listen, server)
}

func twoHomes(b *bench) {
	second := newBench(b.T, b.Driver)
	server := NewServer(b)
	mine, theirs := SomeListen(), SomeListen()
	b.sync(at(mine, server))
	second.sync(at(theirs, server))
	s := Join(b, theirs, server)
	b.point(mine)
	b.sync(at(mine))
	if mended := second.sync(at(theirs, server)); len(mended) > 0 {
		b.Errorf("the second home mended %q", mended)
	}
	if err := b.fw.Remove(b.ctx); err != nil {
		b.Fatal(err)
	}
	Check(b, s, server)
	Join(b, theirs, server)
	second.cut(theirs, server, 2)
}

func twoHundred(b *bench) {
	server, next := NewServer(b), NewServer(b)
	all := make([]endpoint.Endpoint, 200)
	for i := range all {
		all[i] = at(SomeListen(), server)
	}
	b.sync(all...)
	for _, e := range all {
		s := Join(b, e.Listen, server)
		s.Close()
	}
	first := all[0]
	s := Join(b, first.Listen, server)
	b.point(first.Listen, next)
	Join(b, first.Listen, next)
	b.cut(first.Listen, server, 1)
	if _, err := s.Ended(answerTime); err != nil {
		b.Error(err)
	}
	all[0] = at(first.Listen, next)
	if mended := b.sync(all...); len(mended) > 0 {
		b.Errorf("mended %q", mended)
	}
	Join(b, all[199].Listen, server)
}

func refusesNonsense(b *bench) {
	listen, server := SomeListen(), NewServer(b)
	if err := b.fw.Point(b.ctx, at(listen, server)); !errors.Is(err, endpoint.ErrNotSynced) {
		b.Errorf("point before sync: %v", err)
	}
	b.sync(at(listen, server))
	outside := netip.MustParseAddrPort("192.0.2.77:5432")
	for name, all := range map[string][]endpoint.Endpoint{
		"twice the same address": {at(listen, server), at(listen)},
		"port 0":                 {at(netip.AddrPortFrom(listen.Addr(), 0), server)},
		"leads to itself":        {at(listen, listen)},
		"not in the pool":        {at(outside, server)},
		"no IPv4":                {at(netip.MustParseAddrPort("[::1]:5432"), server)},
		"lets IPv6 in":           {only(at(listen, server), netip.MustParsePrefix("::/0"))},
	} {
		if _, err := b.fw.Sync(b.ctx, all); !errors.Is(err, endpoint.ErrInvalid) {
			b.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.fw.Cut(b.ctx, netip.AddrPort{}, server); !errors.Is(err, endpoint.ErrInvalid) {
		b.Errorf("cut nothing: %v", err)
	}
	Join(b, listen, server)
}
