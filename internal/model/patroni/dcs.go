package patroni

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Namespace is where Patroni keeps its keys in etcd.
const Namespace = "/service/"

// prefix returns what all keys of a scope in etcd begin with.
func prefix(scope string) string { return Namespace + scope + "/" }

// Prefix returns what all keys of a scope begin with.
func Prefix(scope string) string { return prefix(scope) }

// LeaderKey holds the name of the primary, under its lease.
func LeaderKey(scope string) string { return prefix(scope) + "leader" }

// SyncKey holds the synchronous standbys: see Sync.
func SyncKey(scope string) string { return prefix(scope) + "sync" }

// StatusKey holds how far the primary has written.
func StatusKey(scope string) string { return prefix(scope) + "status" }

// ConfigKey holds the configuration that all members share.
func ConfigKey(scope string) string { return prefix(scope) + "config" }

// InitializeKey holds the system identifier of a database that was bootstrapped.
func InitializeKey(scope string) string { return prefix(scope) + "initialize" }

// HistoryKey holds the timelines of a database.
func HistoryKey(scope string) string { return prefix(scope) + "history" }

// FailsafeKey holds the URLs of all members that the primary knew last, by Patroni's names for
// them. Without etcd, a primary asks these members whether it may go on.
func FailsafeKey(scope string) string { return prefix(scope) + "failsafe" }

// MemberKey holds what a member publishes of itself. member is Patroni's name for it; FindMember
// tries both names.
func MemberKey(scope, member string) string { return prefix(scope) + "members/" + member }

// OwnName returns the name that Patroni is given for a member. It begins with the scope, so that no
// other database has a member of that name. Patroni makes it the member's application_name. By that
// name PostgreSQL distinguishes the standbys that confirm commits from all others that stream.
func OwnName(scope, member string) string { return scope + "." + member }

// MaxName is how many bytes PostgreSQL keeps of a name. It holds for the slot that Patroni names
// after a member, too.
const MaxName = 63

// SlotsSurvive is the first major version in which a standby can have copies of users' logical slots, so
// that they survive a failover.
const SlotsSurvive = 17

// SlotName returns the name of the slot that Patroni makes for a member, by the name that it knows
// it by.
func SlotName(patroniName string) string {
	name := strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToLower(patroniName))
	return name[:min(len(name), MaxName)]
}

// MemberName returns a member's name within its database for the name that Patroni knows it by.
// That name begins with the scope, or, for a member of an older release, is the member's name
// itself.
func MemberName(patroniName string) string {
	return patroniName[strings.LastIndexByte(patroniName, '.')+1:]
}

// FindMember reads what a member publishes of itself, under whichever of its two names Patroni
// knows it. raw reads a key.
func FindMember(raw func(key string) (value []byte, revision int64, ok bool), scope, member string) (MemberState, bool) {
	value, _, ok := raw(MemberKey(scope, OwnName(scope, member)))
	if !ok {
		value, _, ok = raw(MemberKey(scope, member))
	}
	if !ok {
		return MemberState{}, false
	}
	m, err := ParseMember(value)
	return m, err == nil
}

// MembersPrefix is what the member keys of a scope begin with.
func MembersPrefix(scope string) string { return prefix(scope) + "members/" }

// SplitKey splits a key in Patroni's namespace into its scope and the rest.
func SplitKey(key string) (scope, rest string, ok bool) {
	tail, ok := strings.CutPrefix(key, Namespace)
	if !ok {
		return "", "", false
	}
	return strings.Cut(tail, "/")
}

// Sync is the synchronous state of a scope. In priority mode each standby in it has every
// acknowledged commit. In quorum mode the standbys have every acknowledged commit together.
type Sync struct {
	// Leader and Standbys are names of members: see MemberName. Standbys are those that may confirm
	// commits.
	Leader   string
	Standbys []string
	// Quorum is how many other standbys a candidate has to ask before it is certain to know of
	// every acknowledged commit. It is 0 in priority mode.
	Quorum int
}

// ParseSync reads the value of the sync key. An absent key is an empty state.
func ParseSync(value []byte) (Sync, error) {
	if len(value) == 0 {
		return Sync{}, nil
	}
	var raw struct {
		Leader  *string `json:"leader"`
		Standby *string `json:"sync_standby"`
		Quorum  *int    `json:"quorum"`
	}
	if err := json.Unmarshal(value, &raw); err != nil {
		return Sync{}, fmt.Errorf("read sync state: %w", err)
	}
	var s Sync
	if raw.Leader != nil {
		s.Leader = MemberName(*raw.Leader)
	}
	if raw.Standby != nil && *raw.Standby != "" {
		for _, name := range strings.Split(*raw.Standby, ",") {
			s.Standbys = append(s.Standbys, MemberName(name))
		}
	}
	if raw.Quorum != nil {
		s.Quorum = *raw.Quorum
	}
	return s, nil
}

// CutsNeeded returns how many of the standbys have to be cut off before the leader can acknowledge
// no commit. It is 0 when the leader needs no standby.
func (s Sync) CutsNeeded() int {
	if len(s.Standbys) == 0 {
		return 0
	}
	// With n standbys and quorum q, a commit waits for n-q of them. So it is impossible once q+1
	// are cut off. In priority mode q is 0.
	return s.Quorum + 1
}

// MemberState is what a member publishes in its key.
type MemberState struct {
	ConnURL        string `json:"conn_url"`
	APIURL         string `json:"api_url"`
	State          string `json:"state"` // running, starting, stopped, …
	Role           string `json:"role"`  // primary, replica, standby_leader, …
	ReplicaState   string `json:"replication_state"`
	Timeline       int    `json:"timeline"`
	Location       int64  `json:"xlog_location"` // absent (0) when not running
	PendingRestart bool   `json:"pending_restart"`
	// Differences holds the settings that a restart will change, by name.
	Differences map[string]Difference `json:"pending_restart_reason"`
	Tags        map[string]any        `json:"tags"`
}

// making lists the states in which Patroni creates a data directory, or starts PostgreSQL on one
// that it created (Patroni 4.1, postgresql/misc.py).
var making = []string{"initializing new cluster", "running custom bootstrap script", "creating replica", "starting after custom bootstrap", "starting"}

// Making reports whether Patroni creates a data directory, or starts PostgreSQL.
func (m MemberState) Making() bool { return slices.Contains(making, m.State) }

// Waits reports whether PostgreSQL runs with older settings than its files have. The library of cluster
// cache management counts for nothing: it comes and goes whenever PostgreSQL starts next.
func (m MemberState) Waits() bool {
	const libraries = "shared_preload_libraries"
	d, ours := m.Differences[libraries]
	return m.PendingRestart && !(ours && len(m.Differences) == 1 && withoutCache(d.Old) == withoutCache(d.New))
}

// CacheLibrary is that of cluster cache management. It is at the end of the list, behind the users'.
const CacheLibrary = "ccm"

// Unloaded reports whether PostgreSQL was started without the library of cluster cache management, and
// loads it when it starts next.
func (m MemberState) Unloaded() bool {
	d := m.Differences["shared_preload_libraries"]
	return m.PendingRestart && !loads(d.Old) && loads(d.New)
}

func loads(libraries string) bool {
	return slices.Contains(strings.Split(libraries, ","), CacheLibrary)
}

func withoutCache(libraries string) string {
	libraries, _ = strings.CutSuffix(libraries, ","+CacheLibrary)
	return libraries
}

// Difference has the value of a setting before and after a restart.
type Difference struct {
	Old string `json:"old_value"`
	New string `json:"new_value"`
}

// Generation returns the generation of the configuration that the member runs with.
func (m MemberState) Generation() int64 {
	n, _ := m.Tags["generation"].(float64)
	return int64(n)
}

// Shared returns the revision of ConfigKey that the member runs with. It is 0 if the member has not
// read the key yet, or if an older agent started it.
func (m MemberState) Shared() int64 {
	n, _ := m.Tags["shared"].(float64)
	return int64(n)
}

// Config returns the digest of the configuration that the member runs with. It is "" if an older
// agent made the configuration.
func (m MemberState) Config() string {
	digest, _ := m.Tags[ConfigTag].(string)
	return digest
}

// ParseMember reads the value of a member key.
func ParseMember(value []byte) (MemberState, error) {
	var m MemberState
	if err := json.Unmarshal(value, &m); err != nil {
		return m, fmt.Errorf("read member state: %w", err)
	}
	return m, nil
}
