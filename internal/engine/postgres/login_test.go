package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/identity/scram"
	"howdah/internal/testkit/pgtest"
	"howdah/internal/testkit/pgversion"
)

// From PostgreSQL 16 on, whoever creates a role administers it. That alone must not change how this
// user logs in.
func TestHowUsersLogIn(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{})
	verifier, err := scram.Verifier("secret")
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"CREATE ROLE rds_iam", "CREATE ROLE boss LOGIN CREATEROLE PASSWORD '" + verifier + "'",
		"CREATE ROLE late LOGIN CREATEROLE PASSWORD '" + verifier + "' VALID UNTIL '2001-01-01'",
		"SET SESSION AUTHORIZATION boss; CREATE ROLE jane LOGIN; CREATE ROLE team",
		"SET SESSION AUTHORIZATION late; CREATE ROLE joe LOGIN",
		"CREATE ROLE ann LOGIN PASSWORD '" + verifier + "'", "GRANT team TO ann",
		"CREATE ROLE other LOGIN PASSWORD '" + verifier + "'",
		"GRANT rds_iam TO jane, joe, team",
	} {
		s.Exec(sql)
	}
	if pgversion.Major() >= 16 {
		s.Exec("CREATE ROLE setter LOGIN; GRANT rds_iam TO setter WITH INHERIT FALSE")
	}
	conn, err := pgx.ConnectConfig(t.Context(), s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	password := postgres.Login{ByPassword: true, Verifier: verifier}
	for user, want := range map[string]postgres.Login{
		"boss":   password,
		"late":   {ByPassword: true},
		"jane":   {},
		"ann":    {},
		"setter": {},
		"nobody": {},
		"other":  password, // no member of rds_iam
	} {
		if pgversion.Major() < 16 {
			want = postgres.Login{}
		}
		if got, err := postgres.LoginOf(t.Context(), conn, user); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", user, got, err, want)
		}
	}
}
