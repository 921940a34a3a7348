package fault

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/admin"
	"howdah/internal/host/proc"
	"howdah/internal/host/proc/table"
	"howdah/internal/lab/experiment"
	"howdah/internal/testkit"
)

// victim starts a process that is gone when the test ends.
func victim(t *testing.T) proc.Process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	p, err := proc.Find(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// recorded says whether a directory has a record.
func recorded(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, recordName))
	return err == nil
}

// What stands still goes on after it is undone. Another process of the same number is never touched.
func TestProcessesStandStill(t *testing.T) {
	t.Parallel()
	g := &Ground{Dir: t.TempDir()}
	p := victim(t)
	made, err := g.stop(t.Context(), standstill{kind: "freeze", what: "process", list: func() ([]proc.Process, error) { return []proc.Process{p}, nil }})
	if err != nil || made.Proof != "1 process stand still" || !recorded(g.Dir) {
		t.Fatalf("%+v, %v", made, err)
	}
	if proof, err := made.Undo(); err != nil || proof != "freeze is undone" || recorded(g.Dir) {
		t.Errorf("%q, %v", proof, err)
	}
	if still, there := standing([]proc.Process{p}); still != 0 || there != 1 {
		t.Errorf("%d of %d stand still", still, there)
	}
	if _, err := made.Undo(); err != nil {
		t.Errorf("once more: %v", err)
	}

	other := p
	other.Start++
	made, err = g.stop(t.Context(), standstill{kind: "freeze", what: "process", list: func() ([]proc.Process, error) { return []proc.Process{other}, nil }})
	if !errors.Is(err, ErrNotProved) {
		t.Errorf("of a process that is gone: %v", err)
	}
	if still, _ := standing([]proc.Process{p}); still != 0 {
		t.Error("another process of its number was stopped")
	}
	if _, err := made.Undo(); err != nil {
		t.Errorf("undo what stopped nothing: %v", err)
	}
}

// Of processes that start each other, the first one stands for all: it lasts.
func TestTheFirstOfSomeProcesses(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "sleep 1000 & echo $!; wait")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(child, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	var all []proc.Process
	for _, pid := range []int{child, cmd.Process.Pid} {
		p, err := proc.Find(pid)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if found := first(all); !slices.Equal(found, []int{cmd.Process.Pid}) {
		t.Errorf("of %v: %v", all, found)
	}
}

// A lab that was killed leaves a record, by which the next one undoes the fault.
func TestWhatAKilledLabLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := &Ground{Dir: dir}
	frozen, ending := victim(t), victim(t)
	limit, fill := filepath.Join(t.TempDir(), "limit"), Placed{Dir: t.TempDir(), Name: "fill"}
	for _, path := range []string{limit, fill.String()} {
		if err := os.WriteFile(path, []byte("8:0 4"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := Record{Kind: "all", Frozen: []proc.Process{frozen}, Ending: []proc.Process{ending}, Placed: &fill, Limits: []Limit{{Path: limit, Before: "8:0 0"}, {Path: limit + ".gone/x", Before: ""}}}
	if _, err := g.begin(r); err != nil {
		t.Fatal(err)
	}
	if err := send(frozen, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Heal(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(limit)
	if err != nil || string(text) != "8:0 0" {
		t.Errorf("%s, %v", text, err)
	}
	if err := fill.gone(); err != nil || recorded(dir) {
		t.Errorf("the file: %v; the record is there: %v", err, recorded(dir))
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		still, _ := standing([]proc.Process{frozen})
		_, there := standing([]proc.Process{ending})
		if still > 0 || there > 0 {
			return errStands
		}
		return nil
	})
}

// After a start of the machine the numbers of processes mean others, and limits and the clock are its own.
// Where only the namespace of processes is another one, limits are put back.
func TestARecordOfAnotherEra(t *testing.T) {
	t.Parallel()
	era, err := table.System.Era()
	if err != nil {
		t.Fatal(err)
	}
	boot, _, _ := strings.Cut(era, " ")
	for then, want := range map[string]string{"another": "8:0 4", "another " + era: "8:0 4", boot + " another": "8:0 0"} {
		dir, p, limit := t.TempDir(), victim(t), filepath.Join(t.TempDir(), "limit")
		if err := os.WriteFile(limit, []byte("8:0 4"), 0o600); err != nil {
			t.Fatal(err)
		}
		r := Record{Kind: "lost-host", Era: then, Ending: []proc.Process{p}, Limits: []Limit{{Path: limit, Before: "8:0 0"}}}
		if then != boot+" another" {
			r.Clock = new(time.Hour)
		}
		if err := errors.Join(r.write(dir), Heal(t.Context(), dir)); err != nil {
			t.Fatal(err)
		}
		if _, err := table.System.Live(p); err != nil || recorded(dir) {
			t.Errorf("%s: %v; the record is there: %v", then, err, recorded(dir))
		}
		if now, err := os.ReadFile(limit); err != nil || string(now) != want {
			t.Errorf("%s: the limit is %s, %v", then, now, err)
		}
	}
}

// Undoing it twice, or after somebody else has set the clock back, leaves it as it is.
func TestAClockThatIsRightIsLeftAlone(t *testing.T) {
	t.Parallel()
	offset, err := clocks()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := (Record{Kind: "clock", Clock: &offset}).undo(t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	if now, err := clocks(); err != nil || (now-offset).Abs() > clockTolerance {
		t.Errorf("the clock moved by %s, %v", now-offset, err)
	}
}

// A limit is told by whole fields: a disk has a 4 in its number, and 400 is not 4.
func TestLimitsAreToldByWholeFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line, wanted string
		holds        bool
	}{
		{"254:0 4", "254:0 4", true},
		{"254:0 400", "254:0 4", false},
		{"254:0 40", "254:0 0", false},
		{"", "254:0 4", false},
		{"254:0 rbps=max wbps=max riops=4 wiops=4", "254:0 riops=4 wiops=4", true},
		{"254:0 rbps=max wbps=max riops=40 wiops=4", "254:0 riops=4 wiops=4", false},
	} {
		if holds(c.line, c.wanted) != c.holds {
			t.Errorf("%q holds %q: %v", c.line, c.wanted, !c.holds)
		}
	}
	if !unlimited("8:0 0") || !unlimited("8:0 rbps=max riops=max") || unlimited("8:0 4") || unlimited("") {
		t.Error("what is unlimited is told wrongly")
	}
}

// A record that is there already is undone before another fault is made.
func TestAFaultThatWasLeftIsUndoneFirst(t *testing.T) {
	t.Parallel()
	dir, left := t.TempDir(), Placed{Dir: t.TempDir(), Name: "left"}
	era, err := table.System.Era()
	if err == nil {
		err = left.fill(1)
	}
	if err == nil {
		err = (Record{Kind: "full-disk", Era: era, Placed: &left}).write(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	made, err := (&Ground{Dir: dir}).begin(Record{Kind: "freeze"})
	if err != nil {
		t.Fatal(err)
	}
	if err := left.gone(); err != nil {
		t.Errorf("what the first one left: %v", err)
	}
	if _, err := made.Undo(); err != nil {
		t.Fatal(err)
	}
	// A directory that takes no record gets no fault.
	if made, err := (&Ground{Dir: filepath.Join(dir, "none")}).begin(Record{Kind: "freeze"}); err == nil || made != nil {
		t.Errorf("%v, %v", made, err)
	}
}

func TestFaultsThatCannotBe(t *testing.T) {
	t.Parallel()
	g := &Ground{}
	for kind, words := range map[string]string{"partition": "not on this machine", "slow-network": "not on this machine", "clock": "--allow-clock", "flood": "flood"} {
		if err := g.Check(kind); !errors.Is(err, ErrImpossible) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", kind, err)
		}
		if made, err := g.Make(t.Context(), kind); !errors.Is(err, ErrImpossible) || made != nil {
			t.Errorf("%s: %v, %v", kind, made, err)
		}
	}
	g.Clock = true
	if err := g.Check("clock"); err != nil {
		t.Error(err)
	}
	if _, err := (*Made)(nil).Undo(); err != nil {
		t.Error(err)
	}
	// The experiments know the same faults.
	for _, kind := range experiment.FaultKinds {
		if err := g.Check(kind); err != nil && kind != "partition" && kind != "slow-network" {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

const (
	mountsV1 = "31 24 0:27 / /sys/fs/cgroup/blkio rw,nosuid shared:9 - cgroup cgroup rw,blkio\n" +
		"32 24 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	mountsV2 = "32 24 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	below    = "32 24 0:28 /docker/7 /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
)

func TestGroupsThatLimitDisks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		groups, mounts, dir string
		version             int
	}{
		{"9:name=systemd:/\n7:blkio:/howdah-1-zone-a/m\n0::/howdah-1-zone-a/m/db\n", mountsV1, "/sys/fs/cgroup/blkio/howdah-1-zone-a/m", 1},
		{"0::/howdah-1-zone-a/m/db\n", mountsV2, "/sys/fs/cgroup/howdah-1-zone-a/m/db", 2},
		{"0::/docker/7/howdah-1-zone-a/m/db\n", below, "/sys/fs/cgroup/howdah-1-zone-a/m/db", 2},
		{"3:cpu,cpuacct:/x\n", mountsV1, "", 0},
		{"nonsense", "nonsense", "", 0},
	} {
		if dir, version := chooseGroup(c.groups, c.mounts); dir != c.dir || version != c.version {
			t.Errorf("%q: %s, %d", c.groups, dir, version)
		}
	}
	// A process that is none of the home's has no limits for us.
	if _, _, err := blockGroup("12345678", os.Getpid()); !errors.Is(err, ErrImpossible) {
		t.Error(err)
	}
}

func TestDatabasesThatStop(t *testing.T) {
	t.Parallel()
	primary := admin.Member{Name: "m1", Host: "zone-a", Role: admin.RolePrimary, Ready: true}
	standby := func(host, sync string, ready bool) admin.Member {
		return admin.Member{Name: "m2", Host: host, Role: admin.RoleStandby, Sync: sync, Ready: ready}
	}
	for name, c := range map[string]struct {
		members []admin.Member
		status  string
		stops   bool
	}{
		"its primary alone":         {members: []admin.Member{primary}, stops: true},
		"a stopped one":             {members: []admin.Member{primary}, status: "stopped"},
		"elsewhere":                 {members: []admin.Member{{Host: "zone-b", Role: admin.RolePrimary}}},
		"a standby confirms":        {members: []admin.Member{primary, standby("zone-b", admin.SyncSync, true)}},
		"a standby is not ready":    {members: []admin.Member{primary, standby("zone-b", admin.SyncSync, false)}, stops: true},
		"a standby is behind":       {members: []admin.Member{primary, standby("zone-b", admin.SyncAsync, true)}, stops: true},
		"a standby on the same":     {members: []admin.Member{primary, standby("zone-a", admin.SyncSync, true)}, stops: true},
		"its standby is lost alone": {members: []admin.Member{{Host: "zone-b", Role: admin.RolePrimary}, standby("zone-a", admin.SyncSync, true)}},
	} {
		if got := stops(admin.Database{Members: c.members, Status: c.status}, "zone-a"); got != c.stops {
			t.Errorf("%s: %v", name, got)
		}
	}
}
