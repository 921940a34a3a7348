package plan

import (
	"fmt"
	"strings"
	"testing"
)

// moments are stories of which every second is a bad one to lose a host.
var moments = []struct {
	name  string
	hosts string
	make  []string
	then  []string
}{
	{"a second standby is removed", "a b c", cluster(3), []string{"remove i3"}},
	{"the first standby is removed", "a b c", cluster(3), []string{"remove i2"}},
	{"the writer is removed", "a b c", cluster(3), []string{"remove i1"}},
	{"a standby may not be promoted any more", "a b c", cluster(3), []string{"promotable i2 off"}},
	{"a reader takes the place of another", "a b c", cluster(2), []string{"add i3", "tick 4s", "remove i2"}},
	{"the new reader is not in sync yet", "a b c", cluster(2), []string{"patroni-late 9", "add i3", "tick 6s", "remove i2"}},
	{"one reader comes beside the primary, the other goes", "a b", cluster(3), []string{"remove i2"}},
	{"the standby's host is drained", "a b c", []string{"want multi-az"}, []string{"drain b"}},
	{"the primary's host is drained", "a b c", []string{"want multi-az"}, []string{"drain a"}},
	{"a host with a reader is drained", "a b c", cluster(4), []string{"drain b"}},
	{"a host with writer and reader is drained", "a b c", cluster(4), []string{"drain a"}},
	{"there is room beside the primary only", "a b", cluster(2), []string{"drain b"}},
	{"the reader beside the writer takes over", "a b c", cluster(4), []string{"failover to i4"}},
	{"the writer moves to a host with a reader", "a b c", cluster(5), []string{"failover to i2"}},
	{"settings roll over two hosts", "a b", cluster(3), []string{"class db.m5.large"}},
}

func cluster(n int) []string {
	commands := []string{"cluster"}
	for i := range n {
		commands = append(commands, fmt.Sprintf("add i%d", i+1))
	}
	return commands
}

// begun is a world at rest, a few seconds later.
func begun(t *testing.T, hosts string, commands []string, later int) *player {
	t.Helper()
	p := &player{sim: newSim(strings.Fields(hosts)...)}
	p.sim.checkEvery = 17
	p.do(t, commands...)
	p.do(t, "settled", fmt.Sprintf("tick %ds", later))
	return p
}

func (p *player) do(t *testing.T, commands ...string) {
	t.Helper()
	for _, command := range commands {
		if err := p.play(strings.Fields(command)); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
	}
}

// TestLossOfThePrimarysHostAtAnyMoment: no acknowledged commit is lost, which the
// simulator checks at every election, and somebody takes over if any standby was
// in sync. The host comes back, and all is well again.
func TestLossOfThePrimarysHostAtAnyMoment(t *testing.T) {
	for _, c := range moments {
		t.Run(c.name, func(t *testing.T) {
			for second := range 16 {
				for late := range 3 { // the standby that confirms a commit takes turns
					p := begun(t, c.hosts, c.make, late)
					p.do(t, c.then...)
					p.do(t, fmt.Sprintf("tick %ds", second))
					p.lose(t, fmt.Sprintf("after %d s (%d)", second, late))
				}
			}
		})
	}
}

func (p *player) lose(t *testing.T, when string) {
	t.Helper()
	s := p.sim
	leader := find(s.layout, s.leader)
	if leader == nil {
		return // just now somebody is being elected
	}
	host, voters := leader.Host, 0
	for _, name := range s.sync.Standbys {
		if m := s.named(name); m != nil && m.running && m.host != host && !m.have.NoFailover {
			voters++
		}
	}
	enough := voters > s.sync.Quorum
	p.do(t, "host "+host+" lost", "tick 6s")
	if m := s.named(s.leader); enough && (m == nil || m.host == host) {
		t.Errorf("%s: nobody took over from %s\n%s", when, leader.Name, s.table())
	}
	p.do(t, "host "+host+" back", "settled")
	if err := s.errors(); err != nil {
		t.Errorf("%s: %v", when, err)
	}
}

// TestAStandbyIsAlwaysInSync: whatever is done to a database on purpose, one standby
// confirms its commits, and none is deleted before another one has taken its place.
func TestAStandbyIsAlwaysInSync(t *testing.T) {
	for _, c := range moments {
		t.Run(c.name, func(t *testing.T) {
			p := begun(t, c.hosts, c.make, 0)
			s := p.sim
			p.do(t, c.then...)
			for range 40 {
				s.round()
				if s.serving() && len(s.confirming) == 0 {
					t.Errorf("at %s no standby confirms commits\n%s", s.ran, s.table())
				}
			}
			if err := s.errors(); err != nil {
				t.Error(err)
			}
		})
	}
}
