package visitor

import (
	"maps"
	"testing"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/testkit/pgtest"
	"howdah/internal/testkit/pgversion"
)

// What the agent says each second is not logged, also by libraries that users have loaded.
func TestManners(t *testing.T) {
	t.Parallel()
	libraries := "auto_explain"
	install, err := postgres.Find(pgversion.Major())
	if err != nil {
		t.Fatal(err)
	}
	has, err := install.Extensions()
	if err != nil {
		t.Fatal(err)
	}
	if _, packaged := has["pgaudit"]; packaged { // as where PostgreSQL is a package, too
		libraries += ",pgaudit"
	}
	for name, settings := range map[string]string{
		"no libraries": "",
		"libraries":    "shared_preload_libraries = '" + libraries + "'\nauto_explain.log_min_duration = 0\npgaudit.log = 'all'\nlog_statement = 'all'\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := pgtest.Start(t, pgtest.Options{Settings: settings}).Config()
			maps.Copy(config.RuntimeParams, manners)
			conn, err := pgx.ConnectConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(t.Context())
			var got [3]string
			const sql = "SELECT current_setting('log_statement'), current_setting('auto_explain.log_min_duration'), current_setting('pgaudit.log')"
			if err := conn.QueryRow(t.Context(), sql).Scan(&got[0], &got[1], &got[2]); err != nil || got != [3]string{"none", "-1", "none"} {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
