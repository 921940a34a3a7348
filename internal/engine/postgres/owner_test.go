package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

// talkative is the configuration of a server that records every statement.
const talkative = `shared_preload_libraries = 'pg_stat_statements'
pg_stat_statements.track = 'all'
track_activity_query_size = '16kB'
logging_collector = on
log_statement = 'all'
log_min_duration_statement = 0
log_min_duration_sample = 0
log_transaction_sample_rate = 1
log_rotation_age = 0
`

// A new verifier can be read in pg_authid only: not in the server's log, not in the statistics of
// statements, and not as a session's last statement.
func TestTheVerifierOfAnOwnerIsToldNobody(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{Settings: talkative})
	s.Exec("CREATE EXTENSION pg_stat_statements")
	s.Exec("CREATE ROLE rds_superuser")
	s.Exec("CREATE TABLE public.howdah_done (what text PRIMARY KEY, serial bigint NOT NULL, at timestamptz NOT NULL DEFAULT now())")
	conn, err := pgx.ConnectConfig(t.Context(), s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for i, secret := range []string{"Zmlyc3Q=", "c2Vjb25k"} {
		serial := int64(i + 1)
		o := postgres.Owner{Name: "ada", Serial: serial, Database: "works",
			Verifier: "SCRAM-SHA-256$4096:" + secret + "$qJ4uM6Ssc9Jgd2xMQsRmjZeKKqkTAWHnGsHrsXEbeJk=:7sGdiXk3mKAVZUq1dH0sHKW4PqvSyMDpxnwTeCJ4kcw="}
		if err := postgres.SetOwner(t.Context(), conn, o); err != nil {
			t.Fatal(err)
		}
		if got := ask(t, s, "SELECT rolpassword FROM pg_authid WHERE rolname = 'ada'"); got != o.Verifier {
			t.Fatalf("the role has %q, want %q", got, o.Verifier)
		}
		awaitLogged(t, s, fmt.Sprintf("mark %d", serial))
		for place, sql := range map[string]string{
			"statistics": "SELECT string_agg(query, E'\n') FROM pg_stat_statements",
			"activity":   "SELECT coalesce(string_agg(query, E'\n'), '') FROM pg_stat_activity WHERE pid <> pg_backend_pid()",
			"log":        logSQL,
		} {
			if told := ask(t, s, sql); strings.Contains(told, secret) {
				t.Errorf("the verifier of serial %d is in the %s:\n%s", serial, place, told)
			}
		}
	}
	// This server does record a verifier that is set in another way.
	s.Exec("ALTER ROLE ada PASSWORD 'SCRAM-SHA-256$4096:Y2hlY2s=$qJ4uM6Ssc9Jgd2xMQsRmjZeKKqkTAWHnGsHrsXEbeJk=:7sGdiXk3mKAVZUq1dH0sHKW4PqvSyMDpxnwTeCJ4kcw='")
	if told := ask(t, s, "SELECT string_agg(query, E'\n') FROM pg_stat_statements"); !strings.Contains(told, "Y2hlY2s=") {
		t.Error("the statistics of statements tell nothing: the test proves nothing")
	}
	awaitLogged(t, s, "another mark")
	if told := ask(t, s, logSQL); !strings.Contains(told, "Y2hlY2s=") {
		t.Error("the log tells nothing: the test proves nothing")
	}
}

const logSQL = "SELECT pg_read_file(pg_current_logfile())"

// awaitLogged returns once the log has everything that the server was asked before. Another process
// writes the log, in order.
func awaitLogged(t *testing.T, s *pgtest.Server, mark string) {
	t.Helper()
	s.Exec("COMMENT ON DATABASE rdsadmin IS '" + mark + "'")
	testkit.Eventually(t, 10*time.Second, func() error {
		if !strings.Contains(ask(t, s, logSQL), mark) {
			return fmt.Errorf("%q is not in the log yet", mark)
		}
		return nil
	})
}

// A server without the extension accepts the extension's setting, too.
func TestAnOwnerWithoutStatistics(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{})
	s.Exec("CREATE ROLE rds_superuser")
	s.Exec("CREATE TABLE public.howdah_done (what text PRIMARY KEY, serial bigint NOT NULL, at timestamptz NOT NULL DEFAULT now())")
	conn, err := pgx.ConnectConfig(t.Context(), s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	o := postgres.Owner{Name: "ada", Serial: 7, Verifier: "SCRAM-SHA-256$4096:Zmlyc3Q=$qJ4uM6Ssc9Jgd2xMQsRmjZeKKqkTAWHnGsHrsXEbeJk=:7sGdiXk3mKAVZUq1dH0sHKW4PqvSyMDpxnwTeCJ4kcw="}
	if err := postgres.SetOwner(t.Context(), conn, o); err != nil {
		t.Fatal(err)
	}
	if serial, err := postgres.OwnerSerial(t.Context(), conn); err != nil || serial != 7 {
		t.Errorf("serial %d, %v", serial, err)
	}
}

// ask runs a query that returns one text.
func ask(t *testing.T, s *pgtest.Server, sql string) (text string) {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), sql).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}
