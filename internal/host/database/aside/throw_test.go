package aside

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"howdah/internal/host/agent"
	"howdah/internal/host/agent/agenttest"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
	"howdah/internal/testkit/loopdisk"
)

// What was put aside goes out of the member's subvolume when it is thrown away.
func TestWhatWasPutAsideIsThrownOut(t *testing.T) {
	testkit.NeedRoot(t)
	disk := loopdisk.NewBtrfs(t, "2048")
	w := hosttest.New(t, 0)
	w.Dir = filepath.Join(disk.Dir, "host")
	w.Must(os.Mkdir(w.Dir, 0o755))
	a := agenttest.Open(w)
	id := "db-1.m1"
	w.Must(a.MakeMemberDir(id))
	d := &Data{Member: agent.NewMember(a, id), Agent: a}
	w.Must(a.UserOf(id).MakeDir(filepath.Join(a.MemberDir(id), keptDir)))
	w.Must(a.UserOf(id).ReplaceFile(filepath.Join(a.MemberDir(id), keptSize), []byte("1"), 0o600))
	w.Must(d.throw(time.Now()))
	w.Must(a.EmptyTrash(t.Context()))
	if left, err := filepath.Glob(filepath.Join(a.MemberDir(id), "*")); err != nil || len(left) > 0 {
		t.Errorf("of what was put aside %v is left: %v", left, err)
	}
}
