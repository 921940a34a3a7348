package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/backup"
	"howdah/internal/host/job"
	model "howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/system/owner"
	"howdah/internal/testkit"
	wait "howdah/internal/testkit/patience"
)

// begins begins a backup of a primary, which waits for WAL that is never archived. ended gets what came
// of it. stop ends the agent.
func (d *depot) begins(resume bool) (ended chan error, stop func()) {
	d.Helper()
	h := d.host()
	h.Place = func(string) (backup.Place, error) { return d.place, nil }
	h.User = func(string) *owner.User { return d.user }
	h.Backed = func(string) {}
	args, err := json.Marshal(model.BackupJob{Database: resource, Member: "m1", Repository: "main", Operation: "op-life", Full: true})
	d.must(err)
	ctx, stop := context.WithCancel(context.Background())
	ended = make(chan error, 1)
	go func() {
		_, _, err := job.Try(ctx, job.Kind{Name: model.JobBackup, Run: h.backUp, Adopts: true},
			member.Job{Name: "op-life/1", Host: "zone-a", Kind: model.JobBackup, Args: args}, job.Trial{Dir: d.jobs, Procs: d.procs, Resume: resume, Log: h.Log})
		ended <- err
	}()
	return ended, stop
}

// waitsForWAL waits until the engine has begun a backup, and waits for WAL. It asks for tablespaces just
// before that.
func (d *depot) waitsForWAL(ended chan error) {
	d.Helper()
	testkit.Eventually(d, time.Minute, func() error {
		if len(ended) > 0 {
			d.Fatalf("it ended: %v", <-ended)
		}
		conn, err := pgx.ConnectConfig(d.Context(), d.server.Config())
		if err != nil {
			return err
		}
		defer conn.Close(d.Context())
		var said string
		err = conn.QueryRow(d.Context(), "SELECT coalesce(string_agg(query, ' '), '') FROM pg_stat_activity WHERE application_name LIKE 'pgBackRest%'").Scan(&said)
		if err == nil && !strings.Contains(said, "pg_tablespace") {
			err = errors.New("it does not wait yet")
		}
		return err
	})
}

// TestABackupEndsWithItsServer at once, and does not wait for what comes no more. It also ends if the
// server was started again while no agent ran.
func TestABackupEndsWithItsServer(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.server.Exec("ALTER SYSTEM SET archive_command = 'false pgbackrest'")
	d.server.Exec("SELECT pg_reload_conf()")
	fails := func(ended chan error, what string) {
		t.Helper()
		select {
		case err := <-ended:
			if !errors.Is(err, errRestarted) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(wait.For(20 * time.Second)):
			t.Fatalf("%s: it goes on", what)
		}
	}

	ended, _ := d.begins(false)
	d.waitsForWAL(ended)
	d.server.Kill()
	fails(ended, "the server was killed")

	d.server.Up()
	ended, stop := d.begins(false)
	d.waitsForWAL(ended)
	stop()
	<-ended
	d.server.Kill()
	d.server.Up()
	ended, _ = d.begins(true)
	fails(ended, "the server was started again while no agent ran")
	if left, err := d.procs.Groups(); err != nil || len(left) > 0 {
		t.Errorf("it leaves %q: %v", left, err)
	}
}
