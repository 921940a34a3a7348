package database

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"howdah/internal/engine/patroni/program"
	"howdah/internal/host/database/dial"
	"howdah/internal/identity/certs"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// The WAL sender to a standby ends when its host is lost, and no other one.
func TestWALSendersToALostHostEnd(t *testing.T) {
	t.Parallel()
	if _, err := program.Find(); err != nil {
		testkit.Missing(t, err.Error())
	}
	w := newWorld(t, "")
	agent, _ := w.run(func(a *Host) { a.spares.Keep = 1 })
	a := w.Assignment("db-1", 1)
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if !r.Ready || r.InRecovery {
			return errors.New("no primary yet")
		}
		return nil
	})
	w.Put(state.Layout("db-1"), map[string]any{"members": []map[string]string{
		{"name": "m1", "host": hosttest.Name}, {"name": "m2", "host": "lost"}, {"name": "m3", "host": "there"},
	}})
	lost, there := w.follows(agent, a, patroni.OwnName("db-1", "m2")), w.follows(agent, a, patroni.OwnName("db-1", "m3"))
	w.Put(state.Live("there"), liveness{Alive: true})
	w.Put(state.Live("lost"), liveness{Alive: false})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx := context.Background(); !lost.IsClosed(); {
			_, _ = lost.ReceiveMessage(ctx) // until it fails
		}
	}()
	select {
	case <-ended:
	case <-time.After(hosttest.Soon):
		t.Fatal("the WAL sender to the lost host is still there")
	}
	if _, err := there.Exec(t.Context(), "IDENTIFY_SYSTEM").ReadAll(); err != nil {
		t.Errorf("the other one: %v", err)
	}
}

// follows connects as the WAL receiver of a standby does.
func (w *world) follows(agent *Host, a member.Assignment, standby string) *pgconn.PgConn {
	w.Helper()
	pair, err := certs.Load(filepath.Join(agent.MemberDir(a.ID), patroni.CertDir))
	w.Must(err)
	tls, err := pair.ClientTLS()
	w.Must(err)
	config, err := dial.Config(a.Address, a.Port, "rdsrepladmin", tls)
	w.Must(err)
	config.RuntimeParams = map[string]string{"replication": "true", "application_name": standby}
	config.Database = ""
	var conn *pgconn.PgConn
	testkit.Eventually(w.T, hosttest.Soon, func() (err error) {
		conn, err = pgconn.ConnectConfig(w.Context(), &config.Config)
		return err
	})
	w.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
