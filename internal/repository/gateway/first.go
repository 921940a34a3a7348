package gateway

import (
	"errors"

	"howdah/internal/repository/store"
)

// maxAbsent is how many objects are remembered as absent for one access key. Programs that back
// databases up look for a few objects before they make them, and list the many.
const maxAbsent = 256

// saw remembers whether the holder was told that an object is not there.
func (c *call) saw(err error) {
	name := c.repository + "/" + c.key
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		delete(c.holder.absent, name)
	case errors.Is(err, store.ErrNotFound):
		if c.holder.absent == nil {
			c.holder.absent = map[string]bool{}
		}
		for other := range c.holder.absent {
			if len(c.holder.absent) < maxAbsent {
				break
			}
			delete(c.holder.absent, other)
		}
		c.holder.absent[name] = true
	}
}

// first refuses to replace an object which the holder believes is not there. A primary whose host was
// frozen while it prepared a repository goes on when it thaws. By then the new primary may have
// prepared the repository, and made backups: with other keys in those objects none could be read.
//
// It is checked before the object is written, not with it, and forgotten then: a holder that got no
// answer writes again.
func (c *call) first(s store.Store) error {
	name := c.repository + "/" + c.key
	c.mu.Lock()
	absent := c.holder.absent[name]
	c.mu.Unlock()
	if !absent {
		return nil
	}
	switch _, err := s.Head(c.r.Context(), c.key); {
	case err == nil:
		return errReplaced
	case !errors.Is(err, store.ErrNotFound):
		return c.done(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.holder.absent, name)
	return nil
}
