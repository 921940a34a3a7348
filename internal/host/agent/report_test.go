package agent

import (
	"testing"
	"time"

	"howdah/internal/model/member"
)

// Positions and sizes move all the time: they alone are written seldom.
func TestWhatIsWorthAReport(t *testing.T) {
	old := member.Report{ID: "x", LSN: 5, Ready: true}
	soft, hard := old, old
	soft.LSN, soft.LagSeconds, soft.StorageBytes, soft.Detail, soft.At = 6, 1, 7, "d", time.Now()
	hard.Streaming = true
	paused := old
	paused.Paused = true
	if !sameFacts(soft, old) || sameAll(soft, old) || sameFacts(hard, old) || sameFacts(paused, old) {
		t.Errorf("soft: %v %v, hard: %v", sameFacts(soft, old), sameAll(soft, old), sameFacts(hard, old))
	}
	later := old
	later.At = time.Now()
	if !sameAll(later, old) {
		t.Error("time alone is news")
	}
}
