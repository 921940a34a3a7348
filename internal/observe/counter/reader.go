package counter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"howdah/internal/observe/series"
	"howdah/internal/observe/wait"
)

// Who is the server at the other end of a connection, and what the login may see there.
type Who struct {
	Major      int
	InRecovery bool
	BackendPID int       // of the connection's own backend, as the server sees it
	Backend    time.Time // when that began
	Started    time.Time // when the server was started
	Sees       bool      // whether the login sees what all sessions do
}

const whoSQL = `SELECT current_setting('server_version_num')::int / 10000, pg_is_in_recovery(), pg_backend_pid(),
 (SELECT backend_start FROM pg_stat_get_activity(pg_backend_pid())), pg_postmaster_start_time(), pg_has_role('pg_read_all_stats', 'USAGE')`

// Ask asks who the server is.
func Ask(ctx context.Context, conn *pgx.Conn) (Who, error) {
	var w Who
	err := conn.QueryRow(ctx, whoSQL).Scan(&w.Major, &w.InRecovery, &w.BackendPID, &w.Backend, &w.Started, &w.Sees)
	if err != nil {
		return Who{}, fmt.Errorf("ask the server who it is: %w", err)
	}
	return w, nil
}

// Reader reads one server by one connection. It is not for several goroutines.
type Reader struct {
	Who Who
	// Load is the application_name of the sessions that make the load, in the connection's database. Others
	// are counted apart. If it is empty, all sessions are the load's.
	Load    string
	conn    *pgx.Conn
	queries []Query
	missing map[string]string // why, by the name of the query
}

// NewReader finds out what the login may read. It does not close the connection, ever.
func NewReader(ctx context.Context, conn *pgx.Conn) (*Reader, error) {
	who, err := Ask(ctx, conn)
	if err != nil {
		return nil, err
	}
	queries, err := Queries(who.Major)
	if err != nil {
		return nil, err
	}
	r := &Reader{Who: who, conn: conn, missing: map[string]string{}}
	if !who.Sees {
		r.missing["sessions"] = "the login is no member of pg_read_all_stats: GRANT pg_monitor to it"
	}
	for _, q := range queries {
		rows, err := conn.Query(ctx, q.SQL)
		if err == nil {
			rows.Close()
			err = rows.Err()
		}
		switch {
		case err == nil:
			r.queries = append(r.queries, q)
		case refused(err):
			r.missing[q.Name] = err.Error()
		case isServers(err): // it may work the next time
			r.queries = append(r.queries, q)
		default:
			return nil, fmt.Errorf("try what statistics there are: %w", err)
		}
	}
	return r, nil
}

// Missing says in words what this server or login does not tell.
func (r *Reader) Missing() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(r.missing)) {
		all = append(all, name+": "+r.missing[name])
	}
	return all
}

// refused reports whether an error will be the same the next time: a missing right, function or
// view (class 42), or what the server does not support.
func refused(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "42") || pg.Code == "0A000")
}

// isServers reports whether the server answered with an error, so the connection goes on.
func isServers(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Severity != "FATAL" && pg.Severity != "PANIC"
}

// Sessions adds to load what all sessions do now, and for which relations' locks they wait. It adds
// nothing if the login does not see other sessions. After an error the relations may be missing.
func (r *Reader) Sessions(ctx context.Context, load *Load) error {
	if !r.Who.Sees {
		return nil
	}
	sample, err := r.sample(ctx)
	if err != nil {
		return fmt.Errorf("sample sessions: %w", err)
	}
	load.Add(sample)
	if !locksWaited(sample) {
		return nil
	}
	rows, err := r.conn.Query(ctx, Locks)
	if err != nil {
		return fmt.Errorf("sample locks: %w", err)
	}
	defer rows.Close()
	var relation *string // of those who wait for no table that is known
	var count float64
	var a answer
	_, err = pgx.ForEachRow(rows, []any{&relation, &count}, func() error {
		if err := a.next(); err != nil {
			return err
		}
		if relation != nil {
			load.sums[series.LockOnPrefix+*relation] += count
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("sample locks: %w", err)
	}
	return nil
}

func (r *Reader) sample(ctx context.Context) ([]Session, error) {
	rows, err := r.conn.Query(ctx, Activity, r.Load)
	if err != nil {
		return nil, err
	}
	var a answer
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Session, error) {
		var s Session
		if err := a.next(); err != nil {
			return s, err
		}
		var event wait.Event
		err := row.Scan(&s.Backend, &s.State, &event.Type, &event.Name, &s.Foreign, &s.Count)
		s.Event = event
		return s, err
	})
}

// Read reads all counters and gauges, in one round trip if all goes well. Those of a query that
// fails are absent. The error is that of the connection, after which the reader is of no use.
func (r *Reader) Read(ctx context.Context) (series.Reading, error) {
	reading := series.NewReading()
	batch := &pgx.Batch{}
	for _, q := range r.queries {
		batch.Queue(q.SQL)
	}
	results := r.conn.SendBatch(ctx, batch)
	done := 0
	var err error
	for _, q := range r.queries {
		var rows pgx.Rows
		if rows, err = results.Query(); err == nil {
			err = q.collect(rows, time.Now(), reading)
		}
		if err != nil {
			break
		}
		done++
	}
	err = errors.Join(err, results.Close())
	if err == nil {
		return reading, nil
	}
	if !isServers(err) {
		return reading, fmt.Errorf("read statistics: %w", err)
	}
	return reading, r.readAlone(ctx, r.queries[done:], reading)
}

// readAlone reads the rest of a batch that an error ended.
func (r *Reader) readAlone(ctx context.Context, queries []Query, reading series.Reading) error {
	for _, q := range slices.Clone(queries) {
		rows, err := r.conn.Query(ctx, q.SQL)
		if err == nil {
			err = q.collect(rows, time.Now(), reading)
		}
		switch {
		case err == nil:
		case refused(err):
			r.missing[q.Name] = err.Error()
			r.queries = slices.DeleteFunc(r.queries, func(other Query) bool { return other.Name == q.Name })
		case !isServers(err):
			return fmt.Errorf("read statistics: %w", err)
		}
	}
	return nil
}

// mostRows is how many rows an answer has at most, as far as is believed. Each makes columns.
const mostRows = 1000

var errRows = errors.New("it has more rows than a server has of that")

// answer counts the rows of an answer.
type answer int

func (a *answer) next() error {
	if *a++; *a > mostRows {
		return errRows
	}
	return nil
}

// collect adds the rows of an answer to a reading.
func (q Query) collect(rows pgx.Rows, at time.Time, reading series.Reading) error {
	defer rows.Close()
	seen := map[string]int{}
	var a answer
	for rows.Next() {
		if err := a.next(); err != nil {
			return fmt.Errorf("%s: %w", q.Name, err)
		}
		values, err := rows.Values()
		if err != nil {
			return err
		}
		row := map[string]any{}
		for i, field := range rows.FieldDescriptions() {
			row[field.Name] = values[i]
		}
		q.add(row, at, seen, reading)
	}
	return rows.Err()
}

// add: two standbys may have one name. The second one is called name#2.
func (q Query) add(row map[string]any, at time.Time, seen map[string]int, reading series.Reading) {
	key, _ := row["key"].(string)
	seen[key]++
	if seen[key] > 1 {
		key = fmt.Sprintf("%s#%d", key, seen[key])
	}
	values := map[string]float64{}
	for name, value := range row {
		number, known := value.(float64)
		if !known {
			continue
		}
		if strings.HasSuffix(name, "_lag_bytes") {
			number = max(0, number) // the two positions are not read at once
		}
		values[q.Column(key, name)] = number
	}
	if q.Gauges {
		maps.Copy(reading.Gauges, values)
		return
	}
	epoch, _ := row["epoch"].(string)
	reading.Add(strings.TrimSuffix(q.Name+"/"+key, "/"), epoch, at, values)
}
