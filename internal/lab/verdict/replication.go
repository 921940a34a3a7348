package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"howdah/internal/observe/series"
	"howdah/internal/observe/wait"
)

// standby is one for which commits wait, with its lag as the server measures it, in ms.
type standby struct {
	name          string
	flush, replay float64
}

// replication: commits wait for a standby.
func replication(e Evidence) (Finding, bool) {
	share, _ := e.events(wait.Event.Replication)
	if share < waitShare {
		return Finding{}, false
	}
	f := Finding{
		Cause: Replication, Sentence: "Replication limits it: commits wait until a standby has confirmed.",
		Reasons: []Reason{reason("replication_share", fmt.Sprintf("%s of the active sessions waited for a standby's confirmation.", percent(share)),
			Figure{"replication_share", share, "share", waitShare})},
	}
	took, known := e.commitWait()
	if known {
		f.Reasons = append(f.Reasons, reason("commit_wait", fmt.Sprintf("A commit waited %s ms for it.", number(took)),
			Figure{Name: "commit_wait", Value: took, Unit: "ms"}))
	}
	if slowest, found := e.slowestStandby(took); found {
		f.Subject = slowest.name
		f.Reasons = append(f.Reasons, reason("standby_lag", fmt.Sprintf("The standby %s had flushed after %s ms, and replayed after %s ms.", slowest.name, number(slowest.flush), number(slowest.replay)),
			Figure{Name: series.StandbyPrefix + slowest.name + flushLag, Value: slowest.flush, Unit: "ms"},
			Figure{Name: series.StandbyPrefix + slowest.name + replayLag, Value: slowest.replay, Unit: "ms"}))
	}
	return f, true
}

// commitWait returns how long a commit waited, in ms: the mean of those who wait, over how many come
// a second.
func (e Evidence) commitWait() (float64, bool) {
	waiting, seen := e.Observed.Mean(series.WaitPrefix + "IPC:SyncRep")
	commits, known := e.Observed.Mean(series.Commits)
	if !seen || !known || commits <= 0 {
		return 0, false
	}
	return waiting / commits * 1000, true
}

// The ends of a standby's columns.
const (
	flushLag  = ".flush_lag_seconds"
	replayLag = ".replay_lag_seconds"
)

// slowestStandby returns the one that holds commits up. These usually wait for the flush. If they
// wait much longer than any takes for that, they wait for the replay.
func (e Evidence) slowestStandby(took float64) (standby, bool) {
	all := e.standbys()
	if len(all) == 0 {
		return standby{}, false
	}
	by := func(lag func(standby) float64) standby {
		return slices.MaxFunc(all, func(a, b standby) int { return cmp.Compare(lag(a), lag(b)) })
	}
	slowest := by(func(s standby) float64 { return s.flush })
	if took > 2*slowest.flush {
		slowest = by(func(s standby) float64 { return s.replay })
	}
	return slowest, true
}

// standbys lists those for which commits wait, in the order of their names.
func (e Evidence) standbys() []standby {
	var all []standby
	for column, stat := range e.Observed.Columns {
		rest, ours := strings.CutPrefix(column, series.StandbyPrefix)
		name, ok := strings.CutSuffix(rest, ".sync")
		if !ours || !ok || stat.Mean == 0 {
			continue
		}
		prefix := series.StandbyPrefix + name
		all = append(all, standby{name, 1000 * e.mean(prefix+flushLag), 1000 * e.mean(prefix+replayLag)})
	}
	slices.SortFunc(all, func(a, b standby) int { return strings.Compare(a.name, b.name) })
	return all
}
