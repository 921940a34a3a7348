package whole

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// crew looks at the parts of all databases, with several sessions.
type crew struct {
	Options
	config *pgx.ConnConfig
	parts  []part

	mu     sync.Mutex // guards what follows
	next   int
	seen   Seen
	report Report
}

// connect logs in to a database.
func (c *crew) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	own := c.config.Copy()
	own.Database = database
	return pgx.ConnectConfig(ctx, own)
}

// survey prepares a database, and returns what is to be looked at in it.
func (c *crew) survey(ctx context.Context, database string) ([]part, error) {
	conn, err := c.connect(ctx, database)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := prepare(ctx, conn); err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, relationsSQL)
	if err != nil {
		return nil, fmt.Errorf("list relations: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[relation])
	if err != nil {
		return nil, fmt.Errorf("list relations: %w", err)
	}
	var parts []part
	for _, r := range all {
		parts = append(parts, r.split(database)...)
		c.seen.OfBytes += r.Bytes
		c.seen.Of++
	}
	return parts, nil
}

// work looks at all parts.
func (c *crew) work(ctx context.Context) (Report, error) {
	group, ctx := errgroup.WithContext(ctx)
	for range max(c.Sessions, 1) {
		group.Go(func() error { return c.session(ctx) })
	}
	err := group.Wait()
	return c.report, err
}

// session takes parts until there are none.
func (c *crew) session(ctx context.Context) error {
	var conn *pgx.Conn
	end := func() {
		if conn != nil {
			conn.Close(context.WithoutCancel(ctx))
		}
	}
	defer func() { end() }()
	for in := ""; ; {
		p, ok := c.take()
		if !ok {
			return nil
		}
		if conn == nil || in != p.database {
			end()
			var err error
			if conn, err = c.connect(ctx, p.database); err != nil {
				return fmt.Errorf("check database %s: %w", p.database, err)
			}
			in = p.database
		}
		says, err := c.look(ctx, conn, p)
		if err != nil {
			return fmt.Errorf("check database %s: check %s: %w", p.database, p.Name, err)
		}
		c.note(p, says)
	}
}

func (c *crew) take() (part, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == len(c.parts) {
		return part{}, false
	}
	c.next++
	return c.parts[c.next-1], true
}

// look looks at a part for as long as that may take.
func (c *crew) look(ctx context.Context, conn *pgx.Conn, p part) ([]string, error) {
	if c.Patience == nil {
		return p.look(ctx, conn)
	}
	within := c.Patience(p.bytes + p.Of)
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	says, err := p.look(bounded, conn)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return says, fmt.Errorf("%d MiB were not looked at within %s: %w", (p.bytes+p.Of)>>20, within.Round(time.Second), ErrStill)
	}
	return says, err
}

// note counts a part, and what is wrong with it.
func (c *crew) note(p part, says []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.report
	switch {
	case !p.last:
	case p.Kind == table:
		r.Tables++
	default:
		r.Indexes++
	}
	if p.last {
		c.seen.Relations++
	}
	r.Bytes += p.bytes
	r.Faults += len(says)
	for _, s := range says {
		if len(r.Described) < Most {
			r.Described = append(r.Described, Fault{Database: p.database, Relation: p.Name, Says: s})
		}
	}
	c.seen.Bytes += p.bytes
	if c.Progress != nil {
		c.Progress(c.seen)
	}
}
