package ack

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Row is a row of a load's table.
type Row struct {
	Writer int
	Seq    int64
}

// Stale is a read that did not see a row which had been acknowledged before the read began.
type Stale struct {
	Row   Row
	Acked time.Time
	Began time.Time // the read
}

// Reader reads what a load writes, through the same endpoint. A row that was acknowledged before a
// read began must be in it. A row that was read once must stay, whether or not its writer had an
// answer.
type Reader struct {
	Load  *Load
	Pause time.Duration // between two reads

	mu    sync.Mutex
	seen  map[Row]bool // read, and not acknowledged when it was. Guarded by mu
	stale []Stale      // guarded by mu
	reads int          // guarded by mu
}

// tail is how many acknowledgements before its latest read a reader looks for again.
const tail = 50

// readTimeout ends a read that hangs. Such a read tells nothing about what it would have seen.
const readTimeout = 10 * time.Second

// Run reads until ctx ends.
func (r *Reader) Run(ctx context.Context) {
	var conn *pgx.Conn
	known := 0
	for ctx.Err() == nil {
		if conn == nil || conn.IsClosed() {
			var err error
			if conn, err = r.Load.connect(ctx); err != nil {
				pause(ctx, retryPause)
				continue
			}
		}
		acks := r.Load.AcksFrom(max(known-tail, 0))
		if err := r.read(ctx, conn, acks); err != nil {
			conn.Close(ctx)
		} else {
			known = max(known-tail, 0) + len(acks)
		}
		pause(ctx, r.Pause)
	}
	if conn != nil {
		end, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		conn.Close(end)
	}
}

// read reads once, and compares that with what was acknowledged before.
func (r *Reader) read(ctx context.Context, conn *pgx.Conn, acks []Ack) error {
	if len(acks) == 0 {
		return nil
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	// Rows that nobody was told about come after those that somebody was told about.
	low := map[int]int64{}
	for _, a := range acks {
		if n, ok := low[a.Writer]; !ok || a.Seq < n {
			low[a.Writer] = a.Seq
		}
	}
	there := map[Row]bool{}
	for writer, seq := range low {
		rows, err := conn.Query(ctx, "SELECT seq FROM "+r.Load.Table+" WHERE writer = $1 AND seq >= $2", writer, seq)
		if err != nil {
			return fmt.Errorf("read what writer %d wrote: %w", writer, err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return fmt.Errorf("read what writer %d wrote: %w", writer, err)
		}
		for _, n := range found {
			there[Row{writer, n}] = true
		}
	}
	r.note(began, acks, there)
	return nil
}

func (r *Reader) note(began time.Time, acks []Ack, there map[Row]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	for _, a := range acks {
		row := Row{a.Writer, a.Seq}
		if !there[row] {
			r.stale = append(r.stale, Stale{Row: row, Acked: a.At, Began: began})
		}
		// A row that was acknowledged need not be remembered twice.
		delete(there, row)
	}
	if r.seen == nil {
		r.seen = map[Row]bool{}
	}
	for row := range there {
		r.seen[row] = true
	}
}

// Found returns what a reader has found so far.
func (r *Reader) Found() (reads int, stale []Stale) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reads, append([]Stale(nil), r.stale...)
}

// Vanished returns the rows that were read once and are not there any more. They need not have been
// acknowledged: for whoever read such a row, it was there.
func (r *Reader) Vanished(ctx context.Context, config *pgx.ConnConfig) ([]Row, error) {
	r.mu.Lock()
	var acks []Ack
	for row := range r.seen {
		acks = append(acks, Ack{Writer: row.Writer, Seq: row.Seq})
	}
	r.mu.Unlock()
	missing, err := Missing(ctx, config, r.Load.Table, acks)
	var all []Row
	for _, a := range missing {
		all = append(all, Row{a.Writer, a.Seq})
	}
	return all, err
}
