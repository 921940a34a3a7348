package database

import (
	"context"
	"errors"
	"testing"
	"time"

	"howdah/internal/engine/patroni/program"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/dial"
	"howdah/internal/host/hang"
	"howdah/internal/model/member"
	"howdah/internal/testkit"
)

// Who keeps everybody from logging in makes no disk hang. CREATE RULE asks for its lock of
// a catalog before it asks whether it may, so it can wait in front of all logins. Our
// module lets no user do that, whoever finds another way might.
func TestALockThatStopsLoginsIsNoDiskThatHangs(t *testing.T) {
	t.Parallel()
	if _, err := program.Find(); err != nil {
		testkit.Missing(t, err.Error())
	}
	w := newWorld(t, "")
	agent, _ := w.run(func(a *Host) { a.spares.Keep, a.Hang.Stall = 1, 3*time.Second })
	a := w.Assignment("db-1", 1)
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if !r.Ready || r.InRecovery {
			return errors.New("no primary yet")
		}
		return nil
	})
	holder, err := dial.Admin(w.Context(), agent.Agent, a)
	w.Must(err)
	defer holder.Close(context.Background())
	other, err := dial.Admin(w.Context(), agent.Agent, a)
	w.Must(err)
	for _, sql := range []string{"BEGIN", "SELECT count(*) FROM pg_database"} {
		_, err := holder.Exec(w.Context(), sql)
		w.Must(err)
	}
	refused := make(chan error, 1)
	go func() {
		_, err := other.Exec(context.Background(), "CREATE RULE r AS ON INSERT TO pg_catalog.pg_database DO INSTEAD NOTHING")
		_ = other.Close(context.Background())
		refused <- err
	}()
	r := agent.runner(w.Context(), a.ID)
	var wrote time.Time
	// A write begins within 15 s, and would be judged after Stall.
	for end := time.Now().Add(15*time.Second + 2*agent.Hang.Stall); time.Now().Before(end); time.Sleep(hang.Every) {
		if since := r.hangs.Writing(); !since.IsZero() && wrote.IsZero() {
			wrote = since
		}
		if h := r.hangs.Last(); h.Why != "" {
			t.Errorf("taken for hanging: %s", h.Why)
			break
		}
	}
	if wrote.IsZero() || len(refused) > 0 {
		t.Errorf("the small write began at %v, the lock is waited for: %v", wrote, len(refused) == 0)
	}
	if _, err := holder.Exec(context.Background(), "ROLLBACK"); err != nil {
		t.Error(err)
	}
	if err := <-refused; err == nil {
		t.Error("somebody made a rule of a catalog")
	}
	// The write goes on when it may.
	conn, err := dial.Admin(w.Context(), agent.Agent, a)
	w.Must(err)
	defer conn.Close(context.Background())
	w.Must(postgres.Stroke(w.Context(), conn))
}
