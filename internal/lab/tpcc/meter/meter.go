// Package meter counts what virtual users do: latencies by kind of transaction, errors by SQLSTATE, and
// a series by second. It does no I/O.
package meter

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"howdah/internal/lab/heard"
	"howdah/internal/lab/tpcc/form"
)

// Latencies are kept from a microsecond to a minute, with three digits.
const (
	lowest  = 1
	highest = int64(time.Minute / time.Microsecond)
	digits  = 3
)

// mostShares bounds how many sets of histograms there are. A set takes 700 kB, and a user for itself
// would gain nothing: two of a share seldom end a transaction at the same time.
const mostShares = 32

// Recorder counts for all users of a run.
type Recorder struct {
	began   time.Time
	running atomic.Bool // the measured time is
	shares  []share
	series  series

	mu      sync.Mutex
	outside map[string]int64  // errors by SQLSTATE outside of the measured time. Guarded by mu
	texts   map[string]string // of an error of each SQLSTATE. Guarded by mu
}

// share has what some users did in the measured time.
type share struct {
	mu    sync.Mutex
	kinds [form.Kinds]tally // guarded by mu
}

type tally struct {
	latencies   *hdrhistogram.Histogram
	rolledBack  int64
	retries     int64
	errors      map[string]int64
	connections int64 // lost
}

// New returns a recorder for so many users. The series begins at began.
func New(users int, began time.Time) *Recorder {
	r := &Recorder{began: began, shares: make([]share, max(1, min(users, mostShares))), outside: map[string]int64{}, texts: map[string]string{}}
	for i := range r.shares {
		for k := range r.shares[i].kinds {
			r.shares[i].kinds[k] = tally{latencies: hdrhistogram.New(lowest, highest, digits), errors: map[string]int64{}}
		}
	}
	return r
}

// Open begins the measured time.
func (r *Recorder) Open() { r.running.Store(true) }

// Shut ends the measured time.
func (r *Recorder) Shut() { r.running.Store(false) }

// Meter counts for one user, in the user's goroutine.
type Meter struct {
	of    *Recorder
	share *share
	slot  *slot // of the last second in which something ended
	at    int
}

// Of returns the meter of a user, from 0.
func (r *Recorder) Of(user int) *Meter {
	return &Meter{of: r, share: &r.shares[user%len(r.shares)], at: -1}
}

// now returns what counts for the second in which it is called.
func (m *Meter) now(at time.Time) *slot {
	if second := int(at.Sub(m.of.began) / time.Second); second != m.at {
		m.slot, m.at = m.of.series.slot(second), second
	}
	return m.slot
}

// Done counts a transaction that ended as it should, at a time and after a while. One that was rolled
// back because an item is not there did so, too.
func (m *Meter) Done(kind form.Kind, at time.Time, took time.Duration, rolledBack bool) {
	micros := took.Microseconds()
	m.now(at).done(kind, micros)
	if !m.of.running.Load() {
		return
	}
	m.share.mu.Lock()
	defer m.share.mu.Unlock()
	t := &m.share.kinds[kind]
	// It is always within the bounds, so this gives no error.
	_ = t.latencies.RecordValue(min(max(micros, lowest), highest))
	if rolledBack {
		t.rolledBack++
	}
}

// Failed counts a transaction that ended with an error. lost says that its session did, too.
func (m *Meter) Failed(kind form.Kind, at time.Time, state, text string, lost bool) {
	state = m.failed(at, state, text)
	if !m.of.running.Load() {
		return
	}
	m.share.mu.Lock()
	defer m.share.mu.Unlock()
	m.share.kinds[kind].errors[state]++
	if lost {
		m.share.kinds[kind].connections++
	}
}

// failed returns the state under which the error counts.
func (m *Meter) failed(at time.Time, state, text string) string {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	state = heard.Among(m.of.texts, state)
	m.now(at).failed(state)
	if _, known := m.of.texts[state]; !known {
		m.of.texts[state] = text
	}
	if !m.of.running.Load() {
		m.of.outside[state]++
	}
	return state
}

// Refused counts an attempt to connect that failed. It belongs to no transaction, so it is in the
// series, and in the errors outside of transactions.
func (m *Meter) Refused(at time.Time, state, text string) {
	m.failed(at, state, text)
	m.now(at).refused.Add(1)
}

// Reconnected counts a session that took the place of a lost one.
func (m *Meter) Reconnected(at time.Time) { m.now(at).reconnected.Add(1) }

// Retried counts that a transaction is tried again.
func (m *Meter) Retried(kind form.Kind, at time.Time) {
	m.now(at).retried.Add(1)
	if !m.of.running.Load() {
		return
	}
	m.share.mu.Lock()
	defer m.share.mu.Unlock()
	m.share.kinds[kind].retries++
}

// Outside returns how many errors of each SQLSTATE there were outside of the measured time.
func (r *Recorder) Outside() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.outside)
}

// Texts returns the text of the first error of each SQLSTATE.
func (r *Recorder) Texts() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.texts)
}
