package main

import (
	"fmt"
	"time"

	"howdah/internal/failover/postmortem"
)

// phase names the part of an outage that took most of it. It goes by the post-mortem, and at both
// ends by what the writers saw. struck is when the fault happened. back is when every writer was
// acknowledged again.
func phase(struck, back time.Time, r postmortem.Record) string {
	longest, name := time.Duration(0), ""
	last := struck
	for _, step := range []struct {
		name string
		end  time.Time
	}{
		{"to be noticed", r.Detected}, {"to fence", r.Fenced}, {"to revoke", r.Revoked}, {"to elect", r.Elected},
		{"to promote", r.Promoted}, {"to switch", r.Switched}, {"until a write was confirmed", r.FirstWrite}, {"until all writers were back", back},
	} {
		if step.end.IsZero() || step.end.Before(last) {
			continue
		}
		if took := step.end.Sub(last); took > longest {
			longest, name = took, step.name
		}
		last = step.end
	}
	if name == "" {
		return ""
	}
	return fmt.Sprintf("greatest: %.2f s %s", longest.Seconds(), name)
}
