package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/model/lsn"
)

// Facts are what a running server says of itself.
type Facts struct {
	InRecovery bool
	Timeline   int
	// Started is when the server began with an empty cache. A crash of one session has it begin anew,
	// which its postmaster outlives.
	Started time.Time
	// LSN is the end of the WAL that a primary wrote, or that a replica received.
	LSN lsn.LSN
	// Position is set for a primary.
	Position  Position
	Streaming bool
	// LagSeconds is the age of the newest commit that a replica replayed. It is 0 when everything
	// that was received is replayed.
	LagSeconds float64
	// Paused says that a replica does not replay. The cause may be that it has less of some setting
	// than its primary.
	Paused bool
	// LostSlots lists the slots of standbys and replicas whose WAL was given up.
	LostSlots []string
	// LostUserSlots lists logical slots whose WAL was given up, the first of them by name if there are
	// many: users make as many as max_replication_slots allows.
	LostUserSlots []string
	// Slots lists the logical slots, which are users', but for those that end with a session. A slot
	// whose WAL was given up is not in the list. If there are many, it has the first hundred by name.
	Slots []string
	// Waiting lists the commits that wait for synchronous standbys. Each has a name that no other
	// commit has.
	Waiting []string
	// Libraries lists the libraries that the server loaded when it started, whatever its
	// configuration says now.
	Libraries string
	// StorageFull is a level as SetStorage takes it, or "" if the module is of a release that knows
	// no limit. With "on" users may take no more storage, with "off" they may.
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
  ARRAY(SELECT slot_name::text FROM pg_replication_slots WHERE wal_status = 'lost' AND slot_type = 'physical'),
  ARRAY(SELECT slot_name::text FROM pg_replication_slots WHERE wal_status = 'lost' AND slot_type = 'logical' ORDER BY slot_name LIMIT 20),
  ARRAY(SELECT slot_name::text FROM pg_replication_slots
    WHERE slot_type = 'logical' AND NOT temporary AND wal_status IS DISTINCT FROM 'lost' ORDER BY slot_name LIMIT 100),
  ARRAY(SELECT concat_ws('/', pid, query_start, backend_xid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'),
  current_setting('shared_preload_libraries'),
  coalesce(current_setting('howdah.storage_full', true), ''),
  coalesce((SELECT backend_start FROM pg_stat_activity WHERE backend_type = 'checkpointer'), pg_postmaster_start_time())
FROM (SELECT pg_is_in_recovery() AS recovery) r`

// Observe asks a server for its facts. The role of conn must have pg_monitor.
func Observe(ctx context.Context, conn *pgx.Conn) (Facts, error) {
	var f Facts
	var position *string
	var inserted, flushed string
	err := conn.QueryRow(ctx, observeSQL).Scan(&f.InRecovery, &f.Timeline, &position, &inserted, &flushed, &f.Streaming, &f.LagSeconds, &f.Paused, &f.LostSlots, &f.LostUserSlots, &f.Slots, &f.Waiting, &f.Libraries, &f.StorageFull, &f.Started)
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

// Stroke commits some bytes of WAL that change nothing. It returns once the commit has reached what
// the session's synchronous_commit requires. conn must be rdsadmin's, on the platform's database,
// in which nobody decodes WAL.
func Stroke(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "SELECT pg_logical_emit_message(true, 'howdah', '')"); err != nil {
		return fmt.Errorf("commit a small write: %w", err)
	}
	return nil
}

// EndSenders ends the WAL senders to these standbys, and returns how many there were. conn must be
// rdsadmin's.
func EndSenders(ctx context.Context, conn *pgx.Conn, standbys []string) (int, error) {
	var ended int
	const sql = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_replication WHERE application_name = ANY ($1)`
	if err := conn.QueryRow(ctx, sql, standbys).Scan(&ended); err != nil {
		return 0, fmt.Errorf("end WAL senders: %w", err)
	}
	return ended, nil
}
