package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Where PostgreSQL has not loaded the library of cluster cache management, the agent asks the two
// servers from outside: pg_buffercache says what they have cached, and pg_prewarm reads what a
// standby lacks.

// File is a fork of a relation as the members of a database know it alike.
type File struct {
	Database, Tablespace, Node uint32 // Database is 0 for what all databases share
	Fork                       int16
}

// Range has the blocks of a file from From to before To.
type Range struct{ From, To int64 }

// Blocks has ranges that do not touch each other, in order.
type Blocks []Range

// Count returns how many blocks there are.
func (b Blocks) Count() (n int64) {
	for _, r := range b {
		n += r.To - r.From
	}
	return n
}

// Without returns the blocks that are not in have.
func (b Blocks) Without(have Blocks) (missing Blocks) {
	for _, r := range b {
		for len(have) > 0 && have[0].To <= r.From {
			have = have[1:]
		}
		from := r.From
		for _, h := range have {
			if h.From >= r.To {
				break
			}
			if h.From > from {
				missing = append(missing, Range{from, h.From})
			}
			from = h.To
		}
		if from < r.To {
			missing = append(missing, Range{from, r.To})
		}
	}
	return missing
}

// Batches cuts them up, in order, with at most so many blocks in each.
func (b Blocks) Batches(most int64) (all []Blocks) {
	var batch Blocks
	room := most
	for _, r := range b {
		for r.From < r.To {
			to := min(r.To, r.From+room)
			batch, room = append(batch, Range{r.From, to}), room-(to-r.From)
			if r.From = to; room == 0 {
				all, batch, room = append(all, batch), nil, most
			}
		}
	}
	if len(batch) > 0 {
		all = append(all, batch)
	}
	return all
}

// cachedSQL returns what a server has cached. PostgreSQL joins the blocks to ranges, so that a table
// that is cached as a whole is one row with one range.
const cachedSQL = `SELECT reldatabase, reltablespace, relfilenode, relforknumber,
	pg_catalog.range_agg(pg_catalog.int8range(relblocknumber, relblocknumber + 1))
	FROM howdah_cache.pg_buffercache WHERE usagecount >= $1 AND relfilenode IS NOT NULL GROUP BY 1, 2, 3, 4`

// Cached returns which blocks a server has cached, of those that were used so often lately (0 to 5).
// conn must be rdsmon's or rdsadmin's, on the platform's database of a primary, or of a standby of
// one, that was set up (SetUpAsking).
func Cached(ctx context.Context, conn *pgx.Conn, used int) (map[File]Blocks, error) {
	rows, err := conn.Query(ctx, cachedSQL, used)
	if err != nil {
		return nil, fmt.Errorf("ask what is cached: %w", err)
	}
	all := map[File]Blocks{}
	var f File
	var ranges pgtype.Multirange[pgtype.Range[int64]]
	_, err = pgx.ForEachRow(rows, []any{&f.Database, &f.Tablespace, &f.Node, &f.Fork, &ranges}, func() error {
		blocks := make(Blocks, len(ranges))
		for i, r := range ranges {
			blocks[i] = Range{r.Lower, r.Upper}
		}
		all[f] = blocks
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask what is cached: %w", err)
	}
	return all, nil
}

// Room returns how many buffers a server has, and how many of them nobody would miss: they are free,
// or were not used for a while. conn is as for Cached.
func Room(ctx context.Context, conn *pgx.Conn) (all, cold int64, err error) {
	const sql = `SELECT pg_catalog.count(*), pg_catalog.count(*) FILTER (WHERE usagecount IS NULL OR usagecount <= 1) FROM howdah_cache.pg_buffercache`
	if err := conn.QueryRow(ctx, sql).Scan(&all, &cold); err != nil {
		return 0, 0, fmt.Errorf("count the buffers: %w", err)
	}
	return all, cold, nil
}

// forks has PostgreSQL's names of forks by their numbers (src/common/relpath.c).
var forks = []string{"main", "fsm", "vm", "init"}

// loadSQL reads blocks of a file into the cache. It leaves out those that the standby's file does not
// have yet, or any more, and all of them if nothing is known of the file in this database.
const loadSQL = `SELECT coalesce(pg_catalog.sum(pg_catalog.howdah_prewarm(f.rel, 'buffer', $3, p.a, p.b)), 0)::bigint
	FROM (SELECT pg_catalog.pg_filenode_relation($1, $2) AS rel) f,
	LATERAL (SELECT pg_catalog.pg_relation_size(f.rel, $3) / pg_catalog.current_setting('block_size')::bigint AS blocks) size,
	ROWS FROM (pg_catalog.unnest($4::bigint[]), pg_catalog.unnest($5::bigint[])) AS p(a, b)
	WHERE p.b < size.blocks`

// Load reads blocks of a file into a server's cache, and returns how many. It takes the lock of the
// relation for that long. conn must be rdsadmin's, on the database of the file, or on any database
// for what all share.
func Load(ctx context.Context, conn *pgx.Conn, f File, blocks Blocks) (n int64, err error) {
	if f.Fork < 0 || int(f.Fork) >= len(forks) {
		return 0, nil
	}
	var from, to []int64
	for _, r := range blocks {
		from, to = append(from, r.From), append(to, r.To-1)
	}
	if err := conn.QueryRow(ctx, loadSQL, f.Tablespace, f.Node, forks[f.Fork], from, to).Scan(&n); err != nil {
		return 0, fmt.Errorf("read blocks of file %d: %w", f.Node, err)
	}
	return n, nil
}

// SetUpAsking has a database's members answer Cached and Room, and makes what Remember calls. conn is
// as for SetUpCache, but the library need not be loaded. It is idempotent.
func SetUpAsking(ctx context.Context, conn *pgx.Conn) error {
	return execAll(ctx, conn, "CREATE SCHEMA IF NOT EXISTS howdah_cache", "GRANT USAGE ON SCHEMA howdah_cache TO rdsmon",
		"CREATE EXTENSION IF NOT EXISTS pg_buffercache SCHEMA howdah_cache", rememberSQL,
		"REVOKE ALL ON FUNCTION pg_catalog.howdah_remember FROM PUBLIC")
}

// Database is one that lets somebody in.
type Database struct {
	OID  uint32
	Name string
}

// Databases returns those that let somebody in, templates too. Any login may ask.
func Databases(ctx context.Context, conn *pgx.Conn) ([]Database, error) {
	rows, err := conn.Query(ctx, "SELECT oid, datname::text FROM pg_catalog.pg_database WHERE datallowconn AND datconnlimit <> -2 ORDER BY oid")
	if err != nil {
		return nil, fmt.Errorf("list the databases: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Database])
	if err != nil {
		return nil, fmt.Errorf("list the databases: %w", err)
	}
	return all, nil
}

// loaderSQL makes what Load calls. It is in pg_catalog, where nobody else makes functions.
const loaderSQL = `CREATE OR REPLACE FUNCTION pg_catalog.howdah_prewarm(regclass, text, text, int8, int8) RETURNS int8
	LANGUAGE C PARALLEL SAFE AS '$libdir/pg_prewarm', 'pg_prewarm'`

// loaderRights lets nobody else call it. Of pg_catalog, dumps have the rights that are not as pg_init_privs
// says they were at the beginning. Whoever restores a dump may not change those of this function.
var loaderRights = []string{
	"REVOKE ALL ON FUNCTION pg_catalog.howdah_prewarm FROM PUBLIC",
	`INSERT INTO pg_catalog.pg_init_privs (objoid, classoid, objsubid, privtype, initprivs)
	SELECT p.oid, 'pg_catalog.pg_proc'::pg_catalog.regclass, 0, 'i', p.proacl FROM pg_catalog.pg_proc AS p
	WHERE p.oid = 'pg_catalog.howdah_prewarm'::pg_catalog.regproc AND NOT EXISTS (SELECT FROM pg_catalog.pg_init_privs
		WHERE objoid = p.oid AND classoid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND objsubid = 0)`,
}

// SetUpDatabase makes in one database, of users or of the platform, what Load calls; and
// aurora_ccm_status, if the server finds the library. conn must be rdsadmin's, on that database of a
// primary. It is idempotent.
func SetUpDatabase(ctx context.Context, conn *pgx.Conn, library bool) error {
	sql := append([]string{loaderSQL}, loaderRights...)
	if library {
		sql = append(sql, auroraSQL())
	}
	return execAll(ctx, conn, sql...)
}

func execAll(ctx context.Context, conn *pgx.Conn, all ...string) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, sql := range all {
			if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("set cluster cache management up: %w", err)
	}
	return nil
}

// FilesOf returns the files of a database in order.
func FilesOf(all map[File]Blocks, database uint32) (files []File) {
	for f := range all {
		if f.Database == database {
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b File) int {
		if a.Node != b.Node {
			return int(int64(a.Node) - int64(b.Node))
		}
		return int(a.Fork) - int(b.Fork)
	})
	return files
}
