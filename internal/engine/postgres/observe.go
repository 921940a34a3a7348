package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"howdah/internal/model/lsn"
)

// Facts are what a running server says of itself.
type Facts struct {
	InRecovery bool
	Timeline   int
	// LSN is the end of what was written, or received by a replica.
	LSN lsn.LSN
	// Position is that of a primary.
	Position  Position
	Streaming bool
	// LagSeconds is how old the newest replayed commit of a replica is, 0 when
	// everything that was received is replayed.
	LagSeconds float64
	// Paused: a replica does not replay. Nobody may have told it so: it has less of some
	// setting than its primary.
	Paused bool
	// LostSlots are replication slots whose WAL was given up.
	LostSlots []string
	// Waiting are the commits that wait for synchronous standbys, each by a name that no
	// other commit has.
	Waiting []string
	// Libraries are those that the server loaded when it was started, whatever its
	// configuration says by now.
	Libraries string
	// StorageFull is "on" where users may take no more storage, "off" where they may, and ""
	// where the module is of a release that knows no limit.
	StorageFull string
}

// Position is how far a primary has written: to memory, and to its disk.
type Position struct {
	Inserted, Flushed lsn.LSN
}

// The timeline of a primary is in the name of the WAL file that it writes; that
// of a replica is what it receives.
const observeSQL = `
SELECT r.recovery,
  CASE WHEN r.recovery THEN coalesce((SELECT received_tli FROM pg_stat_wal_receiver), 0)
       ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int END,
  CASE WHEN r.recovery THEN greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
       ELSE pg_current_wal_lsn() END::text,
  CASE WHEN r.recovery THEN '0/0' ELSE pg_current_wal_insert_lsn() END::text,
  CASE WHEN r.recovery THEN '0/0' ELSE pg_current_wal_flush_lsn() END::text,
  r.recovery AND EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming'),
  CASE WHEN NOT r.recovery OR pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0
       ELSE coalesce(extract(epoch FROM now() - pg_last_xact_replay_timestamp()), 0) END::float8,
  CASE WHEN r.recovery THEN pg_is_wal_replay_paused() ELSE false END,
  ARRAY(SELECT slot_name::text FROM pg_replication_slots WHERE wal_status = 'lost'),
  ARRAY(SELECT concat_ws('/', pid, query_start, backend_xid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'),
  current_setting('shared_preload_libraries'),
  coalesce(current_setting('howdah.storage_full', true), '')
FROM (SELECT pg_is_in_recovery() AS recovery) r`

// Observe asks a server for its facts. Any role with pg_monitor may.
func Observe(ctx context.Context, conn *pgx.Conn) (Facts, error) {
	var f Facts
	var position *string
	var inserted, flushed string
	err := conn.QueryRow(ctx, observeSQL).Scan(&f.InRecovery, &f.Timeline, &position, &inserted, &flushed, &f.Streaming, &f.LagSeconds, &f.Paused, &f.LostSlots, &f.Waiting, &f.Libraries, &f.StorageFull)
	if err != nil {
		return Facts{}, fmt.Errorf("observe server: %w", err)
	}
	if position != nil {
		f.LSN, err = lsn.Parse(*position)
	}
	if err == nil {
		f.Position.Inserted, err = lsn.Parse(inserted)
	}
	if err == nil {
		f.Position.Flushed, err = lsn.Parse(flushed)
	}
	if err != nil {
		return Facts{}, fmt.Errorf("observe server: %w", err)
	}
	return f, nil
}

// Stroke commits a write that changes nothing: some bytes of WAL that say nothing to
// anybody. It answers once they are where the session's synchronous_commit wants them.
// conn is rdsadmin's on the platform's database, in which nobody decodes WAL.
func Stroke(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "SELECT pg_logical_emit_message(true, 'howdah', '')"); err != nil {
		return fmt.Errorf("commit a small write: %w", err)
	}
	return nil
}

// EndSenders ends the WAL senders to these standbys, and answers how many there were. conn
// is rdsadmin's.
func EndSenders(ctx context.Context, conn *pgx.Conn, standbys []string) (int, error) {
	var ended int
	const sql = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_replication WHERE application_name = ANY ($1)`
	if err := conn.QueryRow(ctx, sql, standbys).Scan(&ended); err != nil {
		return 0, fmt.Errorf("end WAL senders: %w", err)
	}
	return ended, nil
}
