package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/model/lsn"
)

// Beat is a commit of the platform on a primary. It is there to be found by a recovery up to a
// moment: such a recovery must meet a later commit, or it fails.
type Beat struct {
	// At is before the time of the commit, by the server's clock.
	At time.Time
	// Timeline and End are a position that is not before the end of the commit, and is on the
	// server's disk.
	Timeline int
	End      lsn.LSN
	// Next is the transaction id that the next writer gets.
	Next string
}

// ErrStandby says that a server is no primary.
var ErrStandby = errors.New("it is a standby")

// Commit makes a Beat. It does not wait for standbys. conn must be rdsadmin's, on the platform's
// database, in which nobody decodes WAL.
func Commit(ctx context.Context, conn *pgx.Conn) (b Beat, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("commit a heartbeat: %w", err)
		}
	}()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return Beat{}, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // it is over, or the connection is
	var recovery bool
	err = tx.QueryRow(ctx, "SELECT pg_is_in_recovery(), clock_timestamp()").Scan(&recovery, &b.At)
	if err == nil && recovery {
		err = ErrStandby
	}
	if err == nil {
		_, err = tx.Exec(ctx, "SET LOCAL synchronous_commit = local")
	}
	if err == nil {
		_, err = tx.Exec(ctx, "SELECT pg_logical_emit_message(true, 'howdah', '')")
	}
	if err == nil {
		err = tx.Commit(ctx)
	}
	if err != nil {
		return Beat{}, err
	}
	var end string
	const sql = `SELECT ('x' || substr(pg_walfile_name(pg_current_wal_flush_lsn()), 1, 8))::bit(32)::int,
		pg_current_wal_flush_lsn()::text, pg_snapshot_xmax(pg_current_snapshot())::text`
	if err := conn.QueryRow(ctx, sql).Scan(&b.Timeline, &end, &b.Next); err != nil {
		return Beat{}, err
	}
	b.At = b.At.UTC()
	b.End, err = lsn.Parse(end)
	return b, err
}

// NextWriter returns the transaction id that the next writer gets. As long as it stays the same
// nothing is committed that a recovery could reach or miss.
func NextWriter(ctx context.Context, conn *pgx.Conn) (next string, err error) {
	err = conn.QueryRow(ctx, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text").Scan(&next)
	if err != nil {
		return "", fmt.Errorf("look who has written: %w", err)
	}
	return next, nil
}

// EndFile ends the file of WAL that is written to, so that it is archived.
func EndFile(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "SELECT pg_switch_wal()"); err != nil {
		return fmt.Errorf("end a file of WAL: %w", err)
	}
	return nil
}

// Archives reports whether the server archives its WAL at all. That changes with a restart alone.
func Archives(ctx context.Context, conn *pgx.Conn) (archives bool, err error) {
	err = conn.QueryRow(ctx, "SELECT current_setting('archive_mode') <> 'off'").Scan(&archives)
	if err != nil {
		return false, fmt.Errorf("look whether WAL is archived: %w", err)
	}
	return archives, nil
}

// LastArchived returns the name of the file that the archiver was done with last; "": there is none.
func LastArchived(ctx context.Context, conn *pgx.Conn) (name string, err error) {
	err = conn.QueryRow(ctx, "SELECT coalesce(last_archived_wal, '') FROM pg_stat_archiver").Scan(&name)
	if err != nil {
		return "", fmt.Errorf("look what was archived last: %w", err)
	}
	return name, nil
}

// Confirmed reports whether a position would be acknowledged to users: a synchronous standby has it
// on its disk, or the server does not wait for any.
func Confirmed(ctx context.Context, conn *pgx.Conn, position lsn.LSN) (confirmed bool, err error) {
	const sql = `SELECT current_setting('synchronous_standby_names') = '' OR EXISTS (SELECT FROM pg_stat_replication
		WHERE sync_state IN ('sync', 'quorum') AND flush_lsn >= $1::text::pg_lsn)`
	if err := conn.QueryRow(ctx, sql, position.String()).Scan(&confirmed); err != nil {
		return false, fmt.Errorf("look whether standbys have what was written: %w", err)
	}
	return confirmed, nil
}
