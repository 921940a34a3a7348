package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/testkit/golden"
)

// TestScripts plays the stories in testdata: commands, then "----", then what the
// planner decided.
func TestScripts(t *testing.T) {
	golden.Each(t, playFile)
}

func playFile(t *testing.T, f *golden.File) {
	p := &player{sim: newSim("a", "b", "c")}
	for line := range strings.Lines(f.Input) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fmt.Fprintf(&p.text, "> %s\n", line)
		if err := p.play(strings.Fields(line)); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
	if err := p.sim.errors(); err != nil {
		t.Errorf("%v", err)
	}
	f.Check(p.text.String())
}

// player plays a script and writes its transcript.
type player struct {
	sim  *sim
	text strings.Builder
	last string
}

// quietAfter is after how many rounds without news "run" ends.
const quietAfter = 15

// play carries one command out. After "run" it is written what happened, after
// "settled" only how it ended.
func (p *player) play(words []string) error {
	s := p.sim
	switch verb, rest := words[0], words[1:]; verb {
	case "run":
		return p.run()
	case "settled":
		quiet := &player{sim: s}
		err := quiet.run()
		p.last = s.table()
		fmt.Fprintf(&p.text, "%s\n%s", s.ran, p.last)
		return err
	case "tick":
		d, err := time.ParseDuration(rest[0])
		for range int(d / time.Second) {
			p.round()
		}
		return err
	case "hosts":
		s.hosts = newSim(rest...).hosts
	case "host", "agent", "drain", "undrain", "forget", "slow", "foreign":
		return p.hostCommand(verb, rest)
	case "tasks":
		s.failTasks, _ = strconv.Atoi(rest[1])
	case "task-kills-agent":
		s.killAgents = 1
	case "upgrade":
		s.ownNames = true
	case "patroni-late":
		s.lag, _ = strconv.Atoi(rest[0])
		s.late = s.lag
	case "no-overcommit":
		s.policy.Overcommit = false
	default:
		return p.wish(verb, rest)
	}
	return nil
}

func (p *player) hostCommand(verb string, rest []string) error {
	h := p.sim.host(rest[0])
	if h == nil {
		return fmt.Errorf("no host %s", rest[0])
	}
	switch verb {
	case "host":
		return hostState(h, rest[1:])
	case "agent":
		h.agent = rest[1] == "back"
	case "drain", "undrain":
		h.Draining = verb == "drain"
	case "forget":
		p.sim.hosts = slices.DeleteFunc(p.sim.hosts, func(x *simHost) bool { return x == h })
	case "slow":
		h.slow, _ = strconv.Atoi(rest[1])
	case "foreign":
		port, err := strconv.Atoi(rest[1])
		h.foreign = append(h.foreign, port)
		return err
	}
	return nil
}

func hostState(h *simHost, words []string) error {
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		n, _ := strconv.Atoi(value)
		switch name {
		case "lost":
			h.up = false
		case "back":
			h.up, h.agent = true, true
		case "shares":
			h.Shares = true
		case "full", "emptied":
			h.full = name == "full"
		case "zone":
			h.Zone = value
		case "memory":
			h.Memory = int64(n) << 30
		case "major":
			h.Majors = []int{n}
		default:
			return fmt.Errorf("a host cannot be %s", word)
		}
	}
	return nil
}

// wish changes what is wanted.
func (p *player) wish(verb string, rest []string) error {
	want := &p.sim.want
	switch verb {
	case "want":
		return p.wantInstance(rest)
	case "cluster":
		want.SpreadZones = slices.Contains(rest, "spread")
	case "zones":
		want.Zones = rest
	case "add":
		seat := seatWith(rest[1:])
		seat.Key = rest[0]
		want.Seats = append(slices.Clone(want.Seats), seat)
	case "remove":
		want.Seats = slices.DeleteFunc(slices.Clone(want.Seats), func(s Seat) bool { return s.Key == rest[0] })
	case "class":
		p.changeClass(rest)
	case "promotable":
		want.Seats = slices.Clone(want.Seats)
		for i := range want.Seats {
			want.Seats[i].NoFailover = want.Seats[i].NoFailover && want.Seats[i].Key != rest[0] || want.Seats[i].Key == rest[0] && rest[1] == "off"
		}
	case "password":
		want.Owner.Serial++
		want.Change++
	case "reboot":
		p.reboot(rest)
	case "failover":
		want.Failover++
		want.FailoverSeat = ""
		if len(rest) > 1 {
			want.FailoverSeat = rest[1]
		}
	case "stop", "start", "delete":
		want.State = map[string]member.Want{"stop": member.Stopped, "start": member.Running, "delete": member.Absent}[verb]
		want.Change++
	case "final-snapshot":
		want.Last = &Seat{Limits: limitsOf("db.t3.micro")}
	case "follow":
		want.Upstream = &patroni.Upstream{Host: "10.9.9.9", Port: 5432, Slot: "follow_db_1"}
	case "promote":
		want.Upstream = nil
	case "restore":
		want.Restore = &member.Restore{Database: "db-0", Repository: "main", Label: "20261101-000000F", Newest: true}
	case "clone":
		want.Restore = &member.Restore{Live: true, Database: "db-0"}
		p.sim.source = sourceOf(rest)
	case "source":
		p.sim.source = sourceOf(rest)
	case "backups":
		want.BackedUp, want.Archive = true, &member.Archive{Repositories: []string{"main"}}
	case "backing-up":
		p.sim.backingUp = rest[0] == "on"
	case "backed-up":
		p.sim.backup, p.sim.backingUp = &member.Copy{Repository: "main", Label: rest[0]}, false
	case "wait-for-standby":
		want.WaitForStandby = true
	case "restore-fails":
		p.sim.unrestorable = rest[0] == "on"
	default:
		return fmt.Errorf("unknown command")
	}
	return nil
}

// sourceOf is where the database has members that is cloned: "a=primary b c=down", or "gone".
func sourceOf(words []string) (s Source) {
	for _, word := range words {
		host, is, _ := strings.Cut(word, "=")
		if host == "gone" {
			return Source{Gone: true}
		}
		s.Copies = append(s.Copies, Copy{Host: host, Primary: is == "primary", Ready: is != "down"})
	}
	return s
}

func seatWith(words []string) Seat {
	seat := Seat{Limits: limitsOf("db.t3.micro")}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "class":
			seat.Limits = limitsOf(value)
		case "tier":
			seat.Tier, _ = strconv.Atoi(value)
		case "zone":
			seat.Zone = value
		case "nofailover":
			seat.NoFailover = true
		}
	}
	return seat
}

func limitsOf(class string) member.Limits {
	c, ok := spec.LookupClass(class)
	if !ok {
		panic("no class " + class)
	}
	return member.Limits{CPUs: float64(c.CPUs), MemoryBytes: c.Memory}
}

// wantInstance makes or changes an instance: "want instance", "want multi-az".
func (p *player) wantInstance(words []string) error {
	want := &p.sim.want
	seat := seatWith(words)
	want.SpreadZones, want.Zone, seat.Zone = true, seat.Zone, ""
	n := 1
	if words[0] == "multi-az" {
		n = 2
	}
	if len(want.Seats) > 0 {
		seat = want.Seats[0]
		want.Change++
	}
	want.Seats = slices.Repeat([]Seat{seat}, n)
	return nil
}

func (p *player) changeClass(words []string) {
	want := &p.sim.want
	want.Seats = slices.Clone(want.Seats)
	for i := range want.Seats {
		if len(words) == 1 || want.Seats[i].Key == words[1] {
			want.Seats[i].Limits = limitsOf(words[0])
			want.Seats[i].Restart++
		}
	}
	want.Change++
}

func (p *player) reboot(words []string) {
	want := &p.sim.want
	if len(words) == 0 {
		want.Reboot++
		return
	}
	want.Seats = slices.Clone(want.Seats)
	for i := range want.Seats {
		if want.Seats[i].Key == words[0] {
			want.Seats[i].Reboot++
		}
	}
}

func (p *player) run() error {
	for quiet := 0; quiet < quietAfter; quiet++ {
		if p.round() {
			quiet = 0
		}
		if p.sim.ran > time.Hour {
			return fmt.Errorf("it does not come to rest")
		}
	}
	return nil
}

// round lets a second pass and writes down what is new, if anything.
func (p *player) round() bool {
	p.sim.round()
	now := p.sim.table()
	if now == p.last {
		return false
	}
	p.last = now
	fmt.Fprintf(&p.text, "%s\n%s", p.sim.ran, now)
	return true
}
