// Package counter reads the statistics of a PostgreSQL server, of versions 15 to 18, by one
// connection.
//
// Invariants:
//   - One set of queries a major version. A set asks only for what that version has.
//   - The same column means the same in all versions.
//   - A query that the login may not run is left out and named. Its columns are absent.
//   - No query writes, waits for a lock, or holds a snapshot after it.
package counter

import (
	"cmp"
	"fmt"
	"strings"
)

// The versions whose statistics are known. Newer ones are read as the newest.
const (
	Oldest = 15
	Newest = 18
)

// ErrOld says that a server is older than all that are known.
var ErrOld = fmt.Errorf("its PostgreSQL is older than %d", Oldest)

// Query is one statement. Its columns are called as the columns of a row, without the prefix and a
// dot. All but "key" and "epoch" are float8. NULL is absent.
type Query struct {
	Name   string // of its own among the queries
	Prefix string // what the names of its columns begin with; "" for the name
	// Gauges: its numbers are what is now. Otherwise they only grow until its "epoch" changes.
	Gauges bool
	// Keyed: there is a row for each "key", which is a part of the column's name. Otherwise there
	// is one row at most.
	Keyed bool
	SQL   string
}

// Column returns the name of a column in a row of an observation. The key is "" unless the query is
// keyed.
func (q Query) Column(key, name string) string {
	parts := []string{cmp.Or(q.Prefix, q.Name)}
	if q.Keyed {
		parts = append(parts, key)
	}
	return strings.Join(append(parts, name), ".")
}

// Queries returns the statements for a major version.
func Queries(major int) ([]Query, error) {
	if major < Oldest {
		return nil, ErrOld
	}
	major = min(major, Newest)
	queries := []Query{database, wal(major), position, recovery, standbys, slots}
	queries = append(queries, checkpoints(major)...)
	if major >= 16 {
		queries = append(queries, io(major))
	}
	if major >= 18 {
		queries = append(queries, walIO)
	}
	return queries, nil
}

// floats makes a list of columns, as in "xact_commit AS commits".
func floats(columns ...string) string {
	parts := make([]string, len(columns))
	for i, column := range columns {
		expression, name, renamed := strings.Cut(column, " AS ")
		if !renamed {
			name = expression
		}
		parts[i] = fmt.Sprintf("(%s)::float8 AS %s", expression, name)
	}
	return strings.Join(parts, ", ")
}

// epochOf makes the epoch of a view that is reset by itself. A server that was started again may
// have lost what it counted, without a reset.
func epochOf(reset string) string {
	return fmt.Sprintf("concat(%s, '/', pg_postmaster_start_time()) AS epoch", reset)
}

// timed is NULL where the server does not measure times: a 0 would say that they are short.
func timed(column string) string { return onlyIf("track_io_timing", column) }

func timedWAL(column string) string { return onlyIf("track_wal_io_timing", column) }

func onlyIf(setting, column string) string {
	expression, name, _ := strings.Cut(column, " AS ")
	return fmt.Sprintf("CASE WHEN current_setting('%s')::bool THEN %s END AS %s", setting, expression, name)
}

var database = Query{Name: "db", SQL: "SELECT " + epochOf("datid, '/', stats_reset") + ", " + floats(
	"xact_commit AS commits", "xact_rollback AS rollbacks", "blks_read AS blocks_read", "blks_hit AS blocks_hit",
	"tup_returned AS rows_returned", "tup_fetched AS rows_fetched", "tup_inserted AS rows_inserted",
	"tup_updated AS rows_updated", "tup_deleted AS rows_deleted", "conflicts", "temp_files", "temp_bytes", "deadlocks",
	"checksum_failures", timed("blk_read_time AS read_ms"), timed("blk_write_time AS write_ms"), "active_time AS active_ms",
	"idle_in_transaction_time AS idle_in_transaction_ms", "sessions",
) + " FROM pg_stat_database WHERE datname = current_database()"}

// wal leaves the writes and flushes to pg_stat_io from version 18 on.
func wal(major int) Query {
	columns := []string{"wal_bytes AS bytes", "wal_records AS records", "wal_fpi AS images", "wal_buffers_full AS buffers_full"}
	if major < 18 {
		columns = append(columns, "wal_write AS writes", "wal_sync AS syncs", timedWAL("wal_write_time AS write_ms"), timedWAL("wal_sync_time AS sync_ms"))
	}
	return Query{Name: "wal", SQL: "SELECT " + epochOf("stats_reset") + ", " + floats(columns...) + " FROM pg_stat_wal"}
}

// walIO has what version 17 has in pg_stat_wal.
var walIO = Query{Name: "wal_io", Prefix: "wal", SQL: "SELECT " + epochOf("max(stats_reset)") + ", " + floats(
	"sum(writes) AS writes", "sum(fsyncs) AS syncs", timedWAL("sum(write_time) AS write_ms"), timedWAL("sum(fsync_time) AS sync_ms"),
) + " FROM pg_stat_io WHERE object = 'wal' AND context = 'normal'"}

// position is exact at any moment, while backends report their counters once a second. A promotion
// begins an epoch.
var position = Query{Name: "lsn", SQL: "SELECT " + epochOf("pg_is_in_recovery()") + `,
 pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END, '0/0')::float8 AS bytes`}

// recovery has no lag where all that was received is replayed: an idle primary sends nothing that
// could be replayed.
var recovery = Query{Name: "recovery", Gauges: true, SQL: `SELECT pg_wal_lsn_diff(received, '0/0')::float8 AS received_lsn,
 pg_wal_lsn_diff(replayed, '0/0')::float8 AS replayed_lsn, pg_wal_lsn_diff(received, replayed)::float8 AS replay_lag_bytes,
 CASE WHEN received = replayed THEN 0 ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) END::float8 AS replay_lag_seconds
 FROM (SELECT pg_last_wal_receive_lsn() AS received, pg_last_wal_replay_lsn() AS replayed) p WHERE pg_is_in_recovery()`}

// here is how far the WAL of the server that is asked has come.
const here = "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END"

var standbys = Query{Name: "standby", Gauges: true, Keyed: true, SQL: `SELECT application_name AS key,
 pg_wal_lsn_diff(sent_lsn, '0/0')::float8 AS sent_lsn, pg_wal_lsn_diff(write_lsn, '0/0')::float8 AS write_lsn,
 pg_wal_lsn_diff(flush_lsn, '0/0')::float8 AS flush_lsn, pg_wal_lsn_diff(replay_lsn, '0/0')::float8 AS replay_lsn,
 pg_wal_lsn_diff(here, sent_lsn)::float8 AS sent_lag_bytes, pg_wal_lsn_diff(here, write_lsn)::float8 AS write_lag_bytes,
 pg_wal_lsn_diff(here, flush_lsn)::float8 AS flush_lag_bytes, pg_wal_lsn_diff(here, replay_lsn)::float8 AS replay_lag_bytes,
 extract(epoch FROM write_lag)::float8 AS write_lag_seconds, extract(epoch FROM flush_lag)::float8 AS flush_lag_seconds,
 extract(epoch FROM replay_lag)::float8 AS replay_lag_seconds,
 (state = 'streaming')::int::float8 AS streaming, (sync_state IN ('sync', 'quorum'))::int::float8 AS sync
 FROM pg_stat_replication, (SELECT ` + here + ` AS here) h ORDER BY application_name, backend_start`}

var slots = Query{Name: "slot", Gauges: true, Keyed: true, SQL: `SELECT slot_name AS key, active::int::float8 AS active,
 pg_wal_lsn_diff(here, restart_lsn)::float8 AS retained_bytes, safe_wal_size::float8 AS safe_bytes
 FROM pg_replication_slots, (SELECT ` + here + ` AS here) h ORDER BY slot_name`}

// checkpoints: version 17 gave the checkpointer a view of its own.
func checkpoints(major int) []Query {
	if major < 17 {
		return []Query{
			{Name: "checkpoint", SQL: "SELECT " + epochOf("stats_reset") + ", " + floats(
				"checkpoints_timed AS timed", "checkpoints_req AS requested", "checkpoint_write_time AS write_ms",
				"checkpoint_sync_time AS sync_ms", "buffers_checkpoint AS buffers") + " FROM pg_stat_bgwriter"},
			{Name: "bgwriter", SQL: "SELECT " + epochOf("stats_reset") + ", " + floats(
				"buffers_clean AS cleaned", "maxwritten_clean AS stopped", "buffers_alloc AS allocated",
				"buffers_backend AS by_backends", "buffers_backend_fsync AS syncs_by_backends") + " FROM pg_stat_bgwriter"},
		}
	}
	columns := []string{"num_timed AS timed", "num_requested AS requested", "write_time AS write_ms", "sync_time AS sync_ms", "buffers_written AS buffers"}
	if major >= 18 {
		columns = append(columns, "num_done AS done", "slru_written")
	}
	return []Query{
		{Name: "checkpoint", SQL: "SELECT " + epochOf("stats_reset") + ", " + floats(columns...) + " FROM pg_stat_checkpointer"},
		{Name: "bgwriter", SQL: "SELECT " + epochOf("b.stats_reset") + ", " + floats(
			"buffers_clean AS cleaned", "maxwritten_clean AS stopped", "buffers_alloc AS allocated",
			"i.writes AS by_backends", "i.fsyncs AS syncs_by_backends") + ` FROM pg_stat_bgwriter b,
 (SELECT sum(writes) AS writes, sum(fsyncs) AS fsyncs FROM pg_stat_io WHERE object = 'relation' AND backend_type IN ('client backend', 'background worker', 'autovacuum worker')) i`},
	}
}

// io sums up pg_stat_io by kind of process. Until version 17 an operation has a fixed size.
func io(major int) Query {
	size := func(what string) string {
		if major < 18 {
			return what + "s * op_bytes"
		}
		return what + "_bytes"
	}
	return Query{Name: "io", Keyed: true, SQL: `SELECT CASE WHEN backend_type IN ('client backend', 'background worker') THEN 'client'
 WHEN backend_type LIKE 'autovacuum %' THEN 'autovacuum' WHEN backend_type = 'background writer' THEN 'bgwriter'
 WHEN backend_type = 'checkpointer' THEN 'checkpointer' ELSE 'other' END AS key, ` + epochOf("max(stats_reset)") + ", " + floats(
		"sum(reads) AS reads", "sum("+size("read")+") AS read_bytes", "sum(writes) AS writes", "sum("+size("write")+") AS write_bytes",
		"sum(extends) AS extends", "sum("+size("extend")+") AS extend_bytes", "sum(fsyncs) AS syncs", "sum(hits) AS hits", "sum(evictions) AS evictions",
		timed("sum(read_time) AS read_ms"), timed("sum(write_time) AS write_ms"), timed("sum(fsync_time) AS sync_ms"),
	) + " FROM pg_stat_io WHERE object IN ('relation', 'temp relation') GROUP BY 1 ORDER BY 1"}
}

// Locks asks for which relations sessions wait. It takes all partitions of the lock table, one after
// the other, so it is asked only while somebody waits. Who waits for a row waits for the transaction
// that changed it. Which table that is on shows in the lock on the row, which the first of those who
// wait has. Of the others only the statement tells: its table, if there is one of that name. Nothing
// else of statements leaves the server. Who waits for a session that waits itself counts for the
// relation at the end of that chain: the first one holds all of them up.
const Locks = `WITH RECURSIVE l AS MATERIALIZED (SELECT pid, locktype, database, relation, page, tuple, transactionid, granted
  FROM pg_locks WHERE NOT granted OR locktype IN ('tuple', 'transactionid')),
 here AS (SELECT oid FROM pg_database WHERE datname = current_database()),
 w AS (SELECT pid, max(relation) FILTER (WHERE database IN (0, here.oid)) AS relation, bool_and(database IS NULL OR database IN (0, here.oid)) AS ours
  FROM l, here WHERE pid IN (SELECT pid FROM l WHERE NOT granted AND locktype IN ('relation', 'extend', 'page', 'tuple', 'transactionid'))
  AND (NOT granted OR locktype = 'tuple') GROUP BY pid),
 behind AS (SELECT DISTINCT a.pid, b.pid AS holder FROM l a JOIN l b ON NOT a.granted AND b.granted AND a.pid <> b.pid AND a.locktype = b.locktype
  AND (a.transactionid = b.transactionid OR (a.database, a.relation, a.page, a.tuple) = (b.database, b.relation, b.page, b.tuple))
  WHERE b.pid IN (SELECT pid FROM w)),
 chain AS (SELECT pid, pid AS last, 0 AS depth FROM w UNION ALL SELECT c.pid, b.holder, c.depth + 1 FROM chain c JOIN behind b ON b.pid = c.last WHERE c.depth < 8),
 ends AS (SELECT DISTINCT ON (pid) pid, last FROM chain ORDER BY pid, depth DESC)
 SELECT coalesce(w.relation::regclass, to_regclass(coalesce(
  substring(a.query from '(?i)^\s*(?:update|delete\s+from|insert\s+into|merge\s+into)\s+(?:only\s+)?("[^".]+"|[[:alnum:]_]+(?:\.[[:alnum:]_]+)?)'),
  substring(a.query from '(?i)^\s*select\M.*\mfrom\s+(?:only\s+)?("[^".]+"|[[:alnum:]_]+(?:\.[[:alnum:]_]+)?)'))))::text, count(*)::float8
 FROM ends, w, here, pg_stat_get_activity(w.pid) a WHERE w.pid = ends.last AND w.ours AND a.datid = here.oid GROUP BY 1`

// Aside is the application_name of sessions that measure something beside a load, and are no part of it.
const Aside = "howdah-lab-aside"

// Activity counts sessions by what they do. It leaves out the session that asks, and those that are Aside. Its parameter is the
// application_name of the load: of clients, those that have another one or are in another database are
// foreign. If it is empty, none is.
const Activity = `SELECT backend_type, coalesce(state, ''), coalesce(wait_event_type, ''), coalesce(wait_event, ''),
 $1::text <> '' AND backend_type IN ('client backend', 'parallel worker') AND (application_name IS DISTINCT FROM $1::text
  OR datid IS DISTINCT FROM (SELECT oid FROM pg_database WHERE datname = current_database())), count(*)::float8
 FROM pg_stat_get_activity(NULL) WHERE pid <> pg_backend_pid() AND application_name IS DISTINCT FROM '` + Aside + `'
 AND backend_type IN ('client backend', 'parallel worker', 'autovacuum worker', 'checkpointer') GROUP BY 1, 2, 3, 4, 5`
