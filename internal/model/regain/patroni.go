package regain

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
)

const (
	// Held stands for the identifier of the data of a database that is held, which no
	// data have: a paused Patroni takes the leader key for nobody else's (ha.py,
	// is_healthiest_node).
	Held = "held"
	// NobodyInSync is Patroni's synchronous state of a database of which nobody knows who
	// has everything. Without the key everybody would count.
	NobodyInSync = `{"leader":"held","sync_standby":null,"quorum":0}`
)

const (
	paused = "pause"
	// following is there in a database that follows another one.
	following = "standby_cluster"
)

// Pause is Patroni's configuration of a database that is held.
func Pause(config map[string]any) (string, error) {
	config = maps.Clone(config)
	config[paused] = true
	return encode(config)
}

// Resume is the same without the pause. A database that follows no other one is not to
// do so either, not for a moment: its primary would be made a copy of the other one.
func Resume(text []byte, follows bool) (string, error) {
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
	return encode(config)
}

// Alone is the synchronous state of a primary that has no standby yet.
func Alone(leader string) (string, error) {
	return encode(map[string]any{"leader": leader, "sync_standby": nil, "quorum": 0})
}

// History is Patroni's list of timelines of a database whose newest one is known. One
// that ends before it takes the leader key for nobody's; its primary writes it in full.
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
