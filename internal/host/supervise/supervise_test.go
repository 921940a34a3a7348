package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

// stage is a directory in which parts leave what they did.
type stage struct {
	*testing.T
	dir  string
	stop func() // ends the supervisor and waits for it
}

// supervise runs shell scripts as parts. Each finds its name in $0.
func supervise(t *testing.T, parts ...[2]string) *stage {
	t.Helper()
	s := &stage{T: t, dir: t.TempDir()}
	var all []Part
	for _, p := range parts {
		all = append(all, Part{Name: p[0], Args: []string{"-c", "cd " + s.dir + "; " + p[1], p[0]}, Log: filepath.Join(s.dir, p[0]+".log")})
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := Run(ctx, "/bin/sh", all, slog.New(slog.DiscardHandler)); err != nil {
			t.Error(err)
		}
	})
	s.stop = func() { cancel(); done.Wait() }
	t.Cleanup(s.stop)
	return s
}

func (s *stage) words(name string) []string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Fatal(err)
	}
	return strings.Fields(string(text))
}

func (s *stage) has(name string, n int) func() error {
	return func() error {
		if got := s.words(name); len(got) < n {
			return fmt.Errorf("%s: %q, want %d", name, got, n)
		}
		return nil
	}
}

const (
	// polite ends when it is told to, and says so. Whoever reads its process id may tell it.
	polite = `trap 'echo $0 >> ended; exit 0' TERM; echo $$ >> $0.pids; while :; do sleep 0.1; done`
	// brief writes its text, also if all are stopped meanwhile.
	brief = `trap '' TERM; echo $$ >> $0.pids; echo "words of $0"; exit 7`
	deaf  = `trap '' TERM INT; echo $$ >> $0.pids; while :; do sleep 0.1; done`
)

func TestPartsAreStoppedInTheOppositeOrder(t *testing.T) {
	s := supervise(t, [2]string{"serve", polite}, [2]string{"edge", polite}, [2]string{"agent", polite})
	for _, name := range []string{"serve.pids", "edge.pids", "agent.pids"} {
		testkit.Eventually(t, 10*time.Second, s.has(name, 1))
	}
	s.stop()
	if diff := cmp.Diff([]string{"agent", "edge", "serve"}, s.words("ended")); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"serve.pids", "edge.pids", "agent.pids"} {
		if pids := s.words(name); len(pids) != 1 {
			t.Errorf("%s was started %d times", name, len(pids))
		}
	}
}

// A part that is killed is soon back. The others do not notice.
func TestAKilledPartIsStartedAgain(t *testing.T) {
	s := supervise(t, [2]string{"serve", polite}, [2]string{"edge", polite})
	testkit.Eventually(t, 10*time.Second, s.has("serve.pids", 1))
	testkit.Eventually(t, 10*time.Second, s.has("edge.pids", 1))
	pid, err := strconv.Atoi(s.words("edge.pids")[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 3*time.Second, s.has("edge.pids", 2))
	if pids := s.words("serve.pids"); len(pids) != 1 {
		t.Errorf("the other part was started %d times", len(pids))
	}
}

// A part that ends at once is started less and less often, and its output is kept.
func TestAPartThatEndsAtOnceIsWaitedWith(t *testing.T) {
	began := time.Now()
	s := supervise(t, [2]string{"serve", brief})
	testkit.Eventually(t, 20*time.Second, s.has("serve.pids", 5))
	// 0.1 + 0.2 + 0.4 + 0.8 s lie between five starts.
	if took := time.Since(began); took < 1400*time.Millisecond {
		t.Errorf("five starts within %s", took)
	}
	s.stop()
	words := s.words("serve.log")
	said := len(slices.DeleteFunc(words, func(w string) bool { return w != "serve" }))
	if started := len(s.words("serve.pids")); said != started {
		t.Errorf("the log has the words of %d of %d starts", said, started)
	}
}

// A part that does not listen is killed, and does not hold up the others.
func TestADeafPartIsKilled(t *testing.T) {
	t.Parallel()
	s := supervise(t, [2]string{"serve", polite}, [2]string{"agent", deaf})
	testkit.Eventually(t, 10*time.Second, s.has("serve.pids", 1))
	testkit.Eventually(t, 10*time.Second, s.has("agent.pids", 1))
	pid, err := strconv.Atoi(s.words("agent.pids")[0])
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.stop()
	if took := time.Since(began); took < stopTimeout || took > stopTimeout+patience.For(5*time.Second) {
		t.Errorf("stopped after %s, patience is %s", took, stopTimeout)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the deaf part: %v, want that it is gone", err)
	}
	if diff := cmp.Diff([]string{"serve"}, s.words("ended")); diff != "" {
		t.Error(diff)
	}
}

// A part is tried again if its program is not there, or if its log cannot be written.
func TestWhatCannotBeStartedIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "later", "serve.log")
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		Run(ctx, "/bin/sh", []Part{{Name: "serve", Args: []string{"-c", "echo here; exec sleep 1000"}, Log: log}}, slog.New(slog.DiscardHandler))
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	if err := os.Mkdir(filepath.Dir(log), 0o700); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		text, err := os.ReadFile(log)
		if err == nil && string(text) != "here\n" {
			err = fmt.Errorf("log %q", text)
		}
		return err
	})
}
