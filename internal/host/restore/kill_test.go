package restore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/postgres"
	"howdah/internal/testkit"
	"howdah/internal/testkit/depth"
)

// steps are the places where a restore may be killed.
var steps = []string{"copying", "copied", "scrubbed", "timeline chosen", "replaying", "open", "stopping", "stopped", "plain", "renewed", "renamed"}

// killable is a source with a history that takes a moment to replay.
func killable(t *testing.T) (s source, from backup.Restore, rows string) {
	t.Helper()
	return killableWith(t, 30000, 200)
}

// killableWith has so many rows of so many bytes to replay.
func killableWith(t *testing.T, many, bytes int) (s source, from backup.Restore, rows string) {
	t.Helper()
	s = newSource(t)
	s.Keep("a")
	s.Backup("one")
	s.Exec(fmt.Sprintf("CREATE TABLE public.much AS SELECT i, repeat('x', %d) FROM generate_series(1, %d) i", bytes, many))
	b := s.Keep("b")
	s.Keep("c")
	s.Archive()
	return s, backup.Restore{Label: "one", Target: backup.Target{Until: b.At}}, "a b"
}

// TestKilledAtEachStep: whoever restores is killed, and what it started runs on. The next one goes on,
// with the same result. Nothing is there before it is whole.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	s, from, rows := killable(t)
	for _, step := range depth.Some(t, 3, steps) {
		t.Run(step, func(t *testing.T) {
			r := s.request(t, from)
			_, err := restore(t.Context(), r, func(at string) error {
				if at == step {
					return fmt.Errorf("at %s: %w", at, errKilled)
				}
				return nil
			})
			if !errors.Is(err, errKilled) {
				t.Fatalf("it was not killed: %v", err)
			}
			if _, err := os.Stat(DataDir(r.Dir)); (err == nil) != (step == "renamed") {
				t.Errorf("data are there: %v", err)
			}
			s.goesOn(t, r, rows)
		})
	}
	t.Run("at all of them", func(t *testing.T) {
		r := s.request(t, from)
		died := map[string]bool{}
		for range 2 * len(steps) {
			_, err := restore(t.Context(), r, func(at string) error {
				if died[at] {
					return nil
				}
				died[at] = true
				return errKilled
			})
			if err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
		}
		if len(died) != len(steps) {
			t.Errorf("killed at %v", died)
		}
		s.goesOn(t, r, rows)
	})
}

// goesOn expects that a restore ends well.
func (s source) goesOn(t *testing.T, r Request, rows string) {
	t.Helper()
	if _, err := Restore(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	again, err := Restore(t.Context(), r)
	if err != nil || again.LastCommit.IsZero() {
		t.Errorf("once more: %+v, %v", again, err)
	}
	s.checkClean(t, r)
	if got := strings.Join(s.look(t, r), " "); got != rows {
		t.Errorf("it has %q, want %q", got, rows)
	}
}

// TestANumberThatIsAnothers: the process that a killed server's data name is another one by now, of
// the same user.
func TestANumberThatIsAnothers(t *testing.T) {
	t.Parallel()
	s, from, rows := killable(t)
	r := s.request(t, from)
	if _, err := restore(t.Context(), r, func(at string) error {
		if at == "open" {
			return errKilled
		}
		return nil
	}); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	other := exec.CommandContext(t.Context(), "sleep", "600")
	if r.User != nil {
		other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(r.User.UID), Gid: uint32(r.User.GID)}}
	}
	s.Must(other.Start())
	defer func() { _ = errors.Join(other.Process.Kill(), other.Wait()) }() // it is only there
	s.killAll(t, r)
	path := filepath.Join(r.Dir, partDir, pidFile)
	text, err := os.ReadFile(path)
	s.Must(err)
	_, rest, _ := strings.Cut(string(text), "\n")
	s.Must(os.WriteFile(path, fmt.Appendf(nil, "%d\n%s", other.Process.Pid, rest), 0o600))
	s.goesOn(t, r, rows)
}

// TestProgramsThatAreKilled: that fails, and is no reason to give up.
func TestProgramsThatAreKilled(t *testing.T) {
	t.Parallel()
	s, from, rows := killable(t)
	for _, step := range depth.Some(t, 1, []string{"copying", "replaying", "open", "stopping"}) {
		t.Run(step, func(t *testing.T) {
			var r Request
			var err error
			for range 20 { // the programs may have ended just before
				r = s.request(t, from)
				if _, err = restore(t.Context(), r, func(at string) error {
					if at == step {
						s.killAll(t, r)
					}
					return nil
				}); err != nil {
					break
				}
			}
			if err == nil || Final(err) {
				t.Fatalf("killed while %s: %v", step, err)
			}
			s.goesOn(t, r, rows)
		})
	}
	t.Run("at any moment", func(t *testing.T) {
		r := s.request(t, from)
		var kills atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 12 {
				select {
				case <-time.After(time.Duration(50+i*70) * time.Millisecond):
				case <-t.Context().Done():
					return
				}
				kills.Add(int64(s.killAll(t, r)))
			}
		}()
		testkit.Eventually(t, 2*time.Minute, func() error {
			_, err := Restore(t.Context(), r)
			if Final(err) {
				t.Errorf("it gave up: %v", err)
				return nil
			}
			return err
		})
		<-done
		if kills.Load() == 0 {
			t.Error("nothing was killed")
		}
		s.goesOn(t, r, rows)
	})
}

// TestAServerThatIsKilledWhenRecoveryEnds, during the checkpoint with which that is written down. What lies
// behind the target is not replayed at its next start.
func TestAServerThatIsKilledWhenRecoveryEnds(t *testing.T) {
	t.Parallel()
	s, from, rows := killableWith(t, 90000, 1000) // so many pages make the checkpoint take a while
	var r Request
	killed := false
	for try := 0; !killed && try < 20; try++ {
		r = s.request(t, from)
		part := filepath.Join(r.Dir, partDir)
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
				control, err := postgres.ReadControl(part)
				if err == nil && control.State == postgres.ShuttingDown && control.Timeline == 1 {
					s.killAll(t, r)
					return
				}
			}
		}()
		_, err := Restore(t.Context(), r)
		end()
		<-done
		if Final(err) {
			t.Fatal(err)
		}
		control, ctrlErr := postgres.ReadControl(part)
		killed = err != nil && ctrlErr == nil && control.State == postgres.ShuttingDown && control.Timeline == 1
	}
	if !killed {
		t.Fatal("the checkpoint was missed each time")
	}
	s.goesOn(t, r, rows)
}

// killAll kills all programs of a restore.
func (s source) killAll(t *testing.T, r Request) int {
	t.Helper()
	all, err := r.Group.Processes()
	if err != nil {
		t.Error(err)
	}
	for _, p := range all {
		_ = r.Procs.Signal(p, syscall.SIGKILL)
	}
	return len(all)
}

// TestARestoreOfAnotherSourceBeginsAnew, and removes what was there.
func TestARestoreOfAnotherSourceBeginsAnew(t *testing.T) {
	t.Parallel()
	s, from, _ := killable(t)
	r := s.request(t, from)
	if _, err := Restore(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	r.Source.Target = backup.Target{Newest: true}
	s.goesOn(t, r, "a b c")
	s.Must(os.Rename(DataDir(r.Dir), r.Dir+".taken"))
	s.goesOn(t, r, "a b c")
}
