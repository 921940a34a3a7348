package cut

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/failover/fence"
	"howdah/internal/host/agent"
	"howdah/internal/host/agent/agenttest"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// A member's user may put anything in the place of the files that a cut is made in: it leads the
// agent, which is root, nowhere else, and does not stop it.
func TestACutFollowsNobodysLinks(t *testing.T) {
	if os.Geteuid() != 0 {
		testkit.Missing(t, "users for members: run it as root")
	}
	site := hosttest.New(t, 0)
	a := agenttest.Open(site)
	m := agent.NewMember(a, "db-1.m1")
	s := &Standby{Member: m, DataDir: filepath.Join(m.Dir(), "data"), Admin: func(context.Context) (*pgx.Conn, error) { return nil, errors.New("no server") }}
	lost := hosttest.Suspect("127.0.0.1:1", "127.0.0.1:2")
	lost.Phase = fence.Cutting
	for _, name := range []string{"data", "data/" + AutoConfFile, "data/postgresql.conf", "data/" + standbySignal} {
		for _, kind := range []string{"link", "hard link", "pipe"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				v := hosttest.NewVictim(t, a)
				v.Plant(m.ID, filepath.Join(m.Dir(), name), kind)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_, _, _ = s.IsCut(), s.IsSealed(), s.mayReceiveFrom("127.0.0.1:1")
					_, _ = s.cutReceiver(t.Context(), false), s.cutReceiver(t.Context(), true)
					_ = s.cutAtRest([]fence.Case{lost})
				}()
				select {
				case <-ended:
				case <-time.After(60 * time.Second):
					t.Fatal("it waits for it")
				}
				v.Unchanged()
			})
		}
	}
}
