package state

import (
	"context"
	"errors"
)

// Client reads and writes the state for parts that answer callers. What is read after Fresh is as
// new as any write before it, by anyone. What Commit has written is seen by all readers of the same
// mirror.
type Client struct {
	Store *Store
	Cache *Cache
	// Newest returns the revision of the newest write by anyone, as etcd.Member.Newest does.
	Newest func(ctx context.Context) (int64, error)
	// Settle may hold reads back for longer, while what the state says cannot be relied on yet. It
	// may be nil.
	Settle func(ctx context.Context) error
}

// Fresh makes reads of the mirror see all that anyone wrote before the call.
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

// Commit writes in one transaction, and makes later reads of the mirror see it. It returns
// ErrConflict if a condition of an operation does not hold.
func (c *Client) Commit(ctx context.Context, ops ...Op) error {
	revision, err := c.Store.Commit(ctx, ops...)
	if err != nil {
		return err
	}
	return c.Cache.WaitRevision(ctx, revision)
}

// Retry runs a read-modify-write until nobody was quicker: after each ErrConflict it calls Fresh
// and runs attempt again. attempt may run any number of times. It must change nothing except by its
// last act, a Commit.
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
