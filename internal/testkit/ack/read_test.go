package ack

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

// reading makes a reader run beside a load.
func reading(t *testing.T, l *Load) (r *Reader, end func()) {
	t.Helper()
	r = &Reader{Load: l, Pause: time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { r.Run(ctx) })
	end = func() { cancel(); done.Wait() }
	t.Cleanup(end)
	return r, end
}

func TestAReaderFindsNothingWhereNothingIsWrong(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	l := &Load{Config: server.Config(), Table: "acked", Writers: 3, Pause: time.Millisecond}
	endLoad := begin(t, l)
	r, end := reading(t, l)
	testkit.Eventually(t, 20*time.Second, enough(l, 200, time.Time{}))
	end()
	endLoad()
	reads, stale := r.Found()
	if reads < 2 || len(stale) > 0 {
		t.Errorf("%d reads, stale: %v", reads, stale)
	}
	if vanished, err := r.Vanished(t.Context(), l.Config); err != nil || len(vanished) > 0 {
		t.Errorf("vanished: %v, %v", vanished, err)
	}
}

// Somebody removes rows. The next read misses those that were acknowledged, and the check at the
// end misses those that were only read.
func TestAReaderFindsWhatIsGone(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	l := &Load{Config: server.Config(), Table: "acked", Writers: 1, Pause: time.Millisecond}
	endLoad := begin(t, l)
	testkit.Eventually(t, 20*time.Second, enough(l, 20, time.Time{}))
	endLoad()
	r, end := reading(t, l)
	conn, err := pgx.ConnectConfig(t.Context(), server.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	do := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	do("INSERT INTO acked VALUES (0, 1000000)") // nobody was told of it
	reads, _ := r.Found()
	testkit.Eventually(t, 20*time.Second, func() error {
		if now, _ := r.Found(); now < reads+2 {
			return errors.New("it has not read again")
		}
		return nil
	})
	last := l.Acks()[len(l.Acks())-1]
	do("DELETE FROM acked WHERE seq >= 1000000")
	if _, err := conn.Exec(t.Context(), "DELETE FROM acked WHERE seq = $1", last.Seq); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		if _, stale := r.Found(); len(stale) == 0 || stale[0].Row.Seq != last.Seq {
			return errors.New("the row that is gone is not missed")
		}
		return nil
	})
	end()
	vanished, err := r.Vanished(t.Context(), l.Config)
	if err != nil || len(vanished) != 1 || vanished[0].Seq != 1000000 {
		t.Errorf("vanished: %v, %v", vanished, err)
	}
}

// Later sessions go to where the load was turned.
func TestALoadIsTurned(t *testing.T) {
	one, other := pgtest.Start(t, pgtest.Options{}), pgtest.Start(t, pgtest.Options{})
	l := &Load{Config: other.Config(), Table: "acked", Writers: 1}
	if err := l.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.Config = one.Config()
	begin(t, l)
	testkit.Eventually(t, 20*time.Second, enough(l, 1, time.Time{}))
	l.Turn(other.Config())
	conn, err := pgx.ConnectConfig(t.Context(), one.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		missing, err := Missing(t.Context(), other.Config(), "acked", l.Acks()[len(l.Acks())-1:])
		if err == nil && len(missing) > 0 {
			err = errors.New("it writes where it did before")
		}
		return err
	})
}
