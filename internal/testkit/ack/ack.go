// Package ack writes rows and remembers every acknowledgement. Afterwards it proves that none was
// lost, and measures how long nobody could write. It works against any PostgreSQL.
package ack

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Ack is one row that the server acknowledged.
type Ack struct {
	Writer int       `json:"w"`
	Seq    int64     `json:"n"`
	At     time.Time `json:"t"`
	// Began is when its statement was sent. The answer may have lain unread for a while.
	Began time.Time `json:"b"`
}

// Load is a number of writers on one table. Each has a session of its own, and makes a new one
// whenever it is lost.
type Load struct {
	Config  *pgx.ConnConfig // where to write, until Turn
	Table   string          // made if it is not there
	Writers int
	Pause   time.Duration // between a writer's rows; 0: as fast as it goes

	// First is the number of the first writer. Loads on one table must not overlap.
	First int
	// OnAck, if set, is called for each acknowledgement from the writer's goroutine.
	OnAck func(Ack)

	mu     sync.Mutex
	acks   []Ack           // guarded by mu
	errors []string        // guarded by mu; distinct ones
	lost   int             // sessions lost, guarded by mu
	turned *pgx.ConnConfig // guarded by mu
}

// Timeouts of the writers. A writer does not give up a statement that waits for a standby, because
// the server may still acknowledge it.
const (
	connectTimeout = time.Second
	retryPause     = 5 * time.Millisecond
)

// Prepare makes the table.
func (l *Load) Prepare(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, l.Config.Copy())
	if err != nil {
		return fmt.Errorf("connect to prepare the load: %w", err)
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+l.Table+" (writer int, seq bigint, PRIMARY KEY (writer, seq))")
	if err != nil {
		return fmt.Errorf("make table %s: %w", l.Table, err)
	}
	return nil
}

// Run writes until ctx ends.
func (l *Load) Run(ctx context.Context) {
	var all sync.WaitGroup
	for i := range l.Writers {
		all.Go(func() { l.write(ctx, l.First+i) })
	}
	all.Wait()
}

func (l *Load) write(ctx context.Context, writer int) {
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			end, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			conn.Close(end)
		}
	}()
	for seq := int64(1); ctx.Err() == nil; seq++ {
		var err error
		if conn == nil || conn.IsClosed() {
			conn, err = l.connect(ctx)
		}
		began := time.Now()
		if err == nil {
			_, err = conn.Exec(ctx, "INSERT INTO "+l.Table+" VALUES ($1, $2)", writer, seq)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			l.acknowledged(Ack{Writer: writer, Seq: seq, Began: began})
			pause(ctx, l.Pause)
		default:
			// A row without an answer may be there or not, so its number is not used again.
			l.failed(err)
			if conn != nil {
				conn.Close(ctx)
				conn = nil
			}
			pause(ctx, retryPause)
		}
	}
}

func (l *Load) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return pgx.ConnectConfig(ctx, l.Target())
}

// Turn makes all later sessions go elsewhere, or with another password.
func (l *Load) Turn(config *pgx.ConnConfig) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turned = config.Copy()
}

// Target returns where sessions go that begin now.
func (l *Load) Target() *pgx.ConnConfig {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turned != nil {
		return l.turned.Copy()
	}
	return l.Config.Copy()
}

// acknowledged records an acknowledgement and its time while nobody else can. So acks are in the
// order of time.
func (l *Load) acknowledged(a Ack) {
	l.mu.Lock()
	a.At = time.Now()
	l.acks = append(l.acks, a)
	l.mu.Unlock()
	if l.OnAck != nil {
		l.OnAck(a)
	}
}

func (l *Load) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost++
	text := err.Error()
	if !slices.Contains(l.errors, text) && len(l.errors) < 20 {
		l.errors = append(l.errors, text)
	}
}

// Acks returns all acknowledgements so far, in the order of their times.
func (l *Load) Acks() []Ack {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.acks)
}

// AcksFrom returns the acknowledgements after the first n.
func (l *Load) AcksFrom(n int) []Ack {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.acks[min(n, len(l.acks)):])
}

// Errors returns the different errors that writers met.
func (l *Load) Errors() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.errors)
}

// Outage returns the longest time between two acknowledgements of one writer that ended after
// since. It takes the worst of all writers.
func Outage(acks []Ack, since time.Time) time.Duration {
	last := map[int]time.Time{}
	var worst time.Duration
	for _, a := range acks {
		before, ok := last[a.Writer]
		if ok && a.At.After(since) {
			worst = max(worst, a.At.Sub(before))
		}
		last[a.Writer] = a.At
	}
	return worst
}

// Missing returns the acknowledged rows that the table does not hold.
func Missing(ctx context.Context, config *pgx.ConnConfig, table string, acks []Ack) ([]Ack, error) {
	conn, err := pgx.ConnectConfig(ctx, config.Copy())
	if err != nil {
		return nil, fmt.Errorf("connect to check the rows: %w", err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, "SELECT writer, seq FROM "+table)
	if err != nil {
		return nil, fmt.Errorf("read the rows: %w", err)
	}
	defer rows.Close()
	type key struct {
		writer int
		seq    int64
	}
	there := map[key]bool{}
	for rows.Next() {
		var k key
		if err := rows.Scan(&k.writer, &k.seq); err != nil {
			return nil, fmt.Errorf("read the rows: %w", err)
		}
		there[k] = true
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the rows: %w", err)
	}
	var missing []Ack
	for _, a := range acks {
		if !there[key{a.Writer, a.Seq}] {
			missing = append(missing, a)
		}
	}
	return missing, nil
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
