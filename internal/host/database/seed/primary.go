package seed

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"howdah/internal/host/database/mark"
	"howdah/internal/model/lsn"
)

// askTimeout bounds one conversation with the primary.
const askTimeout = 20 * time.Second

var (
	errStandby = errors.New("it is asked of a standby")
	errAnswer  = errors.New("the primary did not answer as PostgreSQL does")
)

// primary is what a standby has to follow.
type primary struct {
	system  string
	history mark.History
	at      lsn.LSN // where its WAL ended when it was asked
	// files are the histories of timelines, by number: those from some timeline on.
	files map[int]string
}

func (p primary) timeline() int { return p.history[len(p.history)-1].Timeline }

// ask connects to the server of a connection string as one that copies it.
func ask(ctx context.Context, conninfo string, say func(context.Context, *pgconn.PgConn) error) error {
	config, err := pgconn.ParseConfig(conninfo)
	if err != nil {
		return fmt.Errorf("read how the primary is reached: %w", err)
	}
	config.Database = "rdsadmin"
	config.RuntimeParams["replication"] = "database"
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connect to the primary: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := say(ctx, conn); err != nil {
		return fmt.Errorf("ask the primary: %w", err)
	}
	return nil
}

// rows are the values that a statement returns.
func rows(ctx context.Context, conn *pgconn.PgConn, sql string) ([][][]byte, error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) != 1 {
		return nil, errAnswer
	}
	return results[0].Rows, nil
}

func row(ctx context.Context, conn *pgconn.PgConn, sql string, columns int) ([][]byte, error) {
	all, err := rows(ctx, conn, sql)
	if err == nil && (len(all) != 1 || len(all[0]) < columns) {
		err = errAnswer
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// look asks the primary what it is. It fails if a standby answers.
func look(ctx context.Context, conninfo string) (p primary, err error) {
	err = ask(ctx, conninfo, func(ctx context.Context, conn *pgconn.PgConn) error {
		recovers, err := row(ctx, conn, "SELECT pg_catalog.pg_is_in_recovery()", 1)
		if err != nil {
			return err
		}
		if string(recovers[0]) != "f" {
			return errStandby
		}
		self, err := row(ctx, conn, "IDENTIFY_SYSTEM", 3)
		if err != nil {
			return err
		}
		timeline, err := strconv.Atoi(string(self[1]))
		if err != nil {
			return errAnswer
		}
		if p.at, err = lsn.Parse(string(self[2])); err != nil {
			return err
		}
		p.system, p.files = string(self[0]), map[int]string{}
		if timeline > 1 {
			if p.files[timeline], err = history(ctx, conn, timeline); err != nil {
				return err
			}
		}
		p.history, err = mark.ParseHistory(timeline, p.files[timeline])
		return err
	})
	return p, err
}

// since adds the histories of all timelines after one. PostgreSQL looks for one after the other.
func (p primary) since(ctx context.Context, conninfo string, timeline int) error {
	return ask(ctx, conninfo, func(ctx context.Context, conn *pgconn.PgConn) (err error) {
		for n := timeline + 1; n < p.timeline(); n++ {
			if p.files[n], err = history(ctx, conn, n); err != nil {
				return err
			}
		}
		return nil
	})
}

func history(ctx context.Context, conn *pgconn.PgConn, timeline int) (string, error) {
	file, err := row(ctx, conn, "TIMELINE_HISTORY "+strconv.Itoa(timeline), 2)
	if err != nil {
		return "", err
	}
	return string(file[1]), nil
}

// keeps returns from where on the primary keeps WAL in a slot; 0: there is no such slot yet.
func keeps(ctx context.Context, conninfo, slot string) (from lsn.LSN, err error) {
	err = ask(ctx, conninfo, func(ctx context.Context, conn *pgconn.PgConn) error {
		all, err := rows(ctx, conn, "SELECT slot_name, restart_lsn FROM pg_catalog.pg_replication_slots WHERE slot_type = 'physical'")
		if err != nil {
			return err
		}
		for _, r := range all {
			if len(r) == 2 && string(r[0]) == slot && r[1] != nil {
				from, err = lsn.Parse(string(r[1]))
				return err
			}
		}
		return nil
	})
	return from, err
}
