package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Owner is the master user of a database.
type Owner struct {
	Name     string
	Verifier string // SCRAM-SHA-256, as pg_authid keeps it
	Serial   int64
	Database string // to make for the owner; "" for none
}

// ownerMark is the row of the settings table that keeps the serial.
const ownerMark = "master-user"

// OwnerSerial returns the serial of the owner that was set last, or 0. conn must be rdsadmin's or
// rdsmon's, on the platform's database.
func OwnerSerial(ctx context.Context, conn *pgx.Conn) (int64, error) {
	var serial int64
	err := conn.QueryRow(ctx, "SELECT serial FROM public.howdah_done WHERE what = $1", ownerMark).Scan(&serial)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read serial of the master user: %w", err)
	}
	return serial, nil
}

// SetOwner creates the master user or gives it a new password, once for each serial. So a password
// that its holder changed in SQL afterwards stays. conn must be rdsadmin's, on the platform's
// database of a primary. SetOwner is idempotent, and may be interrupted anywhere.
func SetOwner(ctx context.Context, conn *pgx.Conn, o Owner) error {
	done, err := OwnerSerial(ctx, conn)
	if err != nil || done >= o.Serial {
		return err
	}
	if err := setRole(ctx, conn, o); err != nil {
		return err
	}
	// A database cannot be created in a transaction, so each step stands alone.
	if done == 0 {
		if err := setDatabases(ctx, conn, o); err != nil {
			return err
		}
	}
	_, err = conn.Exec(ctx, `INSERT INTO public.howdah_done (what, serial) VALUES ($1, $2)
		ON CONFLICT (what) DO UPDATE SET serial = excluded.serial, at = now()`, ownerMark, o.Serial)
	if err != nil {
		return fmt.Errorf("remember the master user: %w", err)
	}
	return nil
}

// ForgetOwner has the next SetOwner set the master user up, whatever its serial. The databases keep
// their owners. It is for data that were copied from another database. conn is as for SetOwner.
func ForgetOwner(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "UPDATE public.howdah_done SET serial = -1 WHERE what = $1", ownerMark)
	if err != nil {
		return fmt.Errorf("forget the master user: %w", err)
	}
	return nil
}

// discreet keeps the server from recording the text of this session's statements. Nobody can log in
// with a verifier, but whoever has it can try to guess the password. The setting of an extension
// that is not loaded may be set too, and has no effect.
var discreet = []string{
	"SET track_activities TO off", "SET pg_stat_statements.track_utility TO off",
	"SET log_statement TO none", "SET log_min_error_statement TO panic", "SET log_transaction_sample_rate TO 0",
	"SET log_min_duration_statement TO -1", "SET log_min_duration_sample TO -1",
}

func setRole(ctx context.Context, conn *pgx.Conn, o Owner) error {
	name := pgx.Identifier{o.Name}.Sanitize()
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", o.Name).Scan(&exists); err != nil {
		return fmt.Errorf("look for the master user: %w", err)
	}
	verb := "CREATE"
	if exists {
		verb = "ALTER"
	}
	// A verifier consists of letters, digits and $:+/= only, so it needs no escapes.
	statements := append(slices.Clone(discreet),
		fmt.Sprintf("%s ROLE %s LOGIN CREATEROLE CREATEDB INHERIT PASSWORD '%s' VALID UNTIL 'infinity'", verb, name, o.Verifier),
		fmt.Sprintf("GRANT rds_superuser TO %s WITH ADMIN OPTION", name),
	)
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("set the master user up: %w", err)
		}
	}
	return nil
}

func setDatabases(ctx context.Context, conn *pgx.Conn, o Owner) error {
	name := pgx.Identifier{o.Name}.Sanitize()
	for _, database := range []string{"postgres", "template1"} {
		if _, err := conn.Exec(ctx, fmt.Sprintf("ALTER DATABASE %s OWNER TO %s", database, name)); err != nil {
			return fmt.Errorf("give database %s to the master user: %w", database, err)
		}
	}
	if o.Database == "" {
		return nil
	}
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", o.Database).Scan(&exists); err != nil {
		return fmt.Errorf("look for database %s: %w", o.Database, err)
	}
	sql := fmt.Sprintf("CREATE DATABASE %s OWNER %s", pgx.Identifier{o.Database}.Sanitize(), name)
	if exists {
		sql = fmt.Sprintf("ALTER DATABASE %s OWNER TO %s", pgx.Identifier{o.Database}.Sanitize(), name)
	}
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("make database %s: %w", o.Database, err)
	}
	return nil
}
