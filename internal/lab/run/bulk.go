package run

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"howdah/internal/host/pace"
	"howdah/internal/lab/address"
	"howdah/internal/lab/experiment"
	"howdah/internal/lab/target"
)

// bulkLoad copies rows into a table that is made anew. A row has the form of pgbench_accounts.
func (d *doing) bulkLoad(ctx context.Context, a experiment.BulkLoad) error {
	conn, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	table := pgx.Identifier{a.Table}
	for _, sql := range []string{"DROP TABLE IF EXISTS " + table.Sanitize(), "CREATE TABLE " + table.Sanitize() + " (id bigint, branch int, balance int, filler char(84))"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return d.timed(a.Figure, func() error {
		_, err := conn.CopyFrom(ctx, table, []string{"id", "branch", "balance", "filler"}, &rows{left: a.Rows})
		return err
	})
}

// rows are the rows of a bulk load.
type rows struct{ left, done int }

func (r *rows) Next() bool {
	if r.left == 0 {
		return false
	}
	r.left, r.done = r.left-1, r.done+1
	return true
}

func (r *rows) Values() ([]any, error) { return []any{int64(r.done), r.done % 1000, 0, ""}, nil }

func (r *rows) Err() error { return nil }

// cpuForm is how VACUUM VERBOSE says what it took of the processors (src/backend/utils/misc/pg_rusage.c).
var cpuForm = regexp.MustCompile(`CPU: user: ([0-9.]+) s, system: ([0-9.]+) s, elapsed: ([0-9.]+) s`)

// vacuum vacuums a table.
func (d *doing) vacuum(ctx context.Context, a experiment.Vacuum) error {
	config := d.server().Config()
	cpu := 0.0
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { cpu += cpuOf(n.Message) }
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connect to the target: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = d.timed(a.Figure, func() error {
		_, err := conn.Exec(ctx, "VACUUM (VERBOSE) "+pgx.Identifier{a.Table}.Sanitize())
		return err
	})
	d.figure(a.Figure+"_cpu", cpu)
	return err
}

// cpuOf is how many seconds of the processors a message speaks of.
func cpuOf(message string) (seconds float64) {
	for _, found := range cpuForm.FindAllStringSubmatch(message, -1) {
		for _, text := range found[1:3] {
			n, err := strconv.ParseFloat(text, 64)
			if err == nil {
				seconds += n
			}
		}
	}
	return seconds
}

const buffersPause = 500 * time.Millisecond

// buffers finds out how much of a table is cached by the primary, and by its standbys.
func (d *doing) buffers(ctx context.Context, a experiment.Buffers) error {
	if err := d.makeBuffercache(ctx); err != nil {
		return err
	}
	until := time.Now().Add(time.Duration(a.Within) * time.Second)
	for {
		primary, err := cached(ctx, d.server(), a.Table)
		if err != nil {
			return err
		}
		standby, known, err := d.cachedByStandbys(ctx, a.Table)
		if err != nil {
			return err
		}
		if time.Now().After(until) || known && standby >= primary/2 {
			d.figure("cached_primary", primary)
			if known {
				d.figure("cached_standby", standby)
			}
			return nil
		}
		if !pace.Sleep(ctx, buffersPause) {
			return ctx.Err()
		}
	}
}

func (d *doing) makeBuffercache(ctx context.Context) error {
	conn, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_buffercache SCHEMA "+target.Schema)
	return err
}

// cachedByStandbys is what the best of the standbys that serve reads has. known says that there is one.
func (d *doing) cachedByStandbys(ctx context.Context, table string) (best float64, known bool, err error) {
	m, err := d.manager()
	if err != nil {
		return 0, false, nil //nolint:nilerr // of other targets only the primary is known
	}
	nodes, err := m.Nodes(ctx)
	if err != nil {
		return 0, false, err
	}
	for _, n := range nodes {
		percent, err := cached(ctx, n.Server.In(target.Schema), table)
		if err != nil && strings.Contains(err.Error(), "does not exist") {
			continue // what was just made has not come there yet
		}
		if err != nil {
			return 0, false, fmt.Errorf("ask %s: %w", n.Name, err)
		}
		best, known = max(best, percent), true
	}
	return best, known, nil
}

// cached is the share of a table's pages that a server has in shared_buffers, in percent.
func cached(ctx context.Context, server address.Server, table string) (percent float64, err error) {
	conn, err := pgx.ConnectConfig(ctx, server.Config())
	if err != nil {
		return 0, fmt.Errorf("connect to ask what is cached: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	const sql = `SELECT 100.0::float8 * count(b.bufferid) / greatest(1, pg_catalog.pg_relation_size($1::regclass) / pg_catalog.current_setting('block_size')::bigint)
		FROM ` + target.Schema + `.pg_buffercache b WHERE b.relfilenode = pg_catalog.pg_relation_filenode($1::regclass)
			AND b.reldatabase = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()) AND b.relforknumber = 0`
	err = conn.QueryRow(ctx, sql, table).Scan(&percent)
	return percent, err
}
