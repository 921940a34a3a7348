// Package plan decides what hosts do for each database. It is pure: the same
// input gives the same output, nothing is read or written, and no clock is asked.
// One call of Next takes one step towards what is wanted, from any state that a
// crash, a lost host or a changed mind may have left; reconcile calls it again
// whenever something changed.
//
// A database is one Patroni cluster. Patroni decides who is primary; the planner
// only chooses where members live, and asks for restarts and orderly handovers.
package plan

import (
	"fmt"
	"slices"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// Database is what is wanted of one Patroni cluster.
type Database struct {
	ID    string // resource id, and Patroni's scope
	Major int
	Port  int // of the endpoint
	// State is running, stopped or absent.
	State member.Want
	Seats []Seat
	// Zone, if set, is where the first member of a database without keyed seats goes.
	Zone string
	// Zones are where new members may go; none: anywhere. Those that are elsewhere stay.
	Zones []string
	// SpreadZones forbids two members in one zone.
	SpreadZones bool

	WaitForStandby bool
	RequireTLS     bool
	IAMAuth        bool // users of rds_iam log in with tokens
	Encrypted      bool // its storage is
	Owner          member.Owner
	Parameters     map[string]string // the same for all members
	LogicalSlots   bool              // users may have logical replication slots
	Slots          []string
	Upstream       *patroni.Upstream
	ServerIPs      []string
	// Allow are the networks that users may connect from, and Between the addresses of
	// edges that members see in place of a client's; nil Allow: everyone may.
	Allow, Between []string
	// Admits are the databases whose members may copy this one: itself, and whoever
	// follows it, or one that does.
	Admits []string

	// Change, Reboot and Failover count requests: see Layout for those done.
	Change, Reboot, Failover int64
	FailoverSeat             string
	// ChangeStatus is the status to show until Change is done, such as modifying.
	ChangeStatus string
}

// Seat is one wanted member.
type Seat struct {
	// Key is the resource id of the DB instance that this member is, in a cluster;
	// "" where members are interchangeable.
	Key    string
	Zone   string
	Limits member.Limits
	// Authority signs the server's certificate; "": the home's.
	Authority  string
	Tier       int
	NoFailover bool
	// Values are those of parameter groups for this member alone, formulas and all.
	Values map[string]string
	// Reboot counts requests to restart this very member; Restart counts changes
	// that need a restart, which is rolled with a handover where there is a standby.
	Reboot, Restart int64
}

// Layout is what was decided for a database so far. Written by reconcile only.
type Layout struct {
	ID      string   `json:"id"`
	Members []Placed `json:"members"`
	Next    int      `json:"next"` // number of the next member
	// Created: it has been available once.
	Created bool `json:"created"`
	// Changed, Rebooted and FailedOver are the last requests that are done.
	Changed    int64 `json:"changed"`
	Rebooted   int64 `json:"rebooted"`
	FailedOver int64 `json:"failed_over"`
	// Abandoned is why the last failover that was asked for did not take place; "" if it did.
	Abandoned string `json:"abandoned,omitempty"`
	// Fled counts the handovers away from full disks.
	Fled int64 `json:"fled,omitempty"`
	// Asked is the task that was asked for last.
	Asked *Asked `json:"asked,omitempty"`
	// KeyAuthority is the fingerprint of the authority of members, and OnlyOwnKeys says that
	// hosts' keys open the database's members no more: see mendKeys.
	KeyAuthority string `json:"key_authority,omitempty"`
	OnlyOwnKeys  bool   `json:"only_own_keys,omitempty"`
	// Steps are those of what is going on, oldest first; none when all is done.
	Steps []Step `json:"steps,omitempty"`
}

// Step is one named stage of what is going on.
type Step struct {
	Name  string    `json:"name"`
	Began time.Time `json:"began"`
}

// Going says why a member is to be removed.
type Going string

// The reasons.
const (
	Staying  Going = ""
	Replaced Going = "replaced" // another member takes its seat
	Surplus  Going = "surplus"  // its seat is gone
)

// Placed is a member with its place.
type Placed struct {
	Name string `json:"name"` // m1, m2, …: never used again
	// OwnName: Patroni knows it by a name that no other database has: see names.
	OwnName bool `json:"own_name,omitempty"`
	// OwnKey: it shows a key of its own, and not its host's.
	OwnKey   bool   `json:"own_key,omitempty"`
	Seat     string `json:"seat,omitempty"`
	Host     string `json:"host"`
	Zone     string `json:"zone"`
	Address  string `json:"address"`
	Port     int    `json:"port"`
	RESTPort int    `json:"rest_port"`

	Stopped bool  `json:"stopped,omitempty"`
	Boost   bool  `json:"boost,omitempty"`
	Going   Going `json:"going,omitempty"`
	// Barred: Patroni may neither promote it nor have it confirm commits. Votes: it
	// counts when it is chosen how commits are confirmed. See ballot.
	Barred bool `json:"barred,omitempty"`
	Votes  bool `json:"votes,omitempty"`
	// NoSync: it is to confirm no commits, as one that is lost with the primary. See
	// spread.
	NoSync bool `json:"no_sync,omitempty"`
	// Leaving: its host has been told to delete it.
	Leaving bool `json:"leaving,omitempty"`
	// Served: its seat was filled once, by it or by the one that it replaces. When
	// it fails after that it is mended, but holds no change up.
	Served bool `json:"served,omitempty"`
	// Rebooted and Restarted are the last of the seat's requests that are done.
	Rebooted  int64 `json:"rebooted,omitempty"`
	Restarted int64 `json:"restarted,omitempty"`
}

// Listen is where the member's PostgreSQL listens.
func (m Placed) Listen() string { return fmt.Sprintf("%s:%d", m.Address, m.Port) }

// Host is a place for members.
type Host struct {
	Name, Zone, Address string
	Alive               bool
	LostSince           time.Time // when not alive
	Draining            bool
	DiskFull            bool
	OwnKeys             bool   // its agent can give members keys of their own
	Edgeless            bool   // addresses move with the edges of hosts, and none runs here
	WhyPlain            string // it cannot encrypt storage; "": it can
	Majors              []int
	CPUs                int
	Memory              int64 // bytes
	Committed           int64 // bytes of the members that live there, of all databases
	UsedPorts           []int
}

// Input is everything that a decision depends on.
type Input struct {
	Now    time.Time
	Want   Database
	Layout Layout
	Hosts  []Host
	// HostAt are the places in Hosts, by name; nil: they are searched for.
	HostAt map[string]int
	// Reports are by member id, as are Applied, the generation that Patroni runs
	// with, which is there only while Patroni lives, and Assigned, the generation
	// that the host was given last.
	Reports  map[string]member.Report
	Applied  map[string]int64
	Assigned map[string]int64
	// Behind, by member id: Patroni has not read yet what all members share.
	Behind map[string]bool
	// PendingRestart, by member id: PostgreSQL runs with settings older than its files.
	PendingRestart map[string]bool
	// Growing, by member id: those of them that get more of what a standby needs.
	Growing map[string]bool
	Results map[string]member.Result // by task id
	// OwnNames: every part of the home knows members by names of their own.
	OwnNames bool
	// Keys is what is known of keys of members' own.
	Keys   Keys
	Leader string // name of the member with Patroni's leader key
	Sync   patroni.Sync
	// Unborn: Patroni's initialize key is there and names no data yet: a member
	// bootstraps, or did. Making, by member id: its Patroni makes a data directory.
	Unborn bool
	Making map[string]bool
	// Positions are the ends of what members wrote or received, in bytes of WAL, as
	// Patroni said a moment ago.
	Positions map[string]int64
	// Ways are the addresses that edges lead clients to, by seat; "": the writer's.
	Ways   map[string][]string
	Policy Policy
}

// Keys is what is known of keys of members' own.
type Keys struct {
	// Authority is the fingerprint of the authority of members; "": some control plane is of
	// an older release, which has no gate before etcd.
	Authority string
	// Everywhere: all hosts can give members such keys.
	Everywhere bool
	// Admitted: all members of the database, and of those that it follows, let its own in by
	// such keys. It is looked at while one has none.
	Admitted bool
	// SourceOnly: a database that it follows lets nobody in by a host's key.
	SourceOnly bool
	// FollowersOwn: all members of databases that follow it show keys of their own.
	FollowersOwn bool
}

// Policy is set by the operator.
type Policy struct {
	// Overcommit places members whatever the classes add up to.
	Overcommit bool
	// ReplaceAfter is how long a host may be lost before its members are rebuilt elsewhere.
	ReplaceAfter time.Duration
}

// Output is a decision.
type Output struct {
	Layout Layout
	Tasks  []member.Task
	// Rebirth: nobody bootstraps although Patroni's initialize key says so. It is to be
	// deleted as it is, if there is still no leader.
	Rebirth bool
	// Gone: nothing of a deleted database is left on any living host.
	Gone bool
	// Problems hold the work up, or are worth a person's attention.
	Problems []Problem
	// Exposed: no standby is in sync where there was one: the next failure of the
	// primary cannot be survived without a loss.
	Exposed bool
	// GaveUp: a failover that was asked for ends without one.
	GaveUp bool
}

// maxSteps bounds what is kept of a story that goes round in circles.
const maxSteps = 40

// Next decides the next step.
func Next(in Input) Output {
	w := begin(in)
	w.forgetGone()
	switch in.Want.State {
	case member.Absent:
		w.delete()
	case member.Stopped:
		w.rescue()
		w.stop()
	default:
		w.rescue()
		w.run()
	}
	if w.step == "" {
		w.out.Layout.Steps = nil
	}
	w.out.Exposed = w.exposed()
	return w.out
}

// work is one decision in the making.
type work struct {
	Input
	out       Output
	step      string
	departing map[string]bool // names of members whose turn to leave it is
	pausing   map[string]bool // and of those whose turn to restart it is
}

// begin starts from what was decided before, save for a boost, which lasts only as
// long as a handover wants it; in an election nothing may change.
func begin(in Input) *work {
	w := &work{Input: in, out: Output{Layout: in.Layout}, departing: map[string]bool{}, pausing: map[string]bool{}}
	w.out.Layout.ID = in.Want.ID
	w.out.Layout.Members = slices.Clone(in.Layout.Members)
	w.out.Layout.Steps = slices.Clone(in.Layout.Steps)
	for _, m := range w.members() {
		m.Boost = m.Boost && w.primary() == nil
	}
	if a := w.out.Layout.Asked; a != nil {
		w.progress(a.Request) // notes its end, whoever asks for it: the result may be swept from then on
	}
	return w
}

// doing names the current step; the first name of a decision counts.
func (w *work) doing(step string) {
	if w.step != "" {
		return
	}
	w.step = step
	steps := w.out.Layout.Steps
	if len(steps) > 0 && steps[len(steps)-1].Name == step {
		return
	}
	steps = append(steps, Step{Name: step, Began: w.Now})
	w.out.Layout.Steps = steps[max(0, len(steps)-maxSteps):]
}

// waited is for how long a step has been the current one.
func (w *work) waited(step string) time.Duration {
	steps := w.Layout.Steps
	if len(steps) == 0 || steps[len(steps)-1].Name != step {
		return 0
	}
	return w.Now.Sub(steps[len(steps)-1].Began)
}

// problem tells of one that is of no kind which anybody tells apart.
func (w *work) problem(text string) { w.tell(Problem{Text: text}) }

func (w *work) tell(p Problem) {
	if !slices.Contains(w.out.Problems, p) {
		w.out.Problems = append(w.out.Problems, p)
	}
}

// members are those that are not being deleted, to be changed in place. Placing
// another one may move them: ask again after it.
func (w *work) members() []*Placed {
	var all []*Placed
	for i := range w.out.Layout.Members {
		if m := &w.out.Layout.Members[i]; !m.Leaving {
			all = append(all, m)
		}
	}
	return all
}

func (w *work) id(m *Placed) string { return member.ID(w.Want.ID, m.Name) }

func (w *work) report(m *Placed) member.Report { return w.Reports[w.id(m)] }

// host is a host by name; a host that was forgotten is not known, and not alive.
func (w *work) host(name string) (h Host, known bool) {
	if w.HostAt != nil {
		if at, ok := w.HostAt[name]; ok {
			return w.Hosts[at], true
		}
		return Host{Name: name}, false
	}
	for _, h := range w.Hosts {
		if h.Name == name {
			return h, true
		}
	}
	return Host{Name: name}, false
}

func (w *work) alive(m *Placed) bool {
	h, _ := w.host(m.Host)
	return h.Alive
}

// ready: it serves clients now in its role, and its host can tell.
func (w *work) ready(m *Placed) bool {
	r := w.report(m)
	switch {
	case !w.alive(m) || !r.Ready:
		return false
	case m.Name != w.Leader:
		return r.Streaming
	default:
		// One that was elected a moment ago still takes no writes.
		return !r.InRecovery || w.Want.Upstream != nil
	}
}

// runs: its Patroni lives, whatever its agent can say.
func (w *work) runs(m *Placed) bool {
	_, runs := w.Applied[w.id(m)]
	return runs
}

// applied: Patroni runs with what the host was assigned last, and with what all members share.
func (w *work) applied(m *Placed) bool {
	id := w.id(m)
	return w.runs(m) && w.Assigned[id] > 0 && w.Applied[id] >= w.Assigned[id] && !w.Behind[id]
}

func (w *work) leader() *Placed {
	for _, m := range w.members() {
		if m.Name == w.Leader {
			return m
		}
	}
	return nil
}

// primary is the leader, if it serves; or nil.
func (w *work) primary() *Placed {
	if leader := w.leader(); leader != nil && w.ready(leader) {
		return leader
	}
	return nil
}

// forgetGone drops deleted members of which nothing is left. Of a lost host
// nobody can know; its assignment stays and tells it to clean up when it returns.
// A Patroni that lives without its agent is not forgotten: it might lead.
func (w *work) forgetGone() {
	w.out.Layout.Members = slices.DeleteFunc(w.out.Layout.Members, func(m Placed) bool {
		return m.Leaving && (w.report(&m).Gone || !w.alive(&m) && !w.runs(&m))
	})
}

// rescue takes the order to delete a member back that was elected before its host
// got the order: it is the best copy now.
func (w *work) rescue() {
	for i := range w.out.Layout.Members {
		if m := &w.out.Layout.Members[i]; m.Leaving && m.Name == w.Leader {
			m.Leaving, m.Votes, m.Barred, m.NoSync = false, true, false, false
		}
	}
}

// delete removes everything, whatever else was wanted.
func (w *work) delete() {
	for _, m := range w.members() {
		m.Leaving = true
	}
	if len(w.out.Layout.Members) > 0 {
		w.doing("deleting data")
		return
	}
	w.out.Gone = true
}
