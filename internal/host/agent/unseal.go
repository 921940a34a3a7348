package agent

import (
	"context"
	"errors"
	"time"

	"howdah/internal/model/regain"
	"howdah/internal/system/fscrypt"
)

// A restored home asks which data are here, also those of members that do not run: their
// directories are locked. The agent gets the key for the look, and locks again after it. A
// control plane gives it while the database is held, to a host that has told of the copy.

const (
	// unsealEvery spaces the attempts to look into a directory that is locked.
	unsealEvery = 10 * time.Second
	whyLocked   = "its directory is encrypted, and its key is not here"
)

// sealed is what is known of a copy whose directory is locked.
type sealed struct {
	tried  time.Time
	why    string // it could not be looked into
	opened int    // how often its member had opened it before the look
	seen   bool
	copy   regain.Copy // what was seen
	data   bool        // there were data
}

// unsealed is what is here of a member whose directory is locked with a key. As long as
// nobody looked, its data are there and nobody can say more.
func (h *holdings) unsealed(ctx context.Context, c regain.Copy, key fscrypt.ID) (_ regain.Copy, ok bool) {
	id, opened := c.Assignment.ID, h.agent.timesOpened(c.Assignment.ID)
	s := h.sealed[id]
	if s.seen && s.opened == opened {
		return s.copy, s.data
	}
	if last, err := h.agent.Remembered(id); err == nil {
		c.Assignment, c.Told = last.Assignment, last.Told()
	}
	// The home gives no key before it was told that the copy is here.
	if _, told := h.copies[id]; told && time.Since(s.tried) >= unsealEvery {
		s = h.unseal(ctx, c, key)
		s.opened = opened
		h.sealed[id] = s
		if s.seen {
			return s.copy, s.data
		}
	}
	c.Locked, c.Unsettled = true, whyLocked
	if s.why != "" {
		c.Unsettled += ": " + s.why
	}
	return c, true
}

// unseal opens a directory, looks at what is there, and has it locked again.
func (h *holdings) unseal(ctx context.Context, c regain.Copy, key fscrypt.ID) (s sealed) {
	a, id := h.agent, c.Assignment.ID
	s.tried = time.Now()
	if err := a.giveKey(ctx, id, wants(a.MemberDir(id), key)); err != nil {
		s.why = err.Error()
		return s
	}
	s.copy, s.data = h.inspector.Inspect(ctx, c)
	s.seen = s.copy.Unsettled == ""
	s.why = s.copy.Unsettled
	if err := a.sealAgain(id); err != nil {
		a.Log.Warn("lock a directory that was looked into", "member", id, "error", err)
	}
	return s
}

// sealAgain takes a key from the kernel that was there for a look. One that runs
// keeps it, and that of one that is stopped removes it as soon as nobody looks.
func (a *Agent) sealAgain(id string) error {
	if m := a.Find(id); m != nil {
		m.Do(func(context.Context) { m.secrecy.done, m.secrecy.locked = false, time.Time{} })
		return nil
	}
	busy, err := lockDir(a.MemberDir(id), a.Kind.Release)
	if err == nil && busy {
		err = errors.New("a file is open there")
	}
	return err
}

// noteOpened: a member opens its directory, and may have it change.
func (a *Agent) noteOpened(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opened[id]++
}

func (a *Agent) timesOpened(id string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.opened[id]
}
