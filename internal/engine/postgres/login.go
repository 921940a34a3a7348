package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Login is how a user that pg_hba.conf takes for a member of rds_iam has to log in.
type Login struct {
	// ByPassword: the user merely administers members of rds_iam, and has the role's
	// rights by none of its memberships. From 16 on whoever creates a role is its
	// administrator, and pg_hba.conf counts that as membership like any other.
	ByPassword bool
	// Verifier of the password, SCRAM-SHA-256 as pg_authid keeps it; "" where there is
	// none, or where it is not valid any more. Set only where ByPassword is.
	Verifier string
}

// LoginOf answers for one user, which may not exist. conn is rdsadmin's, on a primary
// or a standby.
func LoginOf(ctx context.Context, conn *pgx.Conn, user string) (Login, error) {
	var l Login
	err := conn.QueryRow(ctx, `SELECT NOT pg_catalog.pg_has_role(oid, 'rds_iam', 'USAGE')
			AND pg_catalog.current_setting('server_version_num')::int >= 160000
			AND CASE WHEN pg_catalog.current_setting('server_version_num')::int >= 160000
				THEN NOT pg_catalog.pg_has_role(oid, 'rds_iam', 'SET') END,
			CASE WHEN rolvaliduntil IS NULL OR rolvaliduntil > pg_catalog.now() THEN coalesce(rolpassword, '') ELSE '' END
		FROM pg_catalog.pg_authid WHERE rolname = $1`, user).Scan(&l.ByPassword, &l.Verifier)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Login{}, nil
	case err != nil:
		return Login{}, fmt.Errorf("look how %q logs in: %w", user, err)
	case !l.ByPassword:
		l.Verifier = ""
	}
	return l, nil
}
