package reconcile

import (
	"fmt"
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// A member waits for a restart if it says so in its present role. What a primary last said does not
// hold for the standby that it becomes.
func TestWhoWaitsForARestart(t *testing.T) {
	const pending = `{"state":"running","role":%q,"pending_restart":%t,"pending_restart_reason":{%q:{"old_value":"120","new_value":"140"}}}`
	for _, tt := range []struct {
		name, member, role, setting string
		pending, waits, growing     bool
	}{
		{"a primary", "m1", "primary", "max_connections", true, true, true},
		{"a standby", "m2", "replica", "max_connections", true, true, true},
		{"a standby, for what it may have less of", "m2", "replica", "shared_buffers", true, true, false},
		{"one that was the primary", "m2", "primary", "max_connections", true, false, false},
		{"nobody", "m2", "replica", "max_connections", false, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := made(t, true)
			b.same(patroni.MemberKey(dbID, patroni.OwnName(dbID, tt.member)), fmt.Sprintf(pending, tt.role, tt.pending, tt.setting))
			in := b.input()
			if in.Leader != "m1" {
				t.Fatalf("%s leads", in.Leader)
			}
			id := member.ID(dbID, tt.member)
			if in.PendingRestart[id] != tt.waits || in.Growing[id] != tt.growing {
				t.Errorf("waits %t, growing %t", in.PendingRestart[id], in.Growing[id])
			}
		})
	}
}

// A member is behind until its Patroni has read what all members share, if Patroni tells.
func TestWhoIsBehind(t *testing.T) {
	b := made(t, true)
	_, config, _ := b.cache.Raw(patroni.ConfigKey(dbID))
	if config == 0 {
		t.Fatal("nothing is shared")
	}
	for shared, want := range map[int64]bool{0: false, config - 1: true, config: false} {
		b.same(patroni.MemberKey(dbID, patroni.OwnName(dbID, "m1")), fmt.Sprintf(`{"state":"running","tags":{"generation":1,"shared":%d}}`, shared))
		if got := b.input().Behind[member.ID(dbID, "m1")]; got != want {
			t.Errorf("revision %d of %d: behind %t", shared, config, got)
		}
	}
}
