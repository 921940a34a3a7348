package drivers

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/model/member"
	"howdah/internal/testkit/pgtest"
	"howdah/internal/testkit/pgversion"
)

// A look says who leads and who runs. Who led last, and who was seen some minutes ago, stays.
func TestWhatIsSeen(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 27, 13, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	var s member.Seen
	for _, look := range []struct {
		what    string
		at      int
		leader  string
		running []string
		want    member.Seen
	}{
		{"nobody leads yet", 0, "", []string{"m1"}, member.Seen{At: at(0), Members: map[string]time.Time{"m1": at(0)}}},
		{"one leads", 1, "m1", []string{"m1", "m2"}, member.Seen{At: at(1), Leader: "m1", Writer: "m1", WriterAt: at(1), Members: map[string]time.Time{"m1": at(1), "m2": at(1)}}},
		{"it is lost", 2, "", []string{"m2"}, member.Seen{At: at(2), Writer: "m1", WriterAt: at(1), Members: map[string]time.Time{"m1": at(1), "m2": at(2)}}},
		{"the other leads", 3, "m2", []string{"m2"}, member.Seen{At: at(3), Leader: "m2", Writer: "m2", WriterAt: at(3), Members: map[string]time.Time{"m1": at(1), "m2": at(3)}}},
		{"the first stays away", 302, "m2", []string{"m2"}, member.Seen{At: at(302), Leader: "m2", Writer: "m2", WriterAt: at(302), Members: map[string]time.Time{"m2": at(302)}}},
	} {
		s = next(s, look.leader, look.running, at(look.at))
		if diff := cmp.Diff(look.want, s); diff != "" {
			t.Errorf("%s: %s", look.what, diff)
		}
	}
}

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
