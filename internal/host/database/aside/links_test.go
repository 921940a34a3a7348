package aside

import (
	"path/filepath"
	"testing"
	"time"

	"howdah/internal/host/agent"
	"howdah/internal/host/agent/agenttest"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// A member's user may put anything in the place of data that are put aside, and of what says how
// large they are: it leads the agent, which is root, nowhere else, and does not stop it.
func TestWhatIsAsideFollowsNobodysLinks(t *testing.T) {
	testkit.NeedRoot(t)
	a := agenttest.Open(hosttest.New(t, 0))
	m := agent.NewMember(a, "db-1.m1")
	for _, name := range []string{"data", keptDir, keptSize} {
		for _, kind := range []string{"link", "hard link", "pipe"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				v := hosttest.NewVictim(t, a)
				v.Plant(m.ID, filepath.Join(m.Dir(), name), kind)
				if name != keptDir { // nobody asks for the size where nothing is put aside
					v.Must(m.User().MakeDir(filepath.Join(m.Dir(), keptDir)))
				}
				d := &Data{Member: m, Agent: a, DataDir: filepath.Join(m.Dir(), "data")}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_, _, _ = d.Kept(), d.kept(), d.lacksRoom()
					_ = d.throw(time.Now())
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
