package proc

import (
	"context"
	"errors"
	"slices"
	"time"

	"howdah/internal/host/proc/table"
)

// ErrRuns says that what is to be started already runs. From then on Leader returns it.
var ErrRuns = errors.New("runs already")

// begunWithin is how long Start looks for a command that an earlier life of this process was about
// to start when it was killed. The command is there at once, or never.
const begunWithin = 300 * time.Millisecond

// awaitBegun takes charge of a command that an earlier life of this process started and could not
// record before it was killed. It returns ErrGone if there is none.
func (g *Group) awaitBegun(ctx context.Context) (Process, error) {
	if r, err := g.record(); err != nil || r.Begun == nil {
		return Process{}, errors.Join(err, ErrGone)
	}
	ctx, cancel := context.WithTimeout(ctx, begunWithin)
	defer cancel()
	var process Process
	err := until(ctx, func() (bool, error) {
		var err error
		process, err = g.adoptBegun()
		if errors.Is(err, ErrGone) {
			return false, nil
		}
		return err == nil, err
	})
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = ErrGone
	}
	return process, err
}

// adoptBegun records the process that was begun as one that this process started.
func (g *Group) adoptBegun() (Process, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, err := g.record()
	if err != nil || r.Begun == nil {
		return Process{}, errors.Join(err, ErrGone)
	}
	process, err := g.findBegun(r.Begun)
	if err != nil {
		return Process{}, err
	}
	r.Sessions, r.Begun = append(slices.Clip(r.Sessions), process), nil
	return process, g.save(r)
}

// findBegun returns the oldest process that runs the command in a session of its own, with the
// group's mark. What that process forks looks the same for a moment.
func (g *Group) findBegun(command []string) (Process, error) {
	all, err := g.host.processes.All()
	if err != nil {
		return Process{}, err
	}
	var oldest *table.Entry
	for i, e := range all {
		if e.Session != e.PID || e.Dead() || oldest != nil && e.Start >= oldest.Start {
			continue
		}
		// The interpreter of a script stands before it.
		words := g.host.processes.Arguments(e.PID)
		if len(words) >= len(command) && slices.Equal(words[len(words)-len(command):], command) && g.host.processes.HasEnv(e.PID, g.marker()) {
			oldest = &all[i]
		}
	}
	if oldest == nil {
		return Process{}, ErrGone
	}
	return oldest.ID, nil
}
