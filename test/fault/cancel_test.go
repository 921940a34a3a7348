package fault

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/testkit/patience"
)

// A client cancels its commit while the commit waits for a standby that is cut off, and the primary
// is lost. What the client was told of is there. What it was not told of may be gone. PostgreSQL by
// itself would answer the cancelled commit with success.
func TestACancelledCommitIsNotAcknowledged(t *testing.T) {
	s := begin(t, nil)
	id := s.given("orders", true)
	w := s.writing("orders")
	w.stop()
	ctx, cancel := context.WithTimeout(s.Context(), patience.For(90*time.Second))
	defer cancel()
	watcher, writer := s.connect(ctx), s.connect(ctx)
	_, err := watcher.Exec(ctx, "CREATE TABLE cancelled (n int)")
	s.must(err, "make a table")

	old, standby := s.leader(id), s.standby(id)
	s.must(old.FreezePatroni(), "keep the primary's Patroni from giving the standby up")
	s.must(standby.Freeze(), "freeze the standby's host")
	defer standby.Thaw()
	pid := writer.PgConn().PID()
	answer := make(chan error, 1)
	go func() {
		_, err := writer.Exec(ctx, "INSERT INTO cancelled VALUES (1)")
		answer <- err
	}()
	waits := func() (yes bool, err error) {
		err = watcher.QueryRow(ctx, "SELECT wait_event IS NOT DISTINCT FROM 'SyncRep' FROM pg_stat_activity WHERE pid = $1", pid).Scan(&yes)
		return yes, err
	}
	s.eventually(10*time.Second, func() error {
		yes, err := waits()
		if err == nil && !yes {
			err = fmt.Errorf("the commit does not wait")
		}
		return err
	})
	_, err = watcher.Exec(ctx, "SELECT pg_cancel_backend($1)", pid)
	s.must(err, "cancel the commit")
	s.must(writer.PgConn().CancelRequest(ctx), "cancel it as a driver does")
	// The cancel request reaches the server some time after it was sent. So this waits for what it
	// would do before the primary goes.
	for range 5 {
		var rows int
		s.must(watcher.QueryRow(ctx, "SELECT count(*) FROM cancelled").Scan(&rows), "look for the row")
		if yes, err := waits(); err != nil || !yes || rows > 0 {
			t.Errorf("after the cancel: waits %v (%v), %d rows are seen", yes, err, rows)
			break
		}
	}
	s.must(old.Lose(), "lose the primary's host")
	s.must(standby.Thaw(), "the standby's host goes on")

	told := <-answer
	s.eventually(30*time.Second, func() error {
		now, err := s.rig.Leader(s.Context(), id)
		if err == nil && now.Name == old.Name {
			err = fmt.Errorf("%s still leads", old.Name)
		}
		return err
	})
	var rows string
	s.eventually(30*time.Second, func() (err error) {
		rows, err = s.query("orders", "SELECT count(*)::text FROM cancelled")
		return err
	})
	if told == nil {
		t.Errorf("the cancelled commit was acknowledged; the new primary has %s rows of it", rows)
	}
	s.must(s.rig.StartPart("agent-"+old.ZoneLetter()), "the old primary's host returns")
	w.nothingLost()
}

// connect opens a connection through the endpoint.
func (s *story) connect(ctx context.Context) *pgx.Conn {
	s.Helper()
	config, err := s.rig.Config(ctx, "orders")
	s.must(err, "find the endpoint")
	conn, err := pgx.ConnectConfig(ctx, config)
	s.must(err, "connect")
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		conn.Close(ctx)
	})
	return conn
}
