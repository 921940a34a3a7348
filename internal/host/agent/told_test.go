package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"howdah/internal/testkit/hosttest"
)

// Whoever runs as the member's user has its directory: what it puts there in the place of what the
// agent keeps or kept there leads the agent, which is root, nowhere else, and does not stop it.
func TestTheAgentFollowsNoLinksToWhatItKeeps(t *testing.T) {
	d, a := asRoot(t)
	told := d.Assignment("db-links", 1)
	m := NewMember(a, told.ID)
	m.Want = told
	for _, kind := range []string{"link", "hard link", "pipe"} {
		t.Run(kind, func(t *testing.T) {
			v := hosttest.NewVictim(t, a)
			v.Plant(told.ID, filepath.Join(m.Dir(), formerFile), kind)
			within(t, func() {
				_ = m.remember()
				_, _ = a.Remembered(told.ID)
				h := &holdings{agent: a, inspector: a.Kind.Inspector()}
				_, _ = h.copyOf(t.Context(), told.ID)
			})
			v.Unchanged()
		})
	}
}

// within fails the test where work waits for what does not come.
func within(t *testing.T, work func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		t.Fatal("the agent waits for it")
	}
}

// What a member was told last is the agent's: another file in the member's directory does
// not take its place, nor does one that somebody else wrote where a release before kept it.
func TestWhatAMemberWasToldIsTheAgents(t *testing.T) {
	d := newDorm(t)
	a := d.open()
	told := d.Assignment("db-told", 1)
	dir := a.MemberDir(told.ID)
	d.Must(a.Give(dir))
	text, err := json.Marshal(told)
	d.Must(err)
	former := filepath.Join(dir, formerFile)
	d.Must(a.UserOf(told.ID).ReplaceFile(former, text, 0o600))
	if _, err := a.Remembered(told.ID); a.users != nil && err == nil {
		t.Error("the user's own file counts")
	}
	d.Must(os.Remove(former))
	d.Must(os.WriteFile(former, text, 0o600))
	if got, err := a.Remembered(told.ID); err != nil || got.Generation != 1 {
		t.Errorf("of a release before: %+v, %v", got, err)
	}
	r := NewMember(a, told.ID)
	r.Want = told
	r.Want.Generation = 2
	d.Must(r.remember())
	d.Must(os.WriteFile(former, text, 0o600))
	if got, err := a.Remembered(told.ID); err != nil || got.Generation != 2 {
		t.Errorf("the agent's own: %+v, %v", got, err)
	}
	d.Must(r.forget())
	d.Must(r.forget())
	d.Must(os.Remove(former))
	if _, err := a.Remembered(told.ID); !os.IsNotExist(err) {
		t.Errorf("forgotten: %v", err)
	}
}
