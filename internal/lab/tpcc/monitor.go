package tpcc

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/lab/tpcc/routine"
)

// monitor reads the server's counters beside the users.
type monitor struct {
	config *pgx.ConnConfig // as wire.Prepared returns it
	schema string
	conn   *pgx.Conn // nil after it was lost
}

// reading are counters at one moment.
type reading struct {
	at           time.Time
	orders       int64 // that all districts have, with an offset
	transactions int64 // of all databases
	commits      int64 // of the own database
	rollbacks    int64
	server       string // whose counters these are, and since when
}

// readingSQL reads the counters. Backends report theirs once a second, so a reading is up to a second
// old, at the begin as at the end.
const readingSQL = `
SELECT (SELECT sum(d_next_o_id) FROM lab.district),
	(SELECT sum(xact_commit + xact_rollback)::bigint FROM pg_stat_database),
	own.xact_commit, own.xact_rollback,
	concat_ws(' ', pg_postmaster_start_time(), own.stats_reset, (SELECT stats_reset FROM pg_stat_bgwriter))
FROM pg_stat_database AS own WHERE own.datname = current_database()`

// Of a reading: how long a server may take to answer, how long one that is away is waited for, and how
// often it is asked meanwhile.
const (
	readTime  = 20 * time.Second
	awayTime  = time.Minute
	awayPause = 200 * time.Millisecond
)

// read waits for a server that is away for a while, since what it says at the end of a measured time is
// the result of it.
func (m *monitor) read(ctx context.Context) (reading, error) {
	away := time.Now().Add(awayTime)
	for {
		r, err := m.try(ctx)
		if err == nil {
			return r, nil
		}
		if ctx.Err() != nil || time.Now().After(away) {
			return reading{}, fmt.Errorf("read the server's counters: %w", err)
		}
		if err := wait(ctx, awayPause); err != nil {
			return reading{}, err
		}
	}
}

func (m *monitor) try(ctx context.Context) (reading, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	if m.conn == nil || m.conn.IsClosed() {
		conn, err := pgx.ConnectConfig(ctx, m.config)
		if err != nil {
			return reading{}, err
		}
		m.conn = conn
	}
	r := reading{at: time.Now()}
	err := m.conn.QueryRow(ctx, routine.In(quoted(m.schema), readingSQL)).
		Scan(&r.orders, &r.transactions, &r.commits, &r.rollbacks, &r.server)
	return r, err
}

func (m *monitor) close() {
	if m.conn != nil {
		closeConn(m.conn)
	}
}

// wait returns the context's error if it ends before.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
