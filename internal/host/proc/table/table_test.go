package table

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/testkit"
)

const tail = "0 0 0 0 0 0 0 11 7 2 1 20 0 3 0 4711 8192 0"

func TestParseStat(t *testing.T) {
	entry := func(name string, state byte) Entry {
		return Entry{
			ID: ID{PID: 42, Start: 4711}, Parent: 7, Group: 40, Session: 39,
			Name: name, State: state, Threads: 3, Ticks: 21, Size: 8192,
		}
	}
	cases := []struct {
		name, line string
		want       Entry
		fails      bool
	}{
		{name: "plain", line: "42 (postgres) S 7 40 39 " + tail, want: entry("postgres", 'S')},
		{name: "a name that looks like fields", line: "42 (a) R 1 (b) D 7 40 39 " + tail, want: entry("a) R 1 (b", 'D')},
		{name: "empty name", line: "42 () S 7 40 39 " + tail, want: entry("", 'S')},
		{name: "no name", line: "42 S 7 40 39 " + tail, fails: true},
		{name: "cut short", line: "42 (postgres) S 7 40", fails: true},
		{name: "no number", line: "42 (postgres) S x 40 39 " + tail, fails: true},
		{name: "no id", line: "(postgres) S 7 40 39 " + tail, fails: true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseStat(c.line)
			if (err != nil) != c.fails {
				t.Fatalf("error is %v", err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" && !c.fails {
				t.Error(diff)
			}
		})
	}
}

func TestParseStatOfKernelThreadsHidesNegativeIDs(t *testing.T) {
	entry, err := parseStat("42 (x) S 7 40 39 0 -1 0 0 0 0 0 11 7 2 1 20 0 3 0 4711 0 0")
	if err != nil || entry.Start != 4711 {
		t.Fatalf("got %+v, %v", entry, err)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("42 (postgres) S 7 40 39 " + tail)
	f.Add("42 (a) R 1 (b) D 7 40 39 " + tail)
	f.Add(")(")
	f.Fuzz(func(_ *testing.T, line string) { _, _ = parseStat(line) })
}

func TestParseStatTellsKernelThreads(t *testing.T) {
	for flags, want := range map[string]bool{"2129984": true, "4194560": false} {
		entry, err := parseStat("2 (kthreadd) S 0 0 0 0 -1 " + flags + " 0 0 0 0 11 7 2 1 20 0 1 0 1 0 0")
		if err != nil || entry.Kernel != want {
			t.Errorf("flags %s: %+v, %v", flags, entry, err)
		}
	}
}

func TestDeadness(t *testing.T) {
	cases := []struct {
		state   byte
		threads int
		want    bool
	}{
		{'Z', 1, true}, {'Z', 0, true}, {'X', 1, true},
		{'Z', 2, false}, // its first thread has ended, another runs
		{'S', 1, false}, {'D', 1, false}, {'T', 1, false}, {'R', 9, false},
	}
	for _, c := range cases {
		if got := (Entry{State: c.state, Threads: c.threads}).Dead(); got != c.want {
			t.Errorf("state %c, %d threads: dead is %v", c.state, c.threads, got)
		}
	}
}

func TestOwnProcess(t *testing.T) {
	self, err := System.Get(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if self.Parent != os.Getppid() || self.PID != os.Getpid() || self.Start == 0 {
		t.Errorf("read %+v", self)
	}
	if _, err := System.Live(self.ID); err != nil {
		t.Error(err)
	}
	if uid, err := System.UID(self.PID); err != nil || uid != os.Getuid() {
		t.Errorf("uid %d, %v", uid, err)
	}
	dir, err := System.Dir(self.PID)
	if here, _ := os.Getwd(); err != nil || dir != here {
		t.Errorf("dir %q, %v", dir, err)
	}
	if era, err := System.Era(); err != nil || len(era) < 36 {
		t.Errorf("era %q, %v", era, err)
	}
}

func TestAllListsTheLiveAndNotTheZombies(t *testing.T) {
	live := exec.Command("sleep", "100")
	live.Env = []string{"MARK=a/b", "OTHER=c"}
	if err := live.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = live.Process.Kill(); _ = live.Wait() })
	zombie := exec.Command("true")
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = zombie.Wait() })

	testkit.Eventually(t, 10*time.Second, func() error {
		entry, err := System.Get(zombie.Process.Pid)
		if err != nil || !entry.Dead() {
			return fmt.Errorf("not a zombie yet: %+v, %w", entry, err)
		}
		return nil
	})
	all, err := System.All()
	if err != nil {
		t.Fatal(err)
	}
	pids := map[int]bool{}
	for _, entry := range all {
		pids[entry.PID] = true
	}
	if !pids[live.Process.Pid] || !pids[os.Getpid()] || pids[zombie.Process.Pid] {
		t.Errorf("live listed %v, self %v, zombie %v", pids[live.Process.Pid], pids[os.Getpid()], pids[zombie.Process.Pid])
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if !System.HasEnv(live.Process.Pid, "MARK=a/b") {
			return errors.New("mark not seen")
		}
		return nil
	})
	for _, other := range []string{"MARK=a", "MARK=a/bc", "ARK=a/b"} {
		if System.HasEnv(live.Process.Pid, other) {
			t.Errorf("%q found, which is not there", other)
		}
	}
}

func TestProcessThatIsGone(t *testing.T) {
	root := fakeRoot(t, "42 (postgres) S 7 40 39 "+tail)
	if _, err := root.Live(ID{PID: 42, Start: 4711}); err != nil {
		t.Error(err)
	}
	for name, id := range map[string]ID{
		"recycled": {PID: 42, Start: 4710},
		"ended":    {PID: 43, Start: 4711},
	} {
		if _, err := root.Live(id); !errors.Is(err, ErrGone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := root.UID(42); !errors.Is(err, ErrGone) {
		t.Errorf("user of a process without status: %v", err)
	}
	if _, err := root.Dir(42); !errors.Is(err, ErrGone) {
		t.Errorf("directory of a process without one: %v", err)
	}
	if root.HasEnv(42, "A=b") {
		t.Error("environment found where none is")
	}
}

func TestUserOfABrokenStatus(t *testing.T) {
	root := fakeRoot(t, "42 (postgres) S 7 40 39 "+tail)
	for _, text := range []string{"", "Uid:\n", "Uid:\tx\n"} {
		write(t, filepath.Join(string(root), "42", "status"), text)
		if uid, err := root.UID(42); err == nil {
			t.Errorf("status %q gave user %d", text, uid)
		}
	}
}

func fakeRoot(t *testing.T, lines ...string) Root {
	t.Helper()
	dir := t.TempDir()
	for _, line := range lines {
		entry, err := parseStat(line)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, strconv.Itoa(entry.PID), "stat"), line)
	}
	return Root(dir)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
