package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/cli/screen"
)

const (
	// WaitTimeout is how long a command waits for what it asked for. The work goes on after that.
	WaitTimeout = 15 * time.Minute
	// waitLook is the pause between two looks.
	waitLook = 200 * time.Millisecond
	// absence is how long the API may be gone meanwhile.
	absence = time.Minute
)

// lasting is how long a problem must last before a person who waits is told of it.
const lasting = 5 * time.Second

// Gone is the status of what no longer exists.
const Gone = "deleted"

// WaitFor waits until the target has a status, and shows the server's steps.
func (o *Options) WaitFor(ctx context.Context, t *Target, status string) error {
	ctx, cancel := context.WithTimeout(ctx, WaitTimeout)
	defer cancel()
	p := o.Screen.Begin(o.Now)
	defer p.End()
	w := waiter{target: t, progress: p, status: status, now: o.Now, since: map[string]time.Time{}}
	return o.Poll(ctx, t.Name+" to be "+status, func() (bool, error) { return w.look(ctx) })
}

// waiter waits for a target to have a status.
type waiter struct {
	target   *Target
	progress *screen.Progress
	status   string
	now      func() time.Time
	since    map[string]time.Time // when each problem was seen first
}

// look reads the target once, shows what is going on, and reports whether the target has the
// status.
func (w *waiter) look(ctx context.Context) (bool, error) {
	truth, problems, err := w.target.Truth(ctx)
	if err != nil {
		return false, err
	}
	if err := w.target.Refresh(ctx); err != nil {
		return false, err
	}
	now := w.target.Status()
	switch {
	case now == "" && w.status == Gone:
		return true, nil
	case now == "":
		return false, fmt.Errorf("%s was deleted meanwhile", w.target.Name)
	case now == w.status:
		return true, nil
	}
	showSteps(w.progress, truth, now, w.now())
	w.tell(problems)
	return false, nil
}

// tell tells of problems that last. Shorter ones are part of what is going on.
func (w *waiter) tell(problems []admin.Problem) {
	for _, p := range problems {
		if w.since[p.Text].IsZero() {
			w.since[p.Text] = w.now()
		}
		if w.now().Sub(w.since[p.Text]) >= lasting {
			w.progress.Note(p.Text)
		}
	}
}

// showSteps shows what the server says that it does, or else the status word.
func showSteps(p *screen.Progress, d *admin.Database, status string, now time.Time) {
	if d == nil || len(d.Steps) == 0 {
		p.Step(status, now)
		return
	}
	last := d.Steps[len(d.Steps)-1]
	p.Step(last.Name, last.Began)
}

// Poll calls look until it returns true. If the API is away for a while, as when it is started
// again, poll waits for it.
func (o *Options) Poll(ctx context.Context, what string, look func() (bool, error)) error {
	var since time.Time
	for {
		done, err := look()
		switch {
		case errors.Is(err, client.ErrUnreachable) && (since.IsZero() || o.Now().Sub(since) < absence) && ctx.Err() == nil:
			if since.IsZero() {
				since = o.Now()
			}
		case err != nil:
			return interrupted(ctx, what, err)
		case done:
			return nil
		default:
			since = time.Time{}
		}
		select {
		case <-ctx.Done():
			return interrupted(ctx, what, ctx.Err())
		case <-time.After(o.Every):
		}
	}
}

// interrupted returns an error which says that the work goes on.
func interrupted(ctx context.Context, what string, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("waited %s for %s: it goes on: see howdah status", WaitTimeout, what)
	case ctx.Err() != nil:
		return fmt.Errorf("no longer waiting for %s: it goes on: see howdah status", what)
	}
	return err
}

// Stopped returns no error if Ctrl-C ended ctx: that is the way to end --watch.
func Stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was asked for
	}
	return err
}
