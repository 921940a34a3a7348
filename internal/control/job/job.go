// Package job asks hosts for what operations want of them, by keys of the state (model/member.Job),
// and tells operations what hosts report. Package host/job is the other side. It is for whoever
// leads: what it answers as changes goes into the transactions of operations.
package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	step "howdah/internal/control/operation"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/state"
)

const (
	// lostAfter is how long a host may not be alive before its jobs count as lost. An agent that is
	// started again, or a host that boots fast, goes on with them.
	lostAfter = 30 * time.Second
	// takenWithin is how long a host that is alive may leave a job lying. One of an older release
	// never looks at it.
	takenWithin = 2 * time.Minute
)

// Hosts are the hosts of a home. They implement operation.Hosts.
type Hosts struct {
	store *state.Store
	cache *state.Cache // of state.Root
	now   func() time.Time
}

// New returns the hosts of a home. The cache may run later.
func New(store *state.Store, cache *state.Cache) *Hosts {
	return &Hosts{store: store, cache: cache, now: time.Now}
}

// Ask returns the change that asks for a job, unless there is one of the name.
func (h *Hosts) Ask(j step.Job) []state.Op {
	return []state.Op{state.Swap(state.Job(j.Host, j.Name), 0, member.Job{
		Name: j.Name, Host: j.Host, Kind: j.Kind, Turn: j.Turn, Args: j.Args, At: h.now().UTC(),
	})}
}

// Forget returns the change that ends a job.
func (h *Hosts) Forget(host, name string) []state.Op {
	return []state.Op{state.Delete(state.Job(host, name))}
}

// Look reads how far a job is. A job that a host has ended is ended whatever became of the host
// since. One that goes on is lost with its host.
func (h *Hosts) Look(ctx context.Context, host, name string) (step.JobReport, error) {
	asked, err := state.Get[member.Job](ctx, h.store, state.Job(host, name))
	if errors.Is(err, state.ErrNotFound) {
		return step.JobReport{State: step.NotAsked}, nil
	}
	if err != nil {
		return step.JobReport{}, err
	}
	said, err := state.Get[member.JobReport](ctx, h.store, state.JobReport(host, name))
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return step.JobReport{}, err
	}
	r, begun := said.Value, err == nil && said.Value.Asked == asked.Revision
	report := step.JobReport{State: step.InProgress}
	if begun {
		report.Progress = operation.Progress{Done: r.Done, Of: r.Of, Unit: r.Unit}
		report.Detail, report.Result = r.Detail, r.Result
	}
	switch {
	case begun && r.State == member.JobDone:
		report.State = step.Succeeded
	case begun && r.State == member.JobFailed:
		report.State, report.Result, report.Final = step.Lost, nil, r.Final
	default:
		if why := h.lost(host, asked.Value, begun); why != "" {
			report.State, report.Detail = step.Lost, why
		}
	}
	return report, nil
}

// lost says why nothing is to be expected of a host; "": it may end the job.
func (h *Hosts) lost(host string, asked member.Job, begun bool) string {
	if _, _, known := h.cache.Raw(state.Host(host)); !known {
		return fmt.Sprintf("there is no host %s any more", host)
	}
	live, err := state.View[member.Liveness](h.cache, state.Live(host))
	away := time.Duration(0)
	if err == nil && !live.Value.Alive {
		away = h.now().Sub(live.Value.Since)
	}
	switch waits := h.now().Sub(asked.At); {
	case away > lostAfter:
		return fmt.Sprintf("host %s is lost since %s", host, live.Value.Since.UTC().Format(time.DateTime+"Z"))
	case !begun && away == 0 && waits > takenWithin:
		return fmt.Sprintf("host %s has not begun it within %s: is its release of Howdah an older one?", host, takenWithin)
	}
	return ""
}
