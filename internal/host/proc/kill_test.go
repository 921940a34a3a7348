package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

// scenarios are what a member's processes may do to get away. The script plays Patroni. At least
// `running` processes are there when it is killed.
var scenarios = []struct {
	name    string
	script  string
	running int
}{
	{"a quiet one", `sleep 1000 & exec sleep 1001`, 2},
	{"ignores every signal it can", `trap "" TERM HUP INT QUIT USR1 USR2; while :; do sleep 1; done`, 2},
	{"stops itself", `sleep 1000 & kill -STOP $$`, 2},
	{"a session for each child", `setsid sleep 1000 & setsid sh -c 'setsid sleep 1001 & exec setsid sleep 1002' & exec sleep 1003`, 4},
	{"two forks, orphaned", `(setsid sh -c 'setsid sleep 1000 & exit' &) ; exec sleep 1001`, 2},
	// As with PostgreSQL: another session, no marker, another parent. Only its working directory
	// tells.
	{"in the data directory without environment", `(cd $DATA; env -i setsid sh -c 'sleep 1000 & sleep 1001 & exec sleep 1002' &); exec sleep 1003`, 4},
	{"an orphan whose Patroni died", `(cd $DATA; env -i setsid sh -c 'sleep 1000 & exec sleep 1001' &); sleep 0.2; exit 3`, 2},
	{"a descendant that hides", `(cd /; exec env -i setsid sh -c "sleep 1000 && : $DATA")& wait`, 2},
	{"forks without end", `for i in 1 2 3 4; do (while :; do (sleep 0.05; sleep 0.05) & sleep 0.002; done) & done; wait`, 4},
	// These are two processes that are never the same for more than some milliseconds. They write
	// when they change.
	{"is always another process", `echo hop; (sleep 0.005; exec sh $0) & exit`, 0},
	{"is always another process and session", `echo hop; setsid sh -c 'sleep 0.005; exec sh $0' $0 & exit`, 0},
}

func TestKillProvesDead(t *testing.T) {
	for _, k := range kinds() {
		for _, scenario := range scenarios {
			t.Run(k.name+"/"+scenario.name, func(t *testing.T) {
				w := newWorld(t, k)
				w.start(scenario.script)
				w.running(scenario.running)
				if scenario.running == 0 {
					w.writes(5)
				}
				proof := w.kill()
				w.writesNoMore()
				t.Logf("found %d, dead in %s: %s", proof.Found, proof.At.Sub(proof.Began).Round(10*time.Microsecond), proof.Evidence)
				if proof.Found == 0 {
					t.Error("the proof counts no process, where some ran")
				}
			})
		}
	}
}

func TestKillOfNothing(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			if proof := w.kill(); proof.Found != 0 {
				t.Errorf("found %d processes of a member that never started", proof.Found)
			}
			w.start("exec sleep 1000")
			w.running(1)
			if proof := w.kill(); proof.Found != 1 {
				t.Errorf("found %d processes where one ran", proof.Found)
			}
			if proof := w.kill(); proof.Found != 0 {
				t.Errorf("found %d processes of a dead member", proof.Found)
			}
		})
	}
}

// An ordinary user has no control groups and sees less of /proc; all must hold for it too.
func TestKillAsAnOrdinaryUser(t *testing.T) {
	testkit.NeedRoot(t)
	dir := sharedDir(t)
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "proc.test")
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, text, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience.For(2*time.Minute))
	defer cancel()
	command := exec.CommandContext(ctx, binary, "-test.v", "-test.run=^(TestKillProvesDead|TestKillOfNothing|TestAdopt|TestWatch|TestUsage)")
	command.Dir = dir
	command.Env = []string{"TMPDIR=" + dir, "HOME=" + dir, "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOWDAH_TEST_PATIENCE=" + os.Getenv("HOWDAH_TEST_PATIENCE")}
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if passed := strings.Count(string(out), "--- PASS: TestKillProvesDead/tree_as_an_ordinary_user/"); passed != len(scenarios) {
		t.Errorf("%d of %d scenarios passed\n%s", passed, len(scenarios), out)
	}
	t.Logf("%s", out)
}

// A process in uninterruptible sleep cannot be killed. So the answer is a refusal that names it,
// and a proof once it can be killed.
func TestKillRefusesWhatCannotDie(t *testing.T) {
	testkit.NeedRoot(t)
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			process := w.start("exec sleep 1000")
			w.running(1)
			thaw := freeze(t, w, process)
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			_, err := w.group.Kill(ctx)
			var refusal *SurvivorError
			if !errors.Is(err, ErrNotProved) || !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &refusal) {
				t.Fatalf("killing a frozen process: %v", err)
			}
			t.Log(err)
			if len(refusal.Survivors) != 1 || refusal.Survivors[0].Process != process || refusal.Survivors[0].State != "D" {
				t.Errorf("survivors %+v, want %s in state D", refusal.Survivors, process)
			}
			if err := w.group.Remove(); !errors.Is(err, ErrNotEmpty) {
				t.Errorf("removing a group with a process: %v", err)
			}
			thaw()
			w.kill()
		})
	}
}

// freeze makes a member's process uninterruptible. A process can be in only one freezer group. If
// that is the member's, the group above is frozen.
func freeze(t *testing.T, w *world, process Process) (thaw func()) {
	t.Helper()
	if w.host.containment != Freezer {
		return frozenElsewhere(t, process.PID)
	}
	return frozenAbove(t, w.host.layout.Freezer)
}

// A member whose CPU is limited to next to nothing must not take for ever to die.
func TestKillOfAThrottledMember(t *testing.T) {
	testkit.NeedRoot(t)
	w := newWorld(t, best)
	if w.host.Describe().CPU.Version == "none" {
		t.Skip("needs CPU limits: " + w.host.Describe().CPU.Reason)
	}
	process := w.start(`for i in 1 2 3 4 5 6 7 8 9 10; do sh -c "while :; do :; done; : $DATA" & done; wait`)
	w.running(11)
	if warnings, err := w.group.Limit(Limits{CPUs: 0.01}); err != nil || len(warnings) > 0 {
		t.Fatalf("%v, %v", warnings, err)
	}
	if err := w.group.MoveDatabase(process); err != nil {
		t.Fatal(err)
	}
	proof := w.kill()
	if took := proof.At.Sub(proof.Began); took > 2*time.Second {
		t.Errorf("took %s", took)
	} else {
		t.Logf("took %s", took)
	}
	if cpu, _, _ := w.applied(Device{}); cpu != "1000" || len(proof.Warnings) > 0 {
		t.Errorf("the limit is %s after the kill; warnings %v", cpu, proof.Warnings)
	}
}

// What runs on the member's data directory belongs to the member, whoever started it.
func TestKillFindsWhatWasStartedByHand(t *testing.T) {
	testkit.NeedRoot(t)
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			w.start("exec sleep 1000")
			w.running(1)
			byHand := exec.Command("sleep", "1000")
			byHand.Dir = w.data
			other := exec.Command("sleep", "1000")
			other.Dir = w.data
			other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			for _, command := range []*exec.Cmd{byHand, other} {
				if err := command.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
			}
			if outside, err := w.group.Outside(); err != nil || (len(outside) == 1) != (k.want != Tree) {
				t.Errorf("outside of the group: %v, %v", outside, err)
			}
			proof, err := w.group.Kill(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if proof.Found != 2 {
				t.Errorf("found %d, want Patroni and the one started by hand: %s", proof.Found, proof.Evidence)
			}
			if _, err := Find(byHand.Process.Pid); !errors.Is(err, ErrGone) {
				t.Errorf("the one started by hand: %v", err)
			}
			if _, err := Find(other.Process.Pid); err != nil {
				t.Errorf("another user's process in that directory: %v", err)
			}
			if k.want != Tree && !strings.Contains(proof.Evidence, "outside of it and killed: 1") {
				t.Errorf("evidence does not tell of it: %s", proof.Evidence)
			}
		})
	}
}

// Two members share a host and a user. To kill one leaves the other alone.
func TestKillLeavesOthersAlone(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			other, err := w.host.Group("orders-10")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_, err := other.Kill(context.Background())
				if err := errors.Join(err, other.Remove()); err != nil {
					t.Error(err)
				}
			})
			command := w.command("exec sleep 1000")
			command.DataDir = w.data + "-of-another"
			bystander, err := other.Start(context.Background(), command)
			if err != nil {
				t.Fatal(err)
			}
			w.start("exec sleep 1001")
			w.running(2)
			if _, err := w.group.Kill(context.Background()); err != nil {
				t.Fatal(err)
			}
			if !w.host.Alive(bystander) {
				t.Error("the other member's process is dead")
			}
		})
	}
}

// A record that cannot be read keeps nobody alive. A control group proves enough without it. A scan
// does not.
func TestKillWithARecordThatCannotBeRead(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			process := w.start("exec sleep 1000")
			path := w.host.recordPath("orders-1")
			if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
			w.group.noted = nil // as in the next life of ours
			proof, err := w.group.Kill(context.Background())
			if w.host.Alive(process) {
				t.Error("the member lives")
			}
			if k.want == Tree {
				if !errors.Is(err, ErrNotProved) || !strings.Contains(err.Error(), path) {
					t.Errorf("got %+v, %v", proof, err)
				}
				if err := os.WriteFile(path, nil, 0o600); err != nil { // as after a power cut
					t.Fatal(err)
				}
			} else if err != nil || len(proof.Warnings) != 1 || proof.Warnings[0].Resource != "record" {
				t.Errorf("got %+v, %v", proof, err)
			}
			w.kill()
		})
	}
}

func TestSurvivorErrorReads(t *testing.T) {
	err := &SurvivorError{Group: "orders-1", After: 10 * time.Second, Cause: context.DeadlineExceeded, Survivors: []Survivor{
		{Process: Process{PID: 42, Start: 7}, Name: "postgres", State: "D"}, {Process: Process{PID: 43, Start: 7}, Name: "sh", State: "R"},
	}}
	want := "kill orders-1: not proved dead after 10s: process 42 (postgres) in state D, uninterruptible: it waits for a device, " +
		"a network file system or a freezer; process 43 (sh) in state R: context deadline exceeded"
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	err.Survivors = nil
	if text := fmt.Sprint(err); !strings.Contains(text, "no survivor can be named") {
		t.Error(text)
	}
}
