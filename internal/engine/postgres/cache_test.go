package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
	"howdah/internal/testkit/pgversion"
)

// A database of an earlier release is set up for cluster cache management once, and by each release
// that needs something else. Nobody but the platform may ask what is cached.
func TestCacheManagementIsSetUp(t *testing.T) {
	modules, err := postgres.Modules(pgversion.Major())
	if err != nil || !postgres.HasCache(modules) {
		testkit.Missing(t, fmt.Sprintf("the module ccm: run scripts/install (%v)", err))
	}
	s := pgtest.Start(t, pgtest.Options{Settings: "dynamic_library_path = '$libdir:" + modules + "'\nshared_preload_libraries = 'ccm'\nlog_statement = 'all'\nlog_min_duration_statement = 0\n"})
	for _, sql := range []string{
		"CREATE ROLE rdsrepladmin LOGIN REPLICATION", "CREATE ROLE tenant LOGIN",
		"CREATE TABLE public.howdah_done (what text PRIMARY KEY, serial bigint NOT NULL, at timestamptz NOT NULL DEFAULT now())",
	} {
		s.Exec(sql)
	}
	conn, err := pgx.ConnectConfig(t.Context(), s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for range 2 {
		if err := postgres.SetUpCache(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
	}
	made := ask(t, s, "SELECT 'ccm.pull'::regproc::oid::text")
	if c, err := postgres.ReadCache(t.Context(), conn); err != nil || c.State == "" || c.Percent != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	for role, want := range map[string]string{"rdsrepladmin": "true", "tenant": "false"} {
		if got := ask(t, s, fmt.Sprintf("SELECT has_function_privilege('%s', 'ccm.pull(bytea,int,int,int,int,int)', 'EXECUTE')::text", role)); got != want {
			t.Errorf("%s may pull: %s", role, got)
		}
	}
	// What a standby asks with is in no log, whatever users log.
	config := s.Config()
	config.User = "rdsrepladmin"
	asks, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer asks.Close(t.Context())
	for setting, want := range map[string]string{"log_statement": "none", "log_min_duration_statement": "-1", "log_parameter_max_length": "0", "auto_explain.log_min_duration": "-1"} {
		var got string
		if err := asks.QueryRow(t.Context(), "SELECT current_setting($1)", setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v", setting, got, err)
		}
	}
	// The next release needs something else.
	s.Exec("UPDATE public.howdah_done SET serial = 0 WHERE what = 'ccm'")
	if err := postgres.SetUpCache(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	if again := ask(t, s, "SELECT 'ccm.pull'::regproc::oid::text"); again == made {
		t.Error("it was not made anew")
	}
	_, err = conn.Exec(t.Context(), "SELECT * FROM aurora_ccm_status()")
	if err == nil || !strings.Contains(err.Error(), "Cluster Cache Manager is disabled") {
		t.Errorf("the users' function says %v", err)
	}
}
