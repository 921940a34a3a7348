package database

import (
	"testing"
	"time"

	"howdah/internal/host/agent"
	"howdah/internal/host/database/aside"
	"howdah/internal/host/database/probe"
	"howdah/internal/model/member"
)

// Who waits is told before what can wait, and by a server that answers only.
func TestCommitsThatWaitAreTold(t *testing.T) {
	t.Parallel()
	s := probe.Sight{Ready: true, Stuck: 3, StuckSince: time.Date(2026, 11, 22, 12, 0, 5, 0, time.UTC)}
	limited := member.Assignment{Limits: member.Limits{StorageBytes: 1000}}
	r := runner{Member: &agent.Member{Want: limited}, aside: &aside.Data{}}
	got := member.Report{Ready: true, StorageBytes: 1000}
	r.addProblem(&got, s)
	if got.Problem != member.CommitsWait || got.Detail != "3, the first since 12:00:05Z" {
		t.Errorf("%q %q", got.Problem, got.Detail)
	}
	got = member.Report{}
	r.addProblem(&got, s)
	if got.Problem != member.None {
		t.Errorf("a server that does not answer: %q", got.Problem)
	}
}
