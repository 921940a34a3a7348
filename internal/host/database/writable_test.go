package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"howdah/internal/state/etcd"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// fill writes until etcd takes no more.
func (w *world) fill() {
	w.Helper()
	value := strings.Repeat("x", 256<<10)
	for range 1000 {
		_, err := w.Store.Client.Put(w.Context(), "/filler", value)
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return
		}
		w.Must(err)
	}
	w.Fatal("etcd was never full")
}

func (w *world) mend() {
	w.Helper()
	k := etcd.Keeper{Member: w.Home.Member, Log: slog.New(slog.DiscardHandler)}
	_, err := k.Mend(w.Context())
	w.Must(err)
}

// Nothing is killed for a key that cannot be taken away: while etcd takes no writes the
// agent fences nobody, and a new Patroni is started beside a PostgreSQL that serves. Once
// it does again, a primary that is down is replaced.
func TestNobodyIsFencedWhileEtcdIsFull(t *testing.T) {
	t.Parallel()
	for _, died := range []string{"PostgreSQL", "Patroni"} {
		t.Run(died, func(t *testing.T) {
			w := newSmallWorld(t, serves, 16<<20)
			w.run(nil)
			a := w.startPrimary()
			w.Leads("db-1", "m1", "m2")
			serving := w.Lines(a.ID, "data/postmaster.pid")[0]
			w.fill()
			w.kill(a.ID, map[string]string{"PostgreSQL": "data/postmaster.pid", "Patroni": "starts"}[died])
			if died == "Patroni" {
				w.restarted(a.ID, 2)
				w.holds(2*time.Second, func() error {
					if now := w.Lines(a.ID, "data/postmaster.pid")[0]; now != serving {
						return errors.New("the PostgreSQL that served was killed")
					}
					return nil
				})
				w.mend()
				return
			}
			w.holds(3*time.Second, func() error {
				if n := len(w.Lines(a.ID, "starts")); n != 1 {
					return fmt.Errorf("Patroni was killed: %d starts", n)
				}
				return nil
			})
			w.mend()
			testkit.Eventually(t, hosttest.Soon, func() error {
				if leader := w.leader("db-1"); leader != "" {
					return fmt.Errorf("%s still leads", leader)
				}
				if len(w.incidents("db-1")) != 1 {
					return errors.New("no incident")
				}
				return nil
			})
		})
	}
}

// One that hangs is left alone, too, until its key can be taken away.
func TestAPrimaryThatHangsIsLeftWhileEtcdIsFull(t *testing.T) {
	t.Parallel()
	w := newSmallWorld(t, serves, 16<<20)
	agent, _ := w.run(nil)
	a := w.startPrimary()
	w.Leads("db-1", "m1", "m2")
	w.fill()
	if p := w.hang(agent, a, true); !agent.Procs.Alive(p) {
		t.Error("it was killed")
	}
	w.mend()
	if p := w.hang(agent, a, true); agent.Procs.Alive(p) || w.leader("db-1") != "" {
		t.Errorf("%q leads, alive %v", w.leader("db-1"), agent.Procs.Alive(p))
	}
}

// holds looks for a while that a check goes on to hold.
func (w *world) holds(within time.Duration, check func() error) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), within)
	defer cancel()
	for ticker := time.NewTicker(50 * time.Millisecond); ; {
		if err := check(); err != nil {
			w.Fatal(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
