package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"howdah/internal/model/member"
)

// firstPort and firstRESTPort begin the ranges from which members get the ports
// of their host; both lie below the range of ephemeral ports.
const (
	firstPort     = 15432
	firstRESTPort = 25432
)

// seat gives every wanted seat a member, and marks members that have no seat. It reports whether
// every seat has a member.
func (w *work) seat() bool {
	w.reconsider()
	w.markSurplus()
	complete := true
	for _, s := range w.beginning(w.vacant()) {
		if w.firstComes() || w.awaitsFirst(s) || w.awaitsBackup() {
			complete = false
			continue
		}
		m, err := w.place(s)
		if err != nil {
			w.doing(stepNoHost)
			w.tell(Problem{Kind: kindOf(err), Text: err.Error()})
			complete = false
			continue
		}
		w.add(m)
	}
	return complete
}

// awaitsFirst reports whether the seat is of a later instance of a cluster that has never had a
// writer. With Patroni, the quickest member prepares the data and leads. So the oldest instance
// becomes the writer only if it starts alone.
func (p places) awaitsFirst(s Seat) bool {
	if s.Key == "" || p.Want.SpreadZones || p.Leader != "" || p.out.Layout.Created {
		return false
	}
	members := p.members()
	served := slices.ContainsFunc(members, func(m *Placed) bool { return m.Served })
	return !served && slices.ContainsFunc(members, func(m *Placed) bool { return m.Going == Staying && p.alive(m) })
}

// add adds a member. It may move the members in memory.
func (w *work) add(m Placed) {
	w.out.Layout.Members = append(w.out.Layout.Members, m)
	w.out.Layout.Next++
}

// vacant returns the seats that no staying member has.
func (p places) vacant() []Seat {
	var free []Seat
	anonymous := p.staying("")
	for _, s := range p.Want.Seats {
		taken := p.staying(s.Key) > 0
		if s.Key == "" {
			taken = anonymous > 0
			anonymous--
		}
		if !taken {
			free = append(free, s)
		}
	}
	return free
}

func (p places) staying(key string) int {
	n := 0
	for _, m := range p.members() {
		if m.Seat == key && m.Going == Staying {
			n++
		}
	}
	return n
}

// markSurplus finds the members whose seat is gone. Of interchangeable members, the least useful
// ones leave. Which these are shows only while there is a primary, and is decided anew until they
// are told to leave.
func (w *work) markSurplus() {
	for _, m := range w.members() {
		switch wanted := w.seatsLike(m); {
		case wanted == 0:
			m.Going = Surplus
		case m.Going == Surplus && w.primary() != nil:
			m.Going = Staying
		}
	}
	for w.primary() != nil {
		over := slices.DeleteFunc(w.members(), func(m *Placed) bool {
			return m.Going != Staying || w.staying(m.Seat) <= w.seatsLike(m)
		})
		if len(over) == 0 {
			return
		}
		slices.MinFunc(over, func(a, b *Placed) int { return w.worth(a) - w.worth(b) }).Going = Surplus
	}
}

func (p places) worth(m *Placed) int {
	switch {
	case m.Name == p.Leader:
		return 4
	case p.Want.SpreadZones && p.inZone(m.Zone) > 1:
		return -1
	case m.Barred && !seatFor(p.Want, *m).NoFailover:
		return 0 // chosen before
	case p.inSync(m) && p.alive(m):
		return 3
	case p.ready(m):
		return 2
	default:
		return 1
	}
}

// parked reports whether the member is the last copy of a cluster that has no
// instances just now: its data are kept for the next one.
func (k *known) parked(m *Placed) bool {
	return len(k.Want.Seats) == 0 && m.Going == Surplus && len(k.members()) == 1
}

// adoptParked gives the only copy, if its own seat is gone, to the first seat that is wanted. So no
// data need to be copied.
func (w *work) adoptParked() {
	all := w.members()
	if len(all) != 1 || len(w.Want.Seats) == 0 || w.seatsLike(all[0]) > 0 {
		return
	}
	m, s := all[0], w.Want.Seats[0]
	if !m.Stopped && s.Zone != "" && s.Zone != m.Zone {
		return
	}
	m.Going, m.Seat, m.Rebooted = Staying, s.Key, s.Reboot
	// It runs with the settings of another seat.
	m.Restarted = s.Restart - 1
}

// place finds a host for a seat.
func (p places) place(s Seat) (Placed, error) {
	hosts := p.candidates(s)
	if len(hosts) == 0 {
		return Placed{}, fmt.Errorf("%w%s: %s", errNoPlace, zoneText(p.zoneFor(s)), p.whyNot(s))
	}
	h := slices.MinFunc(hosts, func(a, b Host) int {
		return cmp.Or(
			cmp.Compare(p.cloneRank(a), p.cloneRank(b)),
			// A standby that cannot run what the database uses is of little use, wherever it is.
			cmp.Compare(p.lacksOfTheOthers(a), p.lacksOfTheOthers(b)),
			cmp.Compare(p.inZone(a.Zone), p.inZone(b.Zone)),
			cmp.Compare(p.onHost(a.Name), p.onHost(b.Name)),
			boolRank(a.Edgeless)-boolRank(b.Edgeless), // never a reason for fewer copies, or for closer ones
			cmp.Compare(a.Committed+p.promised(a), b.Committed+p.promised(b)),
			strings.Compare(a.Name, b.Name))
	})
	return Placed{
		Name: "m" + strconv.Itoa(p.out.Layout.Next+1), Seat: s.Key,
		Host: h.Name, Zone: h.Zone, Address: h.Address,
		Port:     p.freePort(h, firstPort),
		RESTPort: p.freePort(h, firstRESTPort),
		// A new member starts with the newest settings: nothing to restart for.
		Rebooted: s.Reboot, Restarted: s.Restart,
		Barred: s.NoFailover || p.unguarded(), Votes: !s.NoFailover,
		OwnName: p.OwnNames, OwnKey: p.newKeys(), Copy: p.copyOf(),
	}, nil
}

// unguarded reports whether there are data, but Patroni does not know yet that only standbys in
// sync may be promoted. A new member could then win an election without what was acknowledged while
// it copied. ballot says when such a member is let in.
func (p places) unguarded() bool {
	served := slices.ContainsFunc(p.members(), func(m *Placed) bool { return m.Served })
	return p.Want.Upstream == nil && (served || p.Leader != "") && (p.Sync.Leader == "" || p.Sync.Leader != p.Leader && p.Leader != "")
}

func zoneText(zone string) string {
	if zone == "" {
		return ""
	}
	return " in zone " + zone
}

// zoneFor returns the zone that a seat must be in, or "".
func (p places) zoneFor(s Seat) string {
	if s.Zone == "" && s.Key == "" && len(p.members()) == 0 {
		return p.Want.Zone
	}
	return s.Zone
}

func (p places) candidates(s Seat) []Host {
	var fit []Host
	for _, h := range p.Hosts {
		if p.unfit(h, s) == "" {
			fit = append(fit, h)
		}
	}
	return fit
}

// unfit says why a host cannot take a seat, or "".
func (p places) unfit(h Host, s Seat) string {
	zone := p.zoneFor(s)
	switch {
	case !h.Alive:
		return "is lost"
	case h.Draining:
		return "is being drained"
	case p.uncloneable(h) != "":
		return p.uncloneable(h)
	case zone != "" && h.Zone != zone:
		return "is in another zone"
	case len(p.Want.Zones) > 0 && !slices.Contains(p.Want.Zones, h.Zone):
		return "is in a zone that the subnet group does not cover"
	case !slices.Contains(h.Majors, p.Want.Major):
		return fmt.Sprintf("has no PostgreSQL %d", p.Want.Major)
	case p.lacksLibrary(h, s) != "":
		return p.whyWithout(h, p.lacksLibrary(h, s))
	case p.Want.Encrypted && h.WhyPlain != "":
		return "cannot encrypt storage: " + h.WhyPlain
	case p.Want.SpreadZones && p.inZone(h.Zone) > 0:
		return "has its zone taken by another member"
	case p.onlyOwnKeys() && !h.OwnKeys:
		return "has an agent of an older release, which cannot give members keys of their own"
	case h.DiskFull:
		return "has a full disk"
	case !p.Policy.Overcommit && s.Limits.CPUs > float64(h.CPUs):
		return "has too few CPUs for the class"
	case !p.Policy.Overcommit && h.Committed+p.promised(h)+s.Limits.MemoryBytes > h.Memory:
		return "has too little memory left for the class"
	}
	return ""
}

// promised returns how many bytes of the host's memory this decision has given away so far.
func (p places) promised(h Host) int64 {
	var bytes int64
	for _, m := range p.out.Layout.Members {
		known := slices.ContainsFunc(p.Layout.Members, func(before Placed) bool { return before.Name == m.Name })
		if !known && m.Host == h.Name {
			bytes += seatFor(p.Want, m).Limits.MemoryBytes
		}
	}
	return bytes
}

// maxReasons is how many hosts that cannot take a seat are named.
const maxReasons = 10

func (p places) whyNot(s Seat) string {
	if len(p.Hosts) == 0 {
		return "no host has joined"
	}
	var reasons []string
	for _, h := range p.Hosts[:min(maxReasons, len(p.Hosts))] {
		reasons = append(reasons, h.Name+" "+p.unfit(h, s))
	}
	text := strings.Join(reasons, "; ")
	if more := len(p.Hosts) - maxReasons; more > 0 {
		text += fmt.Sprintf("; and %d more hosts cannot take it either", more)
	}
	return text
}

// inZone counts the members in a zone that stay. It also counts a member whose replacement is not
// there yet, if its host lives: a lost member must not keep its zone from being used.
func (p places) inZone(zone string) int {
	n := 0
	for _, m := range p.members() {
		if m.Zone == zone && m.Going == Staying {
			n++
		}
	}
	return n
}

func (p places) onHost(name string) int {
	n := 0
	for _, m := range p.members() {
		if m.Host == name {
			n++
		}
	}
	return n
}

// freePort returns the lowest port of a range that no member of the host has. The ports that this
// decision gave are not in UsedPorts yet, so it checks them, too.
func (p places) freePort(h Host, first int) int {
	for port := first; ; port++ {
		if !slices.Contains(h.UsedPorts, port) && !p.portInLayout(h.Name, port) {
			return port
		}
	}
}

func (p places) portInLayout(host string, port int) bool {
	return slices.ContainsFunc(p.out.Layout.Members, func(m Placed) bool {
		return m.Host == host && (m.Port == port || m.RESTPort == port)
	})
}

// CanPlace returns an error if a database with these seats would find no hosts now. The error names
// what is missing. The API asks before it accepts a request.
func CanPlace(in Input) error {
	_, err := WhereTo(in)
	return err
}

// WhereTo returns the hosts that a database with these seats would get now. It fails as CanPlace does.
func WhereTo(in Input) ([]string, error) {
	w := begin(in)
	var hosts []string
	for _, s := range w.beginning(w.vacant()) {
		m, err := w.place(s)
		if err != nil {
			return nil, err
		}
		w.add(m)
		hosts = append(hosts, m.Host)
	}
	return hosts, nil
}

// mendPorts moves a member to other ports when something else has taken its own.
func (w *work) mendPorts() {
	for _, m := range w.members() {
		r := w.report(m)
		if r.Problem != member.PortTaken || r.Generation < w.Assigned[w.id(m)] {
			continue
		}
		h, _ := w.host(m.Host)
		h.UsedPorts = append(slices.Clone(h.UsedPorts), m.Port, m.RESTPort)
		m.Port, m.RESTPort = w.freePort(h, m.Port), w.freePort(h, m.RESTPort)
	}
}
