package cut

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"howdah/internal/failover/fence"
	"howdah/internal/host/agent"
	"howdah/internal/testkit/hosttest"
)

// What may be started, by what the last look has found.
func TestMayStart(t *testing.T) {
	f, s := &Fences{}, standby(t, "db-1.m1")
	mine, others := hosttest.Suspect("10.0.0.1:5432", "10.0.0.1:8008"), hosttest.Suspect("10.0.0.2:5432", "10.0.0.2:8008")
	others.Leadership.Sync.Standbys = []string{"m3"}
	blunt := errors.New("blunt")
	own := map[*Standby]bool{s: true}
	cases := []struct {
		name  string
		known *admission
		want  bool
		why   string
	}{
		{"nobody was asked", nil, false, ""},
		{"nobody is lost", &admission{}, true, ""},
		{"the primary of others is lost", &admission{lost: []fence.Case{others}, err: blunt}, true, ""},
		{"it is cut off", &admission{lost: []fence.Case{others, mine}, tried: own}, true, ""},
		{"it could not be", &admission{lost: []fence.Case{mine}, tried: own, err: blunt}, false, "blunt"},
		{"it came after the look", &admission{lost: []fence.Case{mine}, tried: map[*Standby]bool{{}: true}}, false, ""},
	}
	for _, c := range cases {
		f.admission.Store(c.known)
		if got, why := f.Admits(s); got != c.want || (why != nil) != (c.why != "") || why != nil && why.Error() != c.why {
			t.Errorf("%s: %v, %v, want %v", c.name, got, why, c.want)
		}
	}
}

// A cut that was made in the kernel is made on disk, before the start, by an agent that may
// not change the kernel's rules.
func TestACutIsMadeOnDiskBeforeAStart(t *testing.T) {
	f, s := &Fences{Cutter: &Receiver{}}, standby(t, "db-1.m1")
	if err := os.MkdirAll(s.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	c := hosttest.Suspect("10.0.0.1:5432", "10.0.0.1:8008")
	may := func(phase fence.Phase, want bool, when string) {
		t.Helper()
		c.Phase = phase
		f.admission.Store(&admission{lost: []fence.Case{c}, tried: map[*Standby]bool{s: true}})
		if got, why := f.Admits(s); got != want {
			t.Errorf("%s, %s: want %v, %v", phase, when, want, why)
		}
	}
	may(fence.Cutting, false, "it has no data, and would copy them")
	may(fence.Revoked, true, "it has no data, and another one leads")
	file := filepath.Join(s.DataDir, AutoConfFile)
	const before = "work_mem = '4MB'\nprimary_conninfo = 'host=10.0.0.1 port=5432'"
	holds := func(text string, mode os.FileMode) {
		t.Helper()
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil || string(got) != text || info.Mode().Perm() != mode {
			t.Errorf("the file is %q, %v, %v", got, info.Mode(), err)
		}
	}
	if err := os.WriteFile(file, []byte(before), openMode); err != nil {
		t.Fatal(err)
	}
	may(fence.Revoked, true, "it follows nobody")
	holds(before, openMode)
	for range 2 { // the second time there is nothing to do
		may(fence.Cutting, true, "it was cut off in the kernel")
		holds(before+"\nprimary_conninfo = ''\n", sealedMode)
	}
}

// Giving in may start what looks after a member, so its context must not end with the case.
func TestGivingInOutlivesTheCase(t *testing.T) {
	var given context.Context
	f := &Fences{
		Agent: &agent.Agent{Config: agent.Config{Name: "zone-a"}}, Cutter: &Receiver{}, Standbys: func() []*Standby { return nil },
		GiveIn: func(ctx context.Context, _ fence.Case) { given = ctx },
		seen:   map[string]*watching{},
	}
	f.reports = newReports(f)
	c := hosttest.Suspect("10.0.0.1:5432", "10.0.0.1:8008")
	c.Host, c.Phase = "zone-a", fence.Revoked
	f.follow(t.Context(), c)
	if given == nil {
		t.Fatal("it does not give in")
	}
	f.forget(map[string]bool{})
	if err := given.Err(); err != nil {
		t.Errorf("after the case: %v", err)
	}
}
