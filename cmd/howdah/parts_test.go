package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"howdah/cmd/howdah/screen"
	"howdah/internal/admin"
	"howdah/internal/admin/client/testserver"
	"howdah/internal/control/serve"
	"howdah/internal/host/hostapi"
	"howdah/internal/host/supervise"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
)

// TestMain lets this program play a part that holds a lock.
func TestMain(m *testing.M) {
	if lock := os.Getenv("HOWDAH_TEST_HOLD"); lock != "" {
		hold(lock)
	}
	os.Exit(m.Run())
}

// hold takes a lock until it is ended.
func hold(path string) {
	if os.Getenv("HOWDAH_TEST_STUBBORN") != "" {
		signal.Ignore(syscall.SIGTERM)
	}
	if _, err := home.LockFile(path); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	select {}
}

// holdElsewhere has another process hold a lock; stubborn ones ignore SIGTERM.
func holdElsewhere(t *testing.T, path string, stubborn bool) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "HOWDAH_TEST_HOLD="+path)
	if stubborn {
		cmd.Env = append(cmd.Env, "HOWDAH_TEST_STUBBORN=1")
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// A process that has ended has given its locks up, also if nobody has waited for it.
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	said := make([]byte, 5)
	if _, err := out.Read(said); err != nil || string(said) != "held\n" {
		t.Fatalf("the holder said %q: %v", said, err)
	}
	return cmd
}

func TestEndHolder(t *testing.T) {
	for name, stubborn := range map[string]bool{"in good order": false, "by force": true} {
		t.Run(name, func(t *testing.T) {
			lock := filepath.Join(t.TempDir(), "part.lock")
			cmd := holdElsewhere(t, lock, stubborn)
			if pid := home.FileHolder(lock); pid != cmd.Process.Pid {
				t.Fatalf("the holder is %d, not %d", pid, cmd.Process.Pid)
			}
			if err := endHolder(t.Context(), lock, 100*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if pid := home.FileHolder(lock); pid != 0 {
				t.Errorf("%d holds the lock still", pid)
			}
		})
	}
}

func TestEndHolderGivesUpWithItsContext(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "part.lock")
	holdElsewhere(t, lock, true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := endHolder(ctx, lock, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestNobodyHolds(t *testing.T) {
	dir := t.TempDir()
	if pid := home.FileHolder(filepath.Join(dir, "none.lock")); pid != 0 {
		t.Errorf("%d holds a lock that is not there", pid)
	}
	stale := filepath.Join(dir, "stale.lock")
	if err := os.WriteFile(stale, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if pid := home.FileHolder(stale); pid != 0 {
		t.Errorf("a number of long ago is believed: %d", pid)
	}
	if err := endHolder(t.Context(), stale, time.Second); err != nil {
		t.Error(err)
	}
	// Processes that only ask at the same time are no holders either.
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for range 500 {
				if pid := home.FileHolder(stale); pid != 0 {
					t.Errorf("a number of long ago is believed while others ask: %d", pid)
					return
				}
			}
		})
	}
	asking.Wait()
}

func TestLastWords(t *testing.T) {
	log := filepath.Join(t.TempDir(), "serve.log")
	if words := lastWords(log); words != "" {
		t.Errorf("no log, but the words %q", words)
	}
	text := "{\"level\":\"INFO\"}\nhowdah: first\nhowdah: listen: taken\n{\"level\":\"WARN\"}\n"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if words := lastWords(log); words != ": listen: taken" {
		t.Errorf("the last words are %q", words)
	}
}

func TestInvocation(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "howdah")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, dir, want string }{
		{"found by the shell", bin, "/", "howdah"},
		{"in the directory", "/nowhere", filepath.Dir(program), "./" + filepath.Base(program)},
		{"elsewhere", "/nowhere", t.TempDir(), program},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("PATH", c.path)
			t.Chdir(c.dir)
			if got := invocation(); got != c.want {
				t.Errorf("%q, not %q", got, c.want)
			}
		})
	}
}

// silent is a command line that nobody watches.
func silent(words ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	o := newOptions(&screen.Screen{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Terminal: fakeTerminal("")})
	o.getenv, o.program, o.every = func(string) string { return "" }, "howdah", time.Millisecond
	code = run(context.Background(), o, words)
	return code, out.String(), errs.String()
}

func TestNobodyAnswers(t *testing.T) {
	h, err := home.Ensure(filepath.Join(t.TempDir(), "home"), home.Options{Listen: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, made, want string }{
		{"served", "", "databases go on without it; start its howdah serve again\n"},
		{"up", h.LogFile("up"), "databases go on without it; start it: howdah --home " + h.Dir + " up --detach\n"},
	} {
		if c.made != "" {
			if err := os.WriteFile(c.made, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, words := range [][]string{{"status"}, {"db", "delete", "x", "--yes"}} {
			code, stdout, stderr := silent(append([]string{"--home", h.Dir}, words...)...)
			if code != 1 || stdout != "" || !strings.HasSuffix(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s, %v: exit %d, %q, %q", c.name, words, code, stdout, stderr)
			}
		}
	}
}

func TestInterruptedIsQuiet(t *testing.T) {
	h, err := home.Ensure(filepath.Join(t.TempDir(), "home"), home.Options{Listen: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	o := newOptions(&screen.Screen{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Terminal: fakeTerminal("")})
	code := run(ctx, o, []string{"--home", h.Dir, "db", "list"})
	if code != codeInterrupted || errs.Len() > 0 {
		t.Errorf("exit %d, %q", code, errs.String())
	}
}

func TestJoining(t *testing.T) {
	s := testserver.Start(t, testserver.Options{NoHosts: true})
	tokens, err := s.Home.Join()
	if err != nil {
		t.Fatal(err)
	}
	o := joinOptions{dir: t.TempDir(), kind: hostapi.Edge, name: "edge-1"}
	if err := localJoin(s.Home, &o); err != nil {
		t.Fatal(err)
	}
	t.Run("refused with a token that is not ours", func(t *testing.T) {
		other := o
		other.dir, other.token = t.TempDir(), strings.Replace(tokens.AgentToken, "hj1.", "hj1.0", 1)
		if _, _, err := ensureMember(t.Context(), other, newLog("test")); !errors.Is(err, hostapi.ErrRefused) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("refuses an authority that is not the token's", func(t *testing.T) {
		other := o
		fingerprint := strings.Repeat("0", 64)
		other.dir, other.token = t.TempDir(), home.NewToken(fingerprint)
		if _, _, err := ensureMember(t.Context(), other, newLog("test")); !errors.Is(err, certs.ErrNotOurs) {
			t.Errorf("error %v", err)
		}
	})
	first, _, err := ensureMember(t.Context(), o, newLog("test"))
	if err != nil {
		t.Fatal(err)
	}
	if first.HomeID != s.Home.ID || len(first.Etcd) != 1 || len(first.Control) != 1 {
		t.Errorf("membership %+v", first)
	}
	// Once joined, it starts without the control plane.
	o.url = "https://127.0.0.1:1"
	again, _, err := ensureMember(t.Context(), o, newLog("test"))
	if err != nil || again.HomeID != first.HomeID {
		t.Errorf("membership %+v: %v", again, err)
	}
	bad := o
	bad.dir, bad.token = t.TempDir(), "what else was in the file"
	if _, _, err := ensureMember(t.Context(), bad, newLog("test")); err == nil || !strings.Contains(err.Error(), "not a join token") {
		t.Errorf("error %v", err)
	}
	for _, nowhere := range []string{"127.0.0.1:7443", "http://127.0.0.1:7443", "https://", "https://:7443", "%"} {
		bad := o
		bad.dir, bad.url = t.TempDir(), nowhere
		if _, _, err := ensureMember(t.Context(), bad, newLog("test")); !errors.Is(err, errUsage) {
			t.Errorf("--join %s: %v", nowhere, err)
		}
	}
	// The control plane is not there. The command waits for it until the context ends.
	o.name = "edge-2"
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := ensureMember(ctx, o, newLog("test")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// Hosts and further control planes may be started before the first one answers.
func TestAControlPlaneThatStartsIsWaitedFor(t *testing.T) {
	for _, end := range []error{nil, hostapi.ErrRefused, certs.ErrNotOurs} {
		asked := 0
		err := untilAnswered(t.Context(), "https://127.0.0.1:7443", home.NewToken(strings.Repeat("0", 64)), newLog("test"), func(context.Context) error {
			if asked++; asked < 3 {
				return syscall.ECONNREFUSED
			}
			return end
		})
		if !errors.Is(err, end) || asked != 3 {
			t.Errorf("asked %d times, want 3: %v, want %v", asked, err, end)
		}
	}
}

func TestAControlPlaneThatCannotJoin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(home.NewToken(strings.Repeat("0", 64))), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("not one"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ address, join, file, want string }{
		{"", "https://127.0.0.1:1", file, "--address"},
		{"db1", "https://127.0.0.1:1", file, "--address"},
		{"127.0.0.1", "https://127.0.0.1:1", "", "--token-file"},
		{"127.0.0.1", "https://127.0.0.1:1", other, "not a join token"},
		{"127.0.0.1", "127.0.0.1:1", file, "--join needs the URL"},
	} {
		dir := filepath.Join(t.TempDir(), "home")
		cfg := serve.Config{Name: "s2", Address: c.address, Log: newLog("test")}
		_, _, err := joinHome(t.Context(), dir, cfg, "", c.join, c.file)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%+v left a home: %v", c, err)
		}
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	if err := os.WriteFile(path, []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for lines, want := range map[int]string{0: "", 1: "three\n", 2: "two\nthree\n", 3: "one\ntwo\nthree\n", 99: "one\ntwo\nthree\n"} {
		var out bytes.Buffer
		o := &options{screen: &screen.Screen{Stdout: &out}, every: time.Millisecond}
		if err := o.tail(t.Context(), path, lines, false); err != nil || out.String() != want {
			t.Errorf("%d lines: %q, %v", lines, out.String(), err)
		}
	}
}

func TestTailOfALogThatWasPutAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	for name, text := range map[string]string{supervise.Aside(path, 1): "one\ntwo\n", path: "three\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for lines, want := range map[int]string{0: "", 1: "three\n", 2: "two\nthree\n", 9: "one\ntwo\nthree\n"} {
		var out bytes.Buffer
		o := &options{screen: &screen.Screen{Stdout: &out}, every: time.Millisecond}
		if err := o.tail(t.Context(), path, lines, false); err != nil || out.String() != want {
			t.Errorf("%d lines: %q, %v", lines, out.String(), err)
		}
	}
}

func TestTailFollows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	o := &options{screen: &screen.Screen{Stdout: writer}, every: time.Millisecond}
	go func() { ended <- o.tail(ctx, path, 10, true); writer.Close() }()
	if _, err := file.WriteString("later\n"); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 100)
	if n, err := reader.Read(text); err != nil || string(text[:n]) != "later\n" {
		t.Errorf("%q, %v", text[:n], err)
	}
	// The file is put aside. Its last line comes before the first line of the next file.
	if err := os.Rename(path, supervise.Aside(path, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("last\n"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("next\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := make([]byte, len("last\nnext\n"))
	if _, err := io.ReadFull(reader, all); err != nil || string(all) != "last\nnext\n" {
		t.Errorf("%q, %v", all, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestNewest(t *testing.T) {
	dir := t.TempDir()
	if _, err := newest(filepath.Join(dir, "*.log")); err == nil {
		t.Error("no log is no error")
	}
	for i, name := range []string{"b.log", "a.log"} {
		path := filepath.Join(dir, name)
		at := time.Now().Add(time.Duration(i) * time.Minute)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if path, err := newest(filepath.Join(dir, "*.log")); err != nil || filepath.Base(path) != "a.log" {
		t.Errorf("the newest is %s: %v", path, err)
	}
}

func TestMemberToRead(t *testing.T) {
	d := &admin.Database{Name: "shop", Members: []admin.Member{
		{Name: "m1", Instance: "shop-1", Role: admin.RoleStandby}, {Name: "m2", Instance: "shop-2", Role: admin.RolePrimary},
		{Name: "m3", Instance: "shop-3", Role: admin.RoleStandby},
	}}
	for name, want := range map[string]string{"shop": "m2", "shop-1": "m1", "shop-2": "m2", "shop-3": "m3"} {
		if m := memberToRead(d, name); m.Name != want {
			t.Errorf("%s: %s, not %s", name, m.Name, want)
		}
	}
	d.Members = d.Members[:1]
	if m := memberToRead(d, "shop"); m.Name != "m1" {
		t.Errorf("without a primary: %s", m.Name)
	}
}
