package agent

import (
	"context"
	"time"

	"howdah/internal/host/proc"
	"howdah/internal/model/member"
)

// killAll ends every process of the member, proved.
func (m *Member) killAll(ctx context.Context, why string) bool {
	_, ok := m.kill(ctx, why)
	return ok
}

// kill is killAll with its proof.
func (m *Member) kill(ctx context.Context, why string) (proc.Proof, bool) {
	proof, err := m.group.Kill(ctx)
	if err != nil {
		m.problem, m.detail = member.CannotContain, err.Error()
		m.log.Error("kill member", "why", why, "error", err)
		return proof, false
	}
	if proof.Found > 0 {
		m.log.Info("killed", "why", why, "processes", proof.Found)
	}
	m.leader.clear()
	m.server.clear()
	return proof, true
}

// proveWithin is how long the processes of a member that hangs may take to die. Those
// that wait for a disk do not before the disk answers.
const proveWithin = time.Second

// endAll ends all processes of the member, proved. Where some wait for a disk, and do not
// end, it is proved that they do nothing else any more; the member then stays down until
// they are gone.
func (m *Member) endAll(ctx context.Context) (proc.Proof, error) {
	limited, cancel := context.WithTimeout(ctx, proveWithin)
	defer cancel()
	m.doomed.Store(true)
	proof, err := m.group.Kill(limited)
	if err == nil {
		m.doomed.Store(false)
		return proof, nil
	}
	again, cancelAgain := context.WithTimeout(ctx, proveWithin)
	defer cancelAgain()
	if proof, err = m.group.Doom(again); err == nil {
		return proof, nil
	}
	// It is not the disk; a busy machine may take its time.
	if proof, err = m.group.Kill(ctx); err != nil {
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
	if _, err := m.group.Kill(limited); err != nil {
		return false
	}
	m.log.Info("the processes that waited for the disk are gone")
	m.doomed.Store(false)
	m.workload.Buried()
	return true
}
