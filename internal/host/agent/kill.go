package agent

import (
	"context"
	"time"

	"howdah/internal/host/proc"
	"howdah/internal/model/member"
)

// KillAll ends every process of the member, proved; false: not all could be, which is a problem
// then. It waits for as long as ctx lets it, and is called by the goroutine of the member.
func (m *Member) KillAll(ctx context.Context, why string) bool {
	_, ok := m.Kill(ctx, why)
	return ok
}

// Kill is KillAll with its proof.
func (m *Member) Kill(ctx context.Context, why string) (proc.Proof, bool) {
	proof, err := m.Group.Kill(ctx)
	if err != nil {
		m.Problem, m.Detail = member.CannotContain, err.Error()
		m.Log.Error("kill member", "why", why, "error", err)
		return proof, false
	}
	if proof.Found > 0 {
		m.Log.Info("killed", "why", why, "processes", proof.Found)
	}
	m.Leader.Clear()
	m.Server.Clear()
	return proof, true
}

// ProveWithin is how long the processes of a member that hangs may take to die. Those
// that wait for a disk do not before the disk answers.
const ProveWithin = time.Second

// EndAll ends all processes of the member, proved, and may be called beside its goroutine, which
// clears what watches them. Where some wait for a disk, and do not
// end, it is proved that they do nothing else any more; the member then stays down until
// they are gone.
func (m *Member) EndAll(ctx context.Context) (proc.Proof, error) {
	limited, cancel := context.WithTimeout(ctx, ProveWithin)
	defer cancel()
	m.doomed.Store(true)
	proof, err := m.Group.Kill(limited)
	if err == nil {
		m.doomed.Store(false)
		return proof, nil
	}
	again, cancelAgain := context.WithTimeout(ctx, ProveWithin)
	defer cancelAgain()
	if proof, err = m.Group.Doom(again); err == nil {
		return proof, nil
	}
	// It is not the disk; a busy machine may take its time.
	if proof, err = m.Group.Kill(ctx); err != nil {
		return proc.Proof{}, err
	}
	m.doomed.Store(false)
	return proof, nil
}

// buried reports whether everything that was killed is gone, so that something may be
// started in its place.
func (m *Member) buried(ctx context.Context) bool {
	if !m.doomed.Load() {
		return true
	}
	if time.Since(m.dug) < time.Second {
		return false
	}
	m.dug = time.Now()
	limited, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := m.Group.Kill(limited); err != nil {
		return false
	}
	m.Log.Info("the processes that waited for the disk are gone")
	m.doomed.Store(false)
	m.workload.Buried()
	return true
}
