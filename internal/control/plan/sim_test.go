package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// sim is a small world for the planner: hosts that obey assignments, now, late or
// never, and a Patroni that elects among standbys in sync. One round is a second.
// It knows the truth that the planner only guesses: who holds which commits.
type sim struct {
	start, now time.Time
	want       Database
	policy     Policy
	ownNames   bool // every part of the home knows them
	layout     Layout
	gone       bool
	out        Output   // the last decision
	problems   []string // of all decisions of the round

	hosts    []*simHost
	members  map[string]*simMember        // by host and id: what is on disks
	assigned map[string]member.Assignment // by host and id, as in etcd
	reports  map[string]member.Report     // by id
	results  map[string]member.Result
	tasks    map[string]member.Task

	// Patroni's keys, and what clients were told.
	leader      string
	sync        patroni.Sync
	config      patroni.Cluster
	inForce     patroni.Cluster // the config that the leader's Patroni has heard
	mode        patroni.SyncMode
	confirming  []string // what the leader's PostgreSQL waits for, one of them
	blank       int      // rounds left in which Patroni finds out who is in sync
	lag, late   int      // rounds until it hears of a change, and rounds left
	initialized bool
	// unrestorable says that no restore ends.
	unrestorable bool
	// source is what a clone is made of.
	source Source
	// backup is what new members may begin with, and backingUp says that one is being made.
	backup    *member.Copy
	backingUp bool
	acked     int
	ran       time.Duration

	// Faults to come.
	failTasks, killAgents int

	decisions, checkEvery int             // every how many decisions are made twice
	names                 map[string]bool // ever used
	wrong                 []error         // properties that did not hold
}

type simHost struct {
	Host
	up, agent bool // powered, and its agent running
	slow      int  // rounds until its agent obeys
	full      bool // its disk
	foreign   []int
}

// simMember is a member as its host has it.
type simMember struct {
	host           string
	have           member.Assignment // what the agent obeys
	due            int               // rounds until it obeys the newest
	data, running  bool
	promoted       bool
	lsn            int
	copying        int // rounds left
	restored       int // rounds that it has restored for
	applied        int64
	tags           member.Assignment // what its Patroni has published
	owner          int64
	restarting     int
	task           string // that is being done
	handover, gone bool
}

const (
	copyTime    = 3
	restoreTime = 5
	cloneTime   = 2 // of which this needs the source
)

func newSim(hosts ...string) *sim {
	s := &sim{
		start: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), policy: Policy{Overcommit: true, ReplaceAfter: 30 * time.Second},
		members: map[string]*simMember{}, assigned: map[string]member.Assignment{}, reports: map[string]member.Report{},
		checkEvery: 1, results: map[string]member.Result{}, tasks: map[string]member.Task{}, names: map[string]bool{},
	}
	s.now = s.start
	for i, name := range hosts {
		zone := name[:1]
		s.hosts = append(s.hosts, &simHost{up: true, agent: true, slow: 0, Host: Host{
			Name: name, Zone: zone, Address: fmt.Sprintf("10.0.0.%d", i+1), Alive: true,
			Majors: []int{15}, CPUs: 8, Memory: 64 << 30,
		}})
	}
	s.want = Database{ID: "db-1", Major: 15, State: member.Running, Owner: member.Owner{Name: "u", Serial: 1}}
	return s
}

func (s *sim) host(name string) *simHost {
	for _, h := range s.hosts {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// round lets a second pass: first hosts and Patroni, then the planner.
func (s *sim) round() {
	s.now, s.ran = s.now.Add(time.Second), s.ran+time.Second
	s.judge()
	for _, key := range slices.Sorted(maps.Keys(s.assigned)) {
		s.obey(key)
	}
	for _, id := range slices.Sorted(maps.Keys(s.tasks)) {
		s.work(s.tasks[id])
	}
	s.patroni()
	s.report()
	s.plan()
}

// judge sees which hosts are heard.
func (s *sim) judge() {
	for _, h := range s.hosts {
		alive := h.up && h.agent
		if h.Alive && !alive {
			h.LostSince = s.now
		}
		h.Alive = alive
		if !h.up {
			s.powerOff(h.Name)
		}
	}
}

func (s *sim) powerOff(host string) {
	for _, m := range s.members {
		if m.host == host {
			m.running, m.promoted, m.restarting, m.task = false, false, 0, ""
		}
	}
}

// obey is what the agent does with one assignment.
func (s *sim) obey(key string) {
	a := s.assigned[key]
	host, id := splitKey(key)
	h := s.host(host)
	if h == nil || !h.Alive {
		return
	}
	m := s.members[key]
	if m == nil {
		m = &simMember{host: host, due: h.slow}
		s.members[key] = m
	}
	if a.Generation > m.have.Generation {
		if m.due > 0 {
			m.due--
			if m.have.Restore != nil { // what it was told before goes on
				s.converge(m, h, id)
			}
			return
		}
		m.have, m.due = a, h.slow
	}
	s.converge(m, h, id)
}

func (s *sim) converge(m *simMember, h *simHost, id string) {
	switch m.have.Want {
	case member.Absent:
		s.checkDeletion(m, id)
		*m = simMember{host: m.host, have: m.have, gone: true}
	case member.Stopped:
		m.running, m.promoted = false, false
	case member.Running:
		taken := slices.Contains(h.foreign, m.have.Port) || slices.Contains(h.foreign, m.have.RESTPort)
		switch {
		case m.running || m.task != "" || taken:
		case s.away(m):
		case m.have.Restore != nil && !m.data && (s.unrestorable || m.restored < restoreTime):
			m.restored++
		default:
			m.running = true
		}
	}
}

// away reports whether a clone that has not copied yet cannot do so now.
func (s *sim) away(m *simMember) bool {
	if m.have.Want != member.Running || m.have.Restore == nil || !m.have.Restore.Live || m.data || m.restored >= cloneTime {
		return false
	}
	return !slices.ContainsFunc(s.source.Copies, func(c Copy) bool { return c.Host == m.host && c.Ready })
}

func splitKey(key string) (host, id string) {
	for i := range key {
		if key[i] == '/' {
			return key[:i], key[i+1:]
		}
	}
	return key, ""
}

// work is what the agent does for a task: it begins in one round and ends in the
// next.
func (s *sim) work(t member.Task) {
	h, m := s.host(t.Host), s.members[t.Host+"/"+t.Member]
	r, begun := s.results[t.ID]
	if h == nil || !h.Alive || m == nil || r.Done || r.Failed {
		return
	}
	if begun {
		s.end(t, r, m)
		return
	}
	s.results[t.ID] = member.Result{ID: t.ID, Member: t.Member, Began: s.now}
	m.task = t.ID
	switch {
	case s.failTasks > 0 || s.now.After(t.Deadline) || !m.running:
		s.failTasks = max(0, s.failTasks-1)
		s.finish(t, m, "it did not work")
		return
	case t.Kind == member.Restart:
		m.restarting = 1
	case s.leader != m.have.Name || len(s.sync.Standbys) == 0 || s.sync.Leader != s.leader:
		s.finish(t, m, "not safe")
		return
	default:
		m.running, m.promoted, m.handover = false, false, true
		s.leader = ""
		for _, name := range s.confirming { // a PostgreSQL that is stopped waits for its standbys
			if to := s.named(name); to != nil && to.running {
				to.lsn = m.lsn
			}
		}
	}
	if s.killAgents > 0 {
		s.killAgents--
		h.agent, m.restarting = false, 0
	}
}

// end finishes a task, also one that an earlier agent began.
func (s *sim) end(t member.Task, r member.Result, m *simMember) {
	own := m.task == t.ID
	switch {
	case t.Kind == member.Handover && s.leader == "" && own:
		return // not elected yet
	case t.Kind == member.Handover && s.leader == m.have.Name, !own:
		s.finish(t, m, "the agent was restarted in the middle")
	default:
		s.finish(t, m, "")
	}
}

func (s *sim) finish(t member.Task, m *simMember, failure string) {
	r := s.results[t.ID]
	r.Ended, r.Done, r.Failed, r.Detail = s.now, failure == "", failure != "", failure
	s.results[t.ID] = r
	m.task, m.handover = "", false
}

// report is what agents tell; that of a lost host stays as it was.
func (s *sim) report() {
	for key, m := range s.members {
		host, id := splitKey(key)
		h := s.host(host)
		if h == nil || !h.Alive {
			continue
		}
		r := member.Report{ID: id, Host: host, Generation: m.have.Generation, Gone: m.gone, Patroni: m.running, Postgres: m.running && m.data}
		lead := s.leader == m.have.Name
		r.Ready = r.Postgres && m.restarting == 0
		r.InRecovery = !m.promoted
		r.Streaming = r.Ready && !lead && s.serving()
		r.OwnerSerial = m.owner
		if !m.running && (slices.Contains(h.foreign, m.have.Port) || slices.Contains(h.foreign, m.have.RESTPort)) && !m.gone {
			r.Problem = member.PortTaken
		}
		if m.have.Restore != nil && s.unrestorable && !m.data && !m.gone {
			r.Problem, r.Detail = member.RestoreFails, "the archive ends at noon"
		}
		if s.away(m) && !m.gone {
			r.Problem, r.Detail = member.SourceAway, "it does not answer"
		}
		if h.full && !m.gone {
			r.Problem = member.DiskFull
		}
		s.reports[id] = r
	}
	s.sweep()
}

// sweep forgets orders to delete that were carried out.
func (s *sim) sweep() {
	for key, m := range s.members {
		_, id := splitKey(key)
		placed := slices.ContainsFunc(s.layout.Members, func(p Placed) bool { return member.ID(s.want.ID, p.Name) == id })
		if m.gone && !placed && s.reports[id].Gone {
			delete(s.members, key)
			delete(s.assigned, key)
			delete(s.reports, id)
		}
	}
}

// plan decides until nothing moves any more, as reconcile does.
func (s *sim) plan() {
	s.problems = nil
	for range 10 {
		in := s.input()
		s.out = s.decide(in)
		for _, p := range s.out.Problems {
			if !slices.Contains(s.problems, p.Text) {
				s.problems = append(s.problems, p.Text)
			}
		}
		if s.out.Gone {
			s.gone, s.layout = true, Layout{}
			return
		}
		if !s.carryOut(in) {
			return
		}
	}
	s.fail("the planner does not come to rest")
}

func (s *sim) input() Input {
	in := Input{
		Now: s.now, Want: s.want, Layout: s.layout, Policy: s.policy, Leader: s.leader, Sync: s.sync,
		Reports: map[string]member.Report{}, Applied: map[string]int64{}, Assigned: map[string]int64{},
		Results: maps.Clone(s.results), OwnNames: s.ownNames, Ways: map[string][]string{}, Positions: map[string]int64{},
		Born: s.initialized, Backup: s.backup, BackingUp: s.backingUp,
	}
	if s.layout.Cloning(s.want) {
		in.Source = &s.source
	}
	for _, h := range s.hosts {
		host := h.Host
		host.DiskFull = h.full
		host.UsedPorts, host.Committed = s.inUse(h.Name)
		in.Hosts = append(in.Hosts, host)
	}
	for _, m := range s.layout.Members {
		id := member.ID(s.want.ID, m.Name)
		key := m.Host + "/" + id
		if r, ok := s.reports[id]; ok {
			in.Reports[id] = r
		}
		if m.Name == s.leader {
			in.Ways[""] = []string{m.Listen()}
		}
		if a, ok := s.assigned[key]; ok {
			in.Assigned[id] = a.Generation
		}
		if sm := s.members[key]; sm != nil && sm.running {
			in.Applied[id], in.Positions[id] = sm.applied, int64(sm.lsn)
		}
	}
	return in
}

func (s *sim) inUse(host string) (ports []int, bytes int64) {
	for key, a := range s.assigned {
		if name, _ := splitKey(key); name == host {
			ports = append(ports, a.Port, a.RESTPort)
		}
	}
	for _, m := range s.layout.Members {
		if m.Host == host {
			bytes += seatFor(s.want, m).Limits.MemoryBytes
		}
	}
	slices.Sort(ports)
	return ports, bytes
}

// carryOut writes a decision down, and answers whether anything changed.
func (s *sim) carryOut(in Input) bool {
	changed := !reflect.DeepEqual(s.layout, s.out.Layout)
	s.layout = s.out.Layout
	for _, m := range s.layout.Members {
		s.names[m.Name] = true
		id := member.ID(s.want.ID, m.Name)
		key := m.Host + "/" + id
		a := Assign(s.want, s.layout, m, 0)
		last := s.assigned[key]
		a.Generation = last.Generation
		if last.Generation > 0 && reflect.DeepEqual(a, last) {
			continue
		}
		a.Generation++
		s.assigned[key], changed = a, true
	}
	for _, t := range s.out.Tasks {
		if _, known := s.tasks[t.ID]; !known {
			s.tasks[t.ID], changed = t, true
		}
	}
	s.config = ClusterConfig(s.want, s.layout)
	return changed
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (s *sim) fail(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Errorf("at %s: %s", s.ran, fmt.Sprintf(format, args...)))
}

func (s *sim) errors() error { return errors.Join(s.wrong...) }

// all are the members on disks, in order.
func (s *sim) all() []*simMember {
	keys := slices.SortedFunc(maps.Keys(s.members), func(a, b string) int {
		_, x := splitKey(a)
		_, y := splitKey(b)
		return cmp.Or(len(x)-len(y), cmp.Compare(x, y))
	})
	list := make([]*simMember, len(keys))
	for i, key := range keys {
		list[i] = s.members[key]
	}
	return list
}
