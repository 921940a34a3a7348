package patroni

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Namespace is where Patroni keeps its keys in etcd.
const Namespace = "/service/"

// Keys of one scope in etcd.
func prefix(scope string) string { return Namespace + scope + "/" }

// Prefix is what all keys of a scope begin with.
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

// FailsafeKey holds the URLs of all members, by Patroni's names for them, as the primary
// knew them last: whom it asks whether it may go on without etcd.
func FailsafeKey(scope string) string { return prefix(scope) + "failsafe" }

// MemberKey holds what a member says of itself: see MemberState and FindMember.
func MemberKey(scope, member string) string { return prefix(scope) + "members/" + member }

// OwnName is the name that Patroni is given for a member: it begins with the scope, so
// that no other database has a member of that name. Patroni makes it the member's
// application_name, by which PostgreSQL tells standbys that confirm commits from all
// others who stream from it.
func OwnName(scope, member string) string { return scope + "." + member }

// MaxName is how many bytes PostgreSQL keeps of a name, also of the slot that Patroni
// names after a member.
const MaxName = 63

// MemberName is the name of a member among those of its own database, by the one that
// Patroni has for it: an own name, or, of a member made by an older release, the same.
func MemberName(patroniName string) string {
	return patroniName[strings.LastIndexByte(patroniName, '.')+1:]
}

// FindMember is what a member says of itself, by whichever of its names Patroni knows
// it. raw reads a key.
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

// SplitKey finds the scope that a key in Patroni's namespace belongs to, and the
// rest of the key.
func SplitKey(key string) (scope, rest string, ok bool) {
	tail, ok := strings.CutPrefix(key, Namespace)
	if !ok {
		return "", "", false
	}
	return strings.Cut(tail, "/")
}

// Sync is the synchronous state of a scope. A standby in it is known to have
// every acknowledged commit, alone (priority mode) or together with others.
type Sync struct {
	// Leader and Standbys, who may confirm commits, are names of members: see MemberName.
	Leader   string
	Standbys []string
	// Quorum is how many of the standbys, besides a candidate, have to be asked
	// before it is sure to have everything; 0 in priority mode.
	Quorum int
}

// ParseSync reads the value of the sync key; an absent key is an empty state.
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

// CutsNeeded is how many of the standbys have to be cut off from the leader
// before it can no longer acknowledge a commit: one more than may be missing
// from k of n. It is 0 when the leader needs no standby at all.
func (s Sync) CutsNeeded() int {
	if len(s.Standbys) == 0 {
		return 0
	}
	// With n standbys and quorum q, a commit waits for n-q of them, so it is
	// impossible once q+1 are cut off. In priority mode all of them confirm.
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
	// Differences are the settings that a restart changes, by name.
	Differences map[string]Difference `json:"pending_restart_reason"`
	Tags        map[string]any        `json:"tags"`
}

// making are the states in which Patroni makes a data directory, or starts PostgreSQL
// on one that it made (Patroni 4.1, postgresql/misc.py).
var making = []string{"initializing new cluster", "running custom bootstrap script", "creating replica", "starting after custom bootstrap", "starting"}

// Making reports whether Patroni makes a data directory, or starts PostgreSQL.
func (m MemberState) Making() bool { return slices.Contains(making, m.State) }

// Difference is what a setting is, and what it is to be after a restart.
type Difference struct {
	Old string `json:"old_value"`
	New string `json:"new_value"`
}

// Generation is the one of the configuration that the member runs with.
func (m MemberState) Generation() int64 {
	n, _ := m.Tags["generation"].(float64)
	return int64(n)
}

// Shared is the revision of the shared configuration, at ConfigKey, that the member runs
// with; 0 if it has not read one, or an older agent started it.
func (m MemberState) Shared() int64 {
	n, _ := m.Tags["shared"].(float64)
	return int64(n)
}

// Config is the digest of the configuration that the member runs with; "" if an older
// agent made it.
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
