package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Login says how a user that pg_hba.conf takes for a member of rds_iam has to log in.
type Login struct {
	// ByPassword says that the user only administers members of rds_iam, and gets the role's rights
	// from none of its memberships. From 16 on, whoever creates a role is its administrator, and
	// pg_hba.conf counts that as membership like any other.
	ByPassword bool
	// Verifier is the password's SCRAM-SHA-256 verifier as in pg_authid. It is "" if there is none,
	// or if the password is no longer valid. It is set only if ByPassword is.
	Verifier string
}

// LoginOf returns the Login of one user, who may not exist. conn must be rdsadmin's, on a primary
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
