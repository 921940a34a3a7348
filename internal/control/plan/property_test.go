package plan

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/testkit/depth"
)

var (
	seed = flag.Uint64("seed", 0, "play one random story only, and write it down")
	runs = flag.Int("runs", 3000, "how many random stories are played")
)

// numbers are the seeds of the stories that are played.
func numbers(t *testing.T) []uint64 {
	t.Helper()
	if *seed > 0 {
		return []uint64{*seed}
	}
	all := make([]uint64, *runs)
	for i := range all {
		all[i] = uint64(i) + 1
	}
	return depth.Some(t, *runs/6, all)
}

// TestRandomStories plays random wishes and faults. What must hold of every
// decision is checked by the simulator on the way; at the end everything comes
// back, and the database must come to rest as wanted.
func TestRandomStories(t *testing.T) {
	for _, number := range numbers(t) {
		s := newStory(number)
		if *seed > 0 {
			s.log = t.Logf
		}
		if err := s.play(); err != nil {
			t.Fatalf("seed %d: %v\nsee it with: go test -run RandomStories -v -seed %d", number, err, number)
		}
	}
}

// TestRandomRestores plays such stories with databases that are restored. The faults come early,
// and nobody but a member that restores ever begins the database.
func TestRandomRestores(t *testing.T) {
	for _, number := range numbers(t) {
		s := newStory(number)
		s.sim.want.Upstream = nil
		clone := s.rnd.IntN(2) == 0
		if clone {
			s.do("clone " + s.copies())
		} else {
			s.do("restore")
		}
		if *seed > 0 {
			s.log = t.Logf
		}
		for range 1 + s.rnd.IntN(10) {
			if s.rnd.IntN(3) == 0 {
				s.event()
			}
			if clone && s.rnd.IntN(4) == 0 {
				s.do("source " + s.copies())
			}
			s.second()
		}
		s.sim.source = s.everywhere()
		if err := s.play(); err != nil {
			t.Fatalf("seed %d: %v\nsee it with: go test -run RandomRestores -v -seed %d", number, err, number)
		}
	}
}

type story struct {
	*player
	rnd     *rand.Rand
	cluster bool
	nextKey int
	log     func(string, ...any)
}

func newStory(seed uint64) *story {
	rnd := rand.New(rand.NewPCG(seed, 1))
	hosts := []string{"a", "b", "c", "a2", "d"}[:2+rnd.IntN(4)]
	st := &story{player: &player{sim: newSim(hosts...)}, rnd: rnd, log: func(string, ...any) {}}
	st.sim.checkEvery = 17
	st.begin()
	return st
}

// begin chooses what kind of database it is.
func (st *story) begin() {
	switch st.rnd.IntN(5) {
	case 0:
		st.do("want instance")
	case 1, 2:
		st.do("want multi-az")
	default:
		st.cluster = true
		if st.rnd.IntN(2) == 0 {
			st.do("cluster spread")
		}
		for range 1 + st.rnd.IntN(4) {
			st.addInstance()
		}
	}
	if st.rnd.IntN(8) == 0 {
		st.do("follow")
	}
}

// copies are members of a source on some hosts, of which some answer.
func (st *story) copies() string {
	var words []string
	for _, h := range st.sim.hosts {
		if is := st.rnd.IntN(4); is < 3 {
			words = append(words, h.Name+[]string{"=primary", "=standby", "=down"}[is])
		}
	}
	return strings.Join(words, " ")
}

// everywhere is a source that answers on every host.
func (st *story) everywhere() (all Source) {
	for _, h := range st.sim.hosts {
		all.Copies = append(all.Copies, Copy{Host: h.Name, Ready: true})
	}
	return all
}

func (st *story) do(command string) {
	st.log("%s > %s", st.sim.ran, command)
	if err := st.player.play(strings.Fields(command)); err != nil {
		st.sim.fail("%s: %v", command, err)
	}
}

func (st *story) addInstance() {
	st.nextKey++
	command := fmt.Sprintf("add i%d tier=%d", st.nextKey, st.rnd.IntN(3))
	if st.rnd.IntN(6) == 0 && len(st.sim.want.Seats) > 0 {
		command += " nofailover"
	}
	st.do(command)
}

func (st *story) play() error {
	for range 40 + st.rnd.IntN(120) {
		if st.rnd.IntN(8) == 0 {
			st.event()
		}
		st.second()
		if len(st.sim.wrong) > 0 || st.sim.gone {
			break
		}
	}
	return st.end()
}

func (st *story) second() {
	before := st.text.Len()
	if st.player.round() {
		st.log("%s", st.text.String()[before:])
	}
}

// event is something that users or fate do.
func (st *story) event() {
	h := st.sim.hosts[st.rnd.IntN(len(st.sim.hosts))].Name
	events := []func(){
		func() { st.do("host " + h + " lost") },
		func() { st.do("host " + h + " back") },
		func() { st.do("host " + h + " back") },
		func() { st.do("agent " + h + " dies") },
		func() { st.do("agent " + h + " back") },
		func() { st.do("drain " + h) },
		func() { st.do("undrain " + h) },
		func() { st.do(fmt.Sprintf("slow %s %d", h, st.rnd.IntN(8))) },
		func() { st.do(fmt.Sprintf("foreign %s %d", h, 15432+st.rnd.IntN(4))) },
		func() { st.do(fmt.Sprintf("tasks fail %d", 1+st.rnd.IntN(2))) },
		func() { st.do("task-kills-agent") },
		func() { st.do("host " + h + " full") },
		func() { st.do("host " + h + " emptied") },
		func() { st.do(fmt.Sprintf("patroni-late %d", st.rnd.IntN(5))) },
		func() { st.do("reboot") },
		func() { st.do("failover") },
		func() { st.do("password") },
		func() { st.do("class db.m5.large") },
		func() { st.do("stop") },
		func() { st.do("start") },
		func() { st.do("start") },
		st.resize,
		st.resize,
		func() {
			if st.rnd.IntN(6) == 0 {
				st.do("delete")
			}
		},
		func() { st.do("promote") },
		func() { st.do("upgrade") },
	}
	if st.sim.want.State != member.Absent {
		events[st.rnd.IntN(len(events))]()
	}
}

// resize adds or removes members, or asks single ones for something.
func (st *story) resize() {
	want := st.sim.want
	if !st.cluster {
		st.do([]string{"want instance", "want multi-az"}[st.rnd.IntN(2)])
		return
	}
	if len(want.Seats) == 0 || len(want.Seats) < 5 && st.rnd.IntN(2) == 0 {
		st.addInstance()
		return
	}
	key := want.Seats[st.rnd.IntN(len(want.Seats))].Key
	st.do([]string{"remove ", "remove ", "reboot ", "failover to "}[st.rnd.IntN(4)] + key)
	st.allowOne()
}

// allowOne is what ForCluster does: somebody must be allowed to be the writer.
func (st *story) allowOne() {
	want := &st.sim.want
	want.Seats = slices.Clone(want.Seats)
	allowOne(want.Seats)
}

// end has everything come back, and waits until it is as wanted.
func (st *story) end() error {
	st.heal()
	for range 600 {
		st.second()
		if st.settled() == "" {
			break
		}
	}
	if why := st.settled(); why != "" {
		st.sim.fail("it does not settle: %s\n%s", why, st.sim.table())
	} else {
		st.allNamed()
		st.survive()
	}
	return st.sim.errors()
}

// allNamed: none of a database that follows another one has a name that members of that
// one may have.
func (st *story) allNamed() {
	s := st.sim
	unnamed := slices.ContainsFunc(s.layout.Members, func(m Placed) bool { return !m.OwnName && !m.Leaving })
	if s.want.State == member.Running && s.want.Upstream != nil && unnamed {
		s.fail("a member has no name of its own\n%s", s.table())
	}
}

// survive loses the primary's host: whoever is elsewhere and may take over does.
func (st *story) survive() {
	s := st.sim
	leader := find(s.layout, s.leader)
	if s.want.State != member.Running || s.want.Upstream != nil || leader == nil || !st.elsewhere(leader.Host) {
		return
	}
	old := leader.Name
	for range 3 {
		st.second() // what was published last is heard
	}
	st.do("host " + leader.Host + " lost")
	for range 5 {
		st.second()
	}
	if !s.serving() || s.leader == old {
		s.fail("nobody took over from %s on %s\n%s", old, leader.Host, s.table())
	}
}

// elsewhere: a member on another host may be promoted.
func (st *story) elsewhere(host string) bool {
	return slices.ContainsFunc(st.sim.layout.Members, func(m Placed) bool { return m.Host != host && !m.Barred })
}

func (st *story) heal() {
	s := st.sim
	for _, h := range s.hosts {
		h.up, h.agent, h.Draining, h.slow, h.foreign, h.full = true, true, false, 0, nil, false
	}
	s.failTasks, s.killAgents, s.lag, s.late, s.ownNames = 0, 0, 0, 0, true
	st.log("%s > everything comes back", s.ran)
	if s.want.SpreadZones && s.want.State == member.Running {
		st.fitZones()
	}
}

// fitZones takes back seats that there are no zones for.
func (st *story) fitZones() {
	zones := map[string]bool{}
	for _, h := range st.sim.hosts {
		zones[h.Zone] = true
	}
	want := &st.sim.want
	if extra := len(want.Seats) - len(zones); extra > 0 {
		want.Seats = slices.Clone(want.Seats)[:len(zones)]
	}
}

// settled says what is missing, or "".
func (st *story) settled() string {
	s := st.sim
	l := s.layout
	switch {
	case s.want.State == member.Absent:
		if !s.gone || len(s.members) > 0 {
			return "not gone: " + strings.Join(slices.Sorted(maps.Keys(s.members)), " ")
		}
		return ""
	case len(l.Steps) > 0:
		return "step: " + l.Steps[len(l.Steps)-1].Name
	case len(s.problems) > 0:
		return "problem: " + s.problems[0]
	case l.Changed != s.want.Change:
		return "change not done"
	case len(s.members) != len(l.Members):
		return "leftovers"
	case s.want.State == member.Stopped:
		return ""
	}
	return st.filled()
}

func (st *story) filled() string {
	s := st.sim
	l := s.layout
	if len(s.want.Seats) == 0 {
		if len(l.Members) > 1 || len(l.Members) == 1 && !l.Members[0].Stopped {
			return "more is kept than one stopped copy"
		}
		return ""
	}
	wanted, have := map[string]int{}, map[string]int{}
	for _, seat := range s.want.Seats {
		wanted[seat.Key]++
	}
	for _, m := range l.Members {
		seat := seatFor(s.want, m)
		if m.Going != Staying || m.Stopped || m.Boost || m.Barred != (seat.NoFailover && m.Name != s.leader) || m.Votes == m.Barred || m.Restarted != seat.Restart || m.Rebooted != seat.Reboot {
			return m.Name + " is not at rest"
		}
		leader := find(l, s.leader)
		if apart := leader != nil && m.Name != s.leader && m.Host == leader.Host && s.want.Upstream == nil && st.elsewhere(m.Host); !m.Barred && m.NoSync != apart {
			return m.Name + " is in the wrong set"
		}
		have[m.Seat]++
	}
	if !maps.Equal(wanted, have) {
		return fmt.Sprintf("seats %v, want %v", have, wanted)
	}
	if !s.serving() || !l.Created || l.Rebooted != s.want.Reboot || l.FailedOver != s.want.Failover {
		return "requests are not done"
	}
	return ""
}
