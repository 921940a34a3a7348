package patroni

import "encoding/json"

type object = map[string]any

// SyncMode says how many standbys must confirm a commit.
type SyncMode string

// The three modes that Howdah uses. SyncOff is for a database with one member.
const (
	SyncOff    SyncMode = "off"
	SyncSingle SyncMode = "on"     // the one chosen standby; none while it is gone
	SyncQuorum SyncMode = "quorum" // any one of several
)

// Cluster is the part of a database's configuration that all members share. It is kept in etcd at
// ConfigKey.
type Cluster struct {
	Sync SyncMode
	// WaitForStandby makes writes wait while no standby can confirm them.
	WaitForStandby bool
	// Parameters are PostgreSQL settings that must be the same on all members.
	Parameters map[string]string
	// Slots are the physical replication slots for databases that follow this one.
	Slots []string
	// LogicalSlots keeps users' logical replication slots. Without it, Patroni drops the slots that
	// it does not know.
	LogicalSlots bool `json:",omitempty"`
	// Upstream makes the whole database follow another one.
	Upstream *Upstream
}

// Upstream is the database that a read replica follows.
type Upstream struct {
	Host string
	Port int
	Slot string
	// Origin is the database at the root of a chain of read replicas. It is set where Host is a
	// read replica itself. The primary of Origin decides which timelines are history.
	Origin *Address `json:",omitempty"`
}

// Address is where a database is served.
type Address struct {
	Host string
	Port int
}

// Document renders the value of ConfigKey. Equal clusters give the same bytes.
func (c Cluster) Document() ([]byte, error) { return json.Marshal(c.document()) }

func (c Cluster) document() object {
	doc := object{
		"ttl": TTL, "loop_wait": LoopWait, "retry_timeout": RetryTimeout,
		// A crashed primary is replaced, not restarted, if another member can replace it.
		"primary_start_timeout": 0,
		// A standby in the sync key has every acknowledged commit. It may still lack much
		// unacknowledged WAL of a bulk load. So no limit on the lag may prevent its promotion, or
		// end its synchronous state.
		"maximum_lag_on_failover": 1 << 40,
		"check_timeline":          true,
		"failsafe_mode":           true,
		"synchronous_mode":        c.Sync.Setting(),
		"synchronous_mode_strict": c.WaitForStandby && c.Sync != SyncOff,
		"synchronous_node_count":  1,
		"max_timelines_history":   100,
		"postgresql": object{
			"use_pg_rewind": true,
			"use_slots":     true,
			"parameters":    c.Parameters,
		},
	}
	if len(c.Slots) > 0 {
		slots := object{}
		for _, name := range c.Slots {
			slots[name] = object{"type": "physical"}
		}
		doc["slots"] = slots
	}
	if c.LogicalSlots {
		doc["ignore_slots"] = []any{object{"type": "logical"}}
	}
	if u := c.Upstream; u != nil {
		follow := object{
			"host": u.Host, "port": u.Port, "primary_slot_name": u.Slot, "create_replica_methods": []any{"basebackup"},
		}
		if u.Origin != nil { // read by sitecustomize.py
			follow["origin"] = object{"host": u.Origin.Host, "port": u.Origin.Port}
		}
		doc["standby_cluster"] = follow
	}
	return doc
}

// Setting returns the value of Patroni's synchronous_mode.
func (m SyncMode) Setting() any {
	switch m {
	case SyncQuorum:
		return "quorum"
	case SyncSingle:
		return true
	default:
		return false
	}
}
