package counter

import (
	"howdah/internal/observe/series"
	"howdah/internal/observe/wait"
)

// Kinds of processes in pg_stat_activity.
const (
	clientBackend  = "client backend"
	parallelWorker = "parallel worker"
	vacuumWorker   = "autovacuum worker"
	checkpointer   = "checkpointer"
)

// Session says what some sessions that are alike do.
type Session struct {
	Backend string // backend_type
	Foreign bool   // a client that is not the load
	State   string // "" for processes that have none
	Event   wait.Event
	Count   float64
}

// Load adds up samples of sessions. The zero value is ready. It is not for several goroutines.
type Load struct {
	samples float64
	sums    map[string]float64 // by column
}

// Add takes in one sample: all sessions at one moment.
func (l *Load) Add(sample []Session) {
	if l.sums == nil {
		l.sums = map[string]float64{}
	}
	l.samples++
	for _, s := range sample {
		l.count(s)
	}
}

// count: a checkpointer that is not in its main loop makes a checkpoint, and a helper of a parallel
// query counts as the session that it helps.
func (l *Load) count(s Session) {
	switch s.Backend {
	case checkpointer:
		if s.Event.Counts() {
			l.sums[series.CheckpointRunning] += s.Count
		}
		return
	case vacuumWorker:
		l.sums[series.VacuumWorkers] += s.Count
		return
	case clientBackend, parallelWorker:
	default:
		return
	}
	if s.Foreign {
		if s.works() {
			l.sums[series.SessionsForeign] += s.Count
		}
		return
	}
	if s.Backend == clientBackend {
		l.sums[series.Sessions] += s.Count
	}
	switch s.State {
	case "idle":
		l.sums[series.SessionsIdle] += s.Count
	case "idle in transaction", "idle in transaction (aborted)":
		l.sums[series.SessionsInTrans] += s.Count
	}
	if s.works() {
		l.active(s)
	}
}

// works reports whether a session is active, and not in the main loop of some helper.
func (s Session) works() bool {
	return (s.State == "active" || s.State == "fastpath function call") && s.Event.Counts()
}

func (l *Load) active(s Session) {
	l.sums[series.Active] += s.Count
	l.sums[s.Event.Class().Column()] += s.Count
	l.sums[series.WaitPrefix+s.Event.String()] += s.Count
	if s.Event.Class() == wait.Lock {
		l.sums[series.LockWaiting] += s.Count
	}
}

// Take adds the means over all samples since the last Take to values, and begins anew. It adds
// nothing if there was no sample.
func (l *Load) Take(values map[string]float64) {
	if l.samples > 0 {
		for _, name := range always {
			values[name] = 0
		}
		for name, sum := range l.sums {
			values[name] = sum / l.samples
		}
	}
	*l = Load{}
}

// always has the columns of a load that are 0 where nobody was seen.
var always = func() []string {
	names := []string{
		series.Active, series.Sessions, series.SessionsIdle, series.SessionsInTrans, series.SessionsForeign, series.CheckpointRunning,
		series.VacuumWorkers, series.LockWaiting,
	}
	for _, class := range wait.Classes {
		names = append(names, class.Column())
	}
	return names
}()

// locksWaited reports whether a session of the load waits for a lock in this sample.
func locksWaited(sample []Session) bool {
	for _, s := range sample {
		if s.Event.Type == "Lock" && !s.Foreign {
			return true
		}
	}
	return false
}
