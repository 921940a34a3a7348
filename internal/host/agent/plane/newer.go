package plane

import (
	"context"

	"howdah/internal/state"
	"howdah/internal/state/format"
)

// The records of a home that a newer release wrote may say more of a member than this agent
// knows. What runs goes on, fences are made and primaries replaced; nothing that the home wants
// otherwise since is done, as it would be done by half. docs/design/formats.md

// setFormat notes the format of the home's records, as control planes have told it.
func (c *Planes) setFormat(cache *state.Cache) {
	newest := format.Heard(cache)
	c.mu.Lock()
	defer c.mu.Unlock()
	if newest.Format > c.format.Format {
		c.format = newest
	}
}

// Newer says that the home's records are of a newer release than this agent; nil: they are not.
func (c *Planes) Newer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.format.Check(c.cfg.Version)
}

// Settled waits until it is known what control planes say; false: ctx ended.
func (c *Planes) Settled(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-c.heard:
		return true
	}
}
