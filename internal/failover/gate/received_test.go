package gate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

// A standby has confirmed commits that it has not replayed yet. Then it restarts, and gets no more
// WAL. It must not give a position until it has replayed all WAL on its disk, whether or not it has
// a primary to ask for more.
func TestWhatAStandbyHasAfterItsStart(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	standby := primary.Follow("standby", pgtest.Options{Settings: "recovery_min_apply_delay = '1h'\n"})
	ask := func() (int64, error) {
		return received(t.Context(), func(string) (*pgx.ConnConfig, error) { return standby.Config(), nil })
	}
	primary.Exec("CREATE TABLE confirmed ()")
	end := number(t, primary, "SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint")
	has := func() error {
		if got, err := ask(); err != nil || got < end {
			return fmt.Errorf("it has %d of %d: %w", got, end, err)
		}
		return nil
	}
	testkit.Eventually(t, 20*time.Second, has)
	if replayed := number(t, standby, "SELECT pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint"); replayed >= end {
		t.Fatalf("it replayed %d of %d: there is nothing to test", replayed, end)
	}
	primary.Kill()

	for _, upstream := range []string{"", "primary_conninfo = ''"} {
		standby.Kill()
		standby.Set("recovery_min_apply_delay = '1h'\n" + upstream)
		standby.Up()
		if got, err := ask(); !errors.Is(err, errReplays) {
			t.Errorf("%q: before it has replayed what it has it says %d, %v", upstream, got, err)
		}
	}
	standby.Kill()
	standby.Set("recovery_min_apply_delay = 0")
	standby.Up()
	testkit.Eventually(t, 20*time.Second, has)
	standby.Kill()
	if _, err := ask(); err == nil {
		t.Error("a standby that is gone answers")
	}
}

func number(t *testing.T, s *pgtest.Server, sql string) (n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAddressOfPostgreSQL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres://127.9.1.1:15432/postgres": "127.9.1.1:15432",
		"":                                    "",
		"http://127.9.1.1:15432":              "",
		"postgres://%zz":                      "",
	} {
		if got := address(url); got != want {
			t.Errorf("%q: %q, want %q", url, got, want)
		}
	}
	if _, err := Receiver(nil)(t.Context(), ""); err == nil {
		t.Error("nobody has a position")
	}
}
