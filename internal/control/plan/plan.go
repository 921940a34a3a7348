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

	"howdah/internal/model/extension"
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
	// Last has the settings of the last copy of a cluster without instances while it shall run, because
	// a final snapshot of it is made; nil: it is kept, and does not run.
	Last *Seat
	// Hidden says that no endpoint leads to the database.
	Hidden bool
	// Zone is the zone of the first member of a database without keyed seats; "" means any.
	Zone string
	// Zones are the zones in which new members may be placed; none means any. Members that are
	// elsewhere stay.
	Zones []string
	// SpreadZones forbids two members in one zone.
	SpreadZones bool

	WaitForStandby bool
	// Warm says that a standby shall keep in its cache what the primary has in its own (warm.go).
	Warm         bool
	RequireTLS   bool
	IAMAuth      bool // users of rds_iam log in with tokens
	Encrypted    bool // its storage is
	Owner        member.Owner
	Parameters   map[string]string // the same for all members
	LogicalSlots bool              // users may have logical replication slots
	Slots        []string
	Upstream     *patroni.Upstream
	// Archive says where WAL goes; nil: nowhere. BackedUp says that it has automated backups.
	Archive  *member.Archive
	BackedUp bool
	// Restore says what the first data are made of; nil: the database begins empty.
	Restore   *member.Restore
	ServerIPs []string
	// ServerNames are the DNS names of its endpoints.
	ServerNames []string
	// Allow lists the networks that users may connect from; nil admits everyone. Between lists the
	// addresses of edges that members see in place of a client's.
	Allow, Between []string
	// Admits lists the databases whose members may copy this one: itself, and all that follow it,
	// directly or through others.
	Admits []string

	// Cluster is what drivers take the database for; "": for no cluster.
	Cluster member.ClusterKind

	// Change, Reboot and Failover count requests: see Layout for those done.
	Change, Reboot, Failover int64
	FailoverSeat             string
	// ChangeStatus is the status to show until Change is done, such as modifying.
	ChangeStatus string
}

// Seat is one wanted member.
type Seat struct {
	// Key is the resource id of the DB instance that this member is in a cluster. It is "" where
	// members are interchangeable.
	Key    string
	Zone   string
	Limits member.Limits
	// Instance is the name of that DB instance, and Endpoint and Port are where clients reach it.
	Instance, Endpoint string
	Port               int
	// Authority signs the server's certificate; "" means the home's own authority.
	Authority  string
	Tier       int
	NoFailover bool
	// Values holds the values of parameter groups for this member alone, with formulas not yet
	// computed.
	Values map[string]string
	// Reboot counts requests to restart just this member. Restart counts changes that need a
	// restart; the planner rolls it, with a handover if there is a standby.
	Reboot, Restart int64
}

// Layout is what was decided about a database so far. Only reconcile writes it.
type Layout struct {
	ID      string   `json:"id"`
	Members []Placed `json:"members"`
	Next    int      `json:"next"` // number of the next member
	// Created says that the database has been available once.
	Created bool `json:"created"`
	// Restored says that a database which was made from a backup has its data, so that nobody
	// restores them again.
	Restored bool `json:"restored,omitempty"`
	// Unrestorable says why the data of a clone can never be had, or is "".
	Unrestorable string `json:"unrestorable,omitempty"`
	// Alone is since when the database would have a standby, but for the backup that it is made of.
	Alone time.Time `json:"alone,omitzero"`
	// Changed, Rebooted and FailedOver are the numbers of the last requests that are done.
	Changed    int64 `json:"changed"`
	Rebooted   int64 `json:"rebooted"`
	FailedOver int64 `json:"failed_over"`
	// Abandoned says why the last requested failover did not take place, or is "" if it did.
	Abandoned string `json:"abandoned,omitempty"`
	// Fled counts the handovers away from full disks.
	Fled int64 `json:"fled,omitempty"`
	// Warm has the names of the two members of which each, while the other leads, keeps its cache
	// like the other's. Cold says why there are none although they are wanted, or is "".
	Warm []string `json:"warm,omitempty"`
	Cold string   `json:"cold,omitempty"`
	// Missing lists the extensions that some members' hosts have, and others lack. They are not created anew.
	Missing []string `json:"missing,omitempty"`
	// Warming is the planned failover that waited for a warm cache last.
	Warming *Waiting `json:"warming,omitempty"`
	// Asked is the task that was asked for last.
	Asked *Asked `json:"asked,omitempty"`
	// KeyAuthority is the fingerprint of the authority of members' keys. OnlyOwnKeys says that the
	// database admits no host's key any more: see mendKeys.
	KeyAuthority string `json:"key_authority,omitempty"`
	OnlyOwnKeys  bool   `json:"only_own_keys,omitempty"`
	// Steps are the steps of what is going on, oldest first. There are none when all is done.
	Steps []Step `json:"steps,omitempty"`
}

// Waiting is a request that waits since some time.
type Waiting struct {
	Request string    `json:"request"`
	Since   time.Time `json:"since"`
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

// Placed is a member and its place.
type Placed struct {
	Name string `json:"name"` // m1, m2, …: never used again
	// OwnName says that Patroni knows the member by a name that no other database has: see
	// mendNames.
	OwnName bool `json:"own_name,omitempty"`
	// OwnKey says that the member shows a key of its own in place of its host's.
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
	// Barred says that Patroni may neither promote the member nor have it confirm commits. Votes
	// says that the member counts when it is decided how commits are confirmed. See ballot.
	Barred bool `json:"barred,omitempty"`
	Votes  bool `json:"votes,omitempty"`
	// NoSync says that the member shall confirm no commits, for example because it would be lost
	// with the primary. See spread.
	NoSync bool `json:"no_sync,omitempty"`
	// Lowered has the values of standbyNeeds for which the member was restarted: see lower.
	Lowered string `json:"lowered,omitempty"`
	// Copy is the backup that the member may begin with, if it has no data yet.
	Copy *member.Copy `json:"copy,omitempty"`
	// Leaving says that the member's host was told to delete it.
	Leaving bool `json:"leaving,omitempty"`
	// Served says that the seat was filled once, by this member or by the one that it replaces. If
	// the member fails after that, it is repaired, but no change waits for it.
	Served bool `json:"served,omitempty"`
	// Rebooted and Restarted are the numbers of the last requests of the seat that are done.
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
	Shares              bool   // files can share their blocks: a clone takes no room
	Edgeless            bool   // addresses move with the edges of hosts, and none runs here
	WhyPlain            string // it cannot encrypt storage; "": it can
	Majors              []int
	// Extensions has, by major version, the extensions and libraries that are installed. nil: its agent does not say.
	Extensions map[int]extension.Installed
	CPUs       int
	Memory     int64 // bytes
	Committed  int64 // bytes of the members that live there, of all databases
	UsedPorts  []int
}

// Input is everything that a decision depends on.
type Input struct {
	Now    time.Time
	Want   Database
	Layout Layout
	Hosts  []Host
	// HostAt maps names to indexes in Hosts. If it is nil, Hosts is searched.
	HostAt map[string]int
	// Reports are by member id, as are Applied, the generation that Patroni runs
	// with, which is there only while Patroni lives, and Assigned, the generation
	// that the host was given last.
	Reports  map[string]member.Report
	Applied  map[string]int64
	Assigned map[string]int64
	// Behind holds, by member id, whether Patroni has not read yet what all members share.
	Behind map[string]bool
	// PendingRestart holds, by member id, whether PostgreSQL runs with older settings than its
	// files have.
	PendingRestart map[string]bool
	// Unloaded holds, by member id, whether a restart loads the library of cluster cache management,
	// which is wanted. That waits for a restart that a user asks for.
	Unloaded map[string]bool
	// Growing and Shrinking hold, by member id, whether a restart raises, or lowers, one of
	// standbyNeeds.
	Growing, Shrinking map[string]bool
	Results            map[string]member.Result // by task id
	// OwnNames says that every part of the home knows members by names of their own.
	OwnNames bool
	// Keys is what is known of keys of members' own.
	Keys   Keys
	Leader string // name of the member with Patroni's leader key
	Sync   patroni.Sync
	// Unborn says that Patroni's initialize key exists and names no data yet: a member bootstraps,
	// or did. Born says that it names data. Making holds, by member id, whether its Patroni creates a data directory.
	Unborn bool
	Born   bool
	Making map[string]bool
	// Positions are the ends of the WAL that members wrote or received, in bytes, as Patroni said a
	// moment ago.
	Positions map[string]int64
	// Ways holds, by seat, the addresses to which edges lead clients. "" is the writer's.
	Ways map[string][]string
	// Backup is what a new standby may begin with; nil: the files of its primary. BackingUp says that
	// a backup of the database is being made.
	Backup    *member.Copy
	BackingUp bool
	Policy    Policy
	// Source is set where the database is a clone that has no data yet, and nil otherwise.
	Source *Source
}

// Keys is what is known of keys of members' own.
type Keys struct {
	// Authority is the fingerprint of the authority of members' keys. It is "" if some control
	// plane is of an older release, which has no gate before etcd.
	Authority string
	// Everywhere says that all hosts can give members keys of their own.
	Everywhere bool
	// Admitted says that all members of the database, and of those that it follows, admit its
	// members by their own keys. It is only determined while some member has no key of its own.
	Admitted bool
	// SourceOnly says that a database that it follows admits nobody by a host's key.
	SourceOnly bool
	// FollowersOwn says that all members of databases that follow it show keys of their own.
	FollowersOwn bool
}

// Policy is set by the operator.
type Policy struct {
	// Overcommit places members without regard to the CPUs and the memory of hosts.
	Overcommit bool
	// ReplaceAfter is how long a host may be lost before its members are rebuilt elsewhere.
	ReplaceAfter time.Duration
}

// Output is a decision.
type Output struct {
	Layout Layout
	Tasks  []member.Task
	// Rebirth says that nobody bootstraps although Patroni's initialize key says so. The caller
	// must delete the key if it is unchanged and there is still no leader.
	Rebirth bool
	// Gone says that no living host has anything left of a deleted database.
	Gone bool
	// Problems lists what holds the work up, or is worth a person's attention.
	Problems []Problem
	// Exposed says that no standby is in sync where there was one. The next failure of the primary
	// may lose data or availability.
	Exposed bool
	// GaveUp says that a requested failover ended without one.
	GaveUp bool
}

// maxSteps limits how many steps are kept of work that goes round in circles.
const maxSteps = 40

// Next decides the next step.
func Next(in Input) Output {
	w := begin(in)
	w.noteRestored()
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
	w.compareExtensions()
	if w.step == "" {
		w.out.Layout.Steps = nil
	}
	w.out.Exposed = w.exposed()
	return *w.out
}

// known is what a decision goes by: the input, and what has been decided so far. Its methods change
// nothing.
type known struct {
	Input
	out       *Output
	departing map[string]bool // names of members whose turn to leave it is
	pausing   map[string]bool // and of those whose turn to restart it is
}

// places finds hosts and ports for new members.
type places struct{ *known }

// tasks asks hosts for deeds, and follows them until they end.
type tasks struct{ *known }

// work is one decision in the making. Its methods are the steps, and what they decide goes to out.
type work struct {
	*known
	places
	tasks
	step string
}

// begin starts from what was decided before, except for a boost. A boost lasts only as long as a
// handover wants it, but it stays during an election, in which nothing may change.
func begin(in Input) *work {
	k := &known{Input: in, out: &Output{Layout: in.Layout}, departing: map[string]bool{}, pausing: map[string]bool{}}
	w := &work{known: k, places: places{k}, tasks: tasks{k}}
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

// doing names the current step. Only the first name in a decision counts.
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

// waited returns how long a step has been the current one.
func (k *known) waited(step string) time.Duration {
	steps := k.Layout.Steps
	if len(steps) == 0 || steps[len(steps)-1].Name != step {
		return 0
	}
	return k.Now.Sub(steps[len(steps)-1].Began)
}

// problem reports a problem that needs no kind of its own.
func (w *work) problem(text string) { w.tell(Problem{Text: text}) }

func (w *work) tell(p Problem) {
	if !slices.Contains(w.out.Problems, p) {
		w.out.Problems = append(w.out.Problems, p)
	}
}

// members returns the members that are not being deleted. They may be changed in place. Placing a
// member may move them in memory, so call members again after that.
func (k *known) members() []*Placed {
	var all []*Placed
	for i := range k.out.Layout.Members {
		if m := &k.out.Layout.Members[i]; !m.Leaving {
			all = append(all, m)
		}
	}
	return all
}

func (k *known) id(m *Placed) string { return member.ID(k.Want.ID, m.Name) }

func (k *known) report(m *Placed) member.Report { return k.Reports[k.id(m)] }

// host returns a host by name. For a forgotten host known is false, and the host is not alive.
func (k *known) host(name string) (h Host, known bool) {
	if k.HostAt != nil {
		if at, ok := k.HostAt[name]; ok {
			return k.Hosts[at], true
		}
		return Host{Name: name}, false
	}
	for _, h := range k.Hosts {
		if h.Name == name {
			return h, true
		}
	}
	return Host{Name: name}, false
}

func (k *known) alive(m *Placed) bool {
	h, _ := k.host(m.Host)
	return h.Alive
}

// ready reports whether the member serves clients in its role, as far as its living host says.
func (k *known) ready(m *Placed) bool {
	r := k.report(m)
	switch {
	case !k.alive(m) || !r.Ready:
		return false
	case m.Name != k.Leader:
		return r.Streaming
	default:
		// A member that was elected a moment ago still takes no writes.
		return !r.InRecovery || k.Want.Upstream != nil
	}
}

// runs reports whether the member's Patroni lives, whatever its agent can say.
func (k *known) runs(m *Placed) bool {
	_, runs := k.Applied[k.id(m)]
	return runs
}

// applied reports whether Patroni runs with the newest assignment, and with what all members share.
func (k *known) applied(m *Placed) bool {
	id := k.id(m)
	return k.runs(m) && k.Assigned[id] > 0 && k.Applied[id] >= k.Assigned[id] && !k.Behind[id]
}

func (k *known) leader() *Placed {
	for _, m := range k.members() {
		if m.Name == k.Leader {
			return m
		}
	}
	return nil
}

// primary returns the leader if it serves, or else nil.
func (k *known) primary() *Placed {
	if leader := k.leader(); leader != nil && k.ready(leader) {
		return leader
	}
	return nil
}

// forgetGone drops deleted members of which nothing is left. It also drops those on a lost host, of
// which nobody can know that: the assignment stays, and tells the host to clean up when it returns.
// A member whose Patroni lives without its agent is kept, as it might lead. So is one that was
// restoring the database when its host was lost, until the data are there: it might be the first to
// have them.
func (w *work) forgetGone() {
	w.out.Layout.Members = slices.DeleteFunc(w.out.Layout.Members, func(m Placed) bool {
		_, known := w.host(m.Host)
		return m.Leaving && (w.report(&m).Gone || !w.alive(&m) && !w.runs(&m) && !(known && w.restoring()))
	})
}

// rescue takes back the order to delete a member if the member was elected before its host got the
// order. It is now the best copy.
func (w *work) rescue() {
	for i := range w.out.Layout.Members {
		if m := &w.out.Layout.Members[i]; m.Leaving && m.Name == w.Leader {
			m.Leaving, m.Votes, m.Barred, m.NoSync = false, true, false, false
		}
	}
}

// delete removes the whole database, whatever else was wanted.
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
