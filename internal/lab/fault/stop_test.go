package fault

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"howdah/internal/host/proc"
	"howdah/internal/host/proc/table"
	"howdah/internal/identity/home"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

// A member may start processes while it is being stopped. The record has all of them before they stand
// still.
func TestWhatIsStartedMeanwhileIsStoppedToo(t *testing.T) {
	t.Parallel()
	all := []proc.Process{victim(t), victim(t), victim(t)}
	g := &Ground{Dir: t.TempDir()}
	calls := 0
	made, err := g.stop(t.Context(), standstill{kind: "freeze", what: "processes", list: func() ([]proc.Process, error) {
		calls++
		return slices.Clone(all[:min(calls, len(all))]), nil
	}})
	if err != nil || made.Proof != "3 processes stand still" || calls != 4 {
		t.Fatalf("%+v after %d looks, %v", made, calls, err)
	}
	if still, _ := standing(all); still != 3 {
		t.Errorf("%d stand still", still)
	}
	// The lab is killed: the record has them all.
	if err := Heal(t.Context(), g.Dir); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, proofWithin, func() error {
		if still, there := standing(all); still > 0 || there != 3 {
			return errStands
		}
		return nil
	})
}

// What never ends is told, and is undone all the same.
func TestWhatStartsOthersForEver(t *testing.T) {
	t.Parallel()
	var all []proc.Process
	made, err := (&Ground{Dir: t.TempDir()}).stop(t.Context(), standstill{kind: "freeze", what: "processes", list: func() ([]proc.Process, error) {
		all = append(all, victim(t))
		return slices.Clone(all), nil
	}})
	if !errors.Is(err, ErrNotProved) || !errors.Is(err, errMore) {
		t.Errorf("%v", err)
	}
	if _, err := made.Undo(); err != nil {
		t.Error(err)
	}
}

// Of a host that is lost nothing lives, also what was started while others were killed.
func TestWhatIsStartedMeanwhileIsKilledToo(t *testing.T) {
	t.Parallel()
	all := []proc.Process{victim(t), victim(t), victim(t)}
	calls := 0
	dead, err := killAll(t.Context(), func() ([]proc.Process, error) {
		calls++
		return slices.DeleteFunc(slices.Clone(all[:min(calls, len(all))]), func(p proc.Process) bool {
			_, err := table.System.Live(p)
			return err != nil
		}), nil
	})
	if _, there := standing(all); err != nil || dead != 3 || there != 0 {
		t.Errorf("%d were killed, %d live, %v", dead, there, err)
	}
}

// The holder of a lock is who has the file open, and not whose number it has.
func TestTheHolderOfALock(t *testing.T) {
	t.Parallel()
	lock := filepath.Join(t.TempDir(), "agent.lock")
	if _, err := holderOf(lock); !errors.Is(err, errHolder) {
		t.Errorf("nobody: %v", err)
	}
	held, err := home.LockFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	own, err := holderOf(lock)
	if err != nil || own.PID != os.Getpid() {
		t.Errorf("ourselves: %v, %v", own, err)
	}
	if err := startedAnew(lock, []proc.Process{own}); !errors.Is(err, errOld) {
		t.Errorf("the same one: %v", err)
	}
	other := victim(t)
	if err := startedAnew(lock, []proc.Process{other}); err != nil {
		t.Errorf("another one than before: %v", err)
	}
	// A number that is left of one from before may be anybody's by now.
	if err := os.WriteFile(lock, []byte(strconv.Itoa(other.PID)), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := holderOf(lock); !errors.Is(err, errHolder) {
		t.Errorf("%v was taken for the holder, %v", p, err)
	}
}

// Only PostgreSQL's program is taken for PostgreSQL, also after it was replaced by a newer one.
func TestWhetherAProcessRunsPostgreSQL(t *testing.T) {
	t.Parallel()
	if err := runsPostgres(victim(t).PID); !errors.Is(err, errPostgres) || !strings.Contains(err.Error(), "sleep") {
		t.Errorf("sleep: %v", err)
	}
	s := pgtest.Start(t, pgtest.Options{})
	text, err := os.ReadFile(filepath.Join(s.DataDir(), "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err == nil {
		err = runsPostgres(pid)
	}
	if err != nil {
		t.Errorf("a server: %v", err)
	}
	program := filepath.Join(t.TempDir(), "postgres")
	sleep, err := exec.LookPath("sleep")
	if err == nil {
		var body []byte
		if body, err = os.ReadFile(sleep); err == nil {
			err = os.WriteFile(program, body, 0o700) //nolint:gosec // it is to be run
		}
	}
	cmd := exec.CommandContext(t.Context(), program, "1000")
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGKILL); _ = cmd.Wait() })
	if err := errors.Join(os.Remove(program), runsPostgres(cmd.Process.Pid)); err != nil {
		t.Errorf("one that was replaced: %v", err)
	}
}
