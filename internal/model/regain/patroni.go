package regain

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"howdah/internal/model/patroni"
)

const (
	// Held takes the place of the system identifier of a database that is held. No data have this
	// identifier. So a paused Patroni never takes the leader key (ha.py, is_healthiest_node).
	Held = "held"
	// NobodyInSync is a synchronous state of Patroni for a database that is held. Nobody knows
	// which member has everything, so it names no standby. If the key were absent, Patroni could
	// promote any member.
	NobodyInSync = `{"leader":"held","sync_standby":null,"quorum":0}`
)

const (
	paused = "pause"
	// following is the part of the configuration that a database has if it follows another one.
	following = "standby_cluster"
	// synchronous is the part that says which standbys confirm commits.
	synchronous = "synchronous_mode"
)

// Pause returns Patroni's configuration with the pause that holds a database.
func Pause(config map[string]any) (string, error) {
	config = maps.Clone(config)
	config[paused] = true
	return encode(config)
}

// Resume returns the configuration without the pause. It also removes the upstream of a database
// that follows no other one. Otherwise its primary would become a copy of that upstream, if only
// for a moment. Commits are confirmed as sync says, unless it is SyncOff: standbys may have been
// added since the backup. Otherwise Patroni would drop what /sync says, and promote any of them.
func Resume(text []byte, follows bool, sync patroni.SyncMode) (string, error) {
	config := map[string]any{}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &config); err != nil {
			return "", fmt.Errorf("read Patroni's configuration: %w", err)
		}
	}
	delete(config, paused)
	if !follows {
		delete(config, following)
	}
	if sync != patroni.SyncOff {
		config[synchronous] = sync.Setting()
	}
	return encode(config)
}

// Alone returns the synchronous state of a primary that has no standby yet.
func Alone(leader string) (string, error) {
	return encode(map[string]any{"leader": leader, "sync_standby": nil, "quorum": 0})
}

// History returns a history for Patroni of which only the newest timeline is known. If it ended
// before that timeline, no member could take the leader key. The primary later writes it in full.
func History(timeline int) string {
	if timeline < 2 {
		return "[]"
	}
	return "[[" + strconv.Itoa(timeline-1) + `,0,"the home was restored"]]`
}

func encode(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encode for Patroni: %w", err)
	}
	return string(text), nil
}
