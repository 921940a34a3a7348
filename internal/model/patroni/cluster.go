package patroni

import "encoding/json"

type object = map[string]any

// SyncMode is how many standbys have to confirm a commit.
type SyncMode string

// The three modes of this project. Off is for a database with one member.
const (
	SyncOff    SyncMode = "off"
	SyncSingle SyncMode = "on"     // the one chosen standby; none while it is gone
	SyncQuorum SyncMode = "quorum" // any one of several
)

// Cluster is the part of a database's configuration that all members share, kept
// in etcd under the scope's config key.
type Cluster struct {
	Sync SyncMode
	// WaitForStandby makes writes wait while no standby can confirm them.
	WaitForStandby bool
	// Parameters are PostgreSQL settings that must be the same on all members.
	Parameters map[string]string
	// Slots are physical replication slots of databases that follow this one.
	Slots []string
	// LogicalSlots leaves users' logical replication slots alone: Patroni drops what it
	// does not know.
	LogicalSlots bool `json:",omitempty"`
	// Upstream makes the whole database follow another one.
	Upstream *Upstream
}

// Upstream is the database that a read replica follows.
type Upstream struct {
	Host string
	Port int
	Slot string
	// Origin is the database that this one's data come from in the end, where Host is a
	// read replica itself: what history is, its primary decides.
	Origin *Address `json:",omitempty"`
}

// Address is where a database is served.
type Address struct {
	Host string
	Port int
}

// Document renders the value of the scope's config key. The output depends on
// nothing but c, byte for byte.
func (c Cluster) Document() ([]byte, error) { return json.Marshal(c.document()) }

func (c Cluster) document() object {
	doc := object{
		"ttl": TTL, "loop_wait": LoopWait, "retry_timeout": RetryTimeout,
		// A crashed primary is replaced rather than restarted, if anyone can replace it.
		"primary_start_timeout": 0,
		// A standby in the sync key has every acknowledged commit, however much
		// unacknowledged WAL of a bulk load it has not received: no limit on the
		// lag may keep it from being promoted, or from staying synchronous.
		"maximum_lag_on_failover": 1 << 40,
		"check_timeline":          true,
		"failsafe_mode":           true,
		"synchronous_mode":        c.syncMode(),
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

func (c Cluster) syncMode() any {
	switch c.Sync {
	case SyncQuorum:
		return "quorum"
	case SyncSingle:
		return true
	default:
		return false
	}
}
