package state

import (
	"context"
	"errors"
)

// Client is how those read and write the state who answer callers: what is read after Fresh
// is as new as any write before it, by anyone, and what Commit has written is read by all who
// read from the same mirror.
type Client struct {
	Store *Store
	Cache *Cache
	// Newest is the revision of the newest write by anyone: etcd.Member.Newest.
	Newest func(ctx context.Context) (int64, error)
	// Settle may hold reads back for longer, while what the state says cannot be relied on
	// yet; nil: nothing does.
	Settle func(ctx context.Context) error
}

// Fresh makes reads of the mirror see all that was written before the call, by anyone.
func (c *Client) Fresh(ctx context.Context) error {
	revision, err := c.Newest(ctx)
	if err != nil {
		return err
	}
	if err := c.Cache.WaitRevision(ctx, revision); err != nil {
		return err
	}
	if c.Settle == nil {
		return nil
	}
	return c.Settle(ctx)
}

// Commit writes in one transaction, and makes later reads of the mirror see it. It answers
// ErrConflict where a condition of an operation does not hold.
func (c *Client) Commit(ctx context.Context, ops ...Op) error {
	revision, err := c.Store.Commit(ctx, ops...)
	if err != nil {
		return err
	}
	return c.Cache.WaitRevision(ctx, revision)
}

// Retry runs a read-modify-write until nobody was quicker: again, after Fresh, whenever it
// answers ErrConflict. An attempt may run any number of times, and must change nothing but by
// its last act, a Commit.
func (c *Client) Retry(ctx context.Context, attempt func() error) error {
	for {
		if err := c.Fresh(ctx); err != nil {
			return err
		}
		err := attempt()
		if !errors.Is(err, ErrConflict) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
