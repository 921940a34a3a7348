package pgpool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

// started is a pgpool before one server, until the test ends.
func started(t *testing.T, o Options) *Pool {
	t.Helper()
	o.Program, o.Dir, o.Clients = program(t), t.TempDir(), 3
	p, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Stop(context.Background()), gone(p.record, o.Dir)); err != nil { //nolint:usetesting // the test's own has ended
			t.Error(err)
		}
	})
	return p
}

// Another program takes the port between the moment that it was found and that of the start.
func TestATakenPort(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	asked := 0
	port := func() (int, error) {
		if asked++; asked == 1 {
			return taken.Addr().(*net.TCPAddr).Port, nil //nolint:forcetypeassert // a listener of TCP has no other
		}
		return freePort()
	}
	p := started(t, Options{Writer: at(t, pgtest.Start(t, pgtest.Options{}), "", "sslmode=disable"), port: port})
	if text, err := ask1(t, p.Server(), "SELECT 'in'"); err != nil || text != "in" || asked != 4 {
		t.Errorf("%s, %v, after %d ports", text, err, asked)
	}
}

// listens lists the addresses at which processes listen, as the kernel writes them.
func listens(t *testing.T, pids []int) (all []string) {
	t.Helper()
	var sockets []string
	for _, pid := range pids {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			link, err := os.Readlink(file)
			if inode, is := strings.CutPrefix(link, "socket:["); err == nil && is {
				sockets = append(sockets, strings.TrimSuffix(inode, "]"))
			}
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile("/proc/net/" + table)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			const address, state, inode, listening = 1, 3, 9, "0A"
			if f := strings.Fields(line); len(f) > inode && f[state] == listening && slices.Contains(sockets, f[inode]) {
				all = append(all, f[address])
			}
		}
	}
	return all
}

// Nobody on another machine reaches it, and whoever is on this one reaches its control port with no
// password.
func TestItListensOnTheLoopbackAddress(t *testing.T) {
	t.Parallel()
	p := started(t, Options{Writer: at(t, pgtest.Start(t, pgtest.Options{}), "", "sslmode=disable")})
	sockets, err := filepath.Glob(filepath.Join(p.record.Directory, ".s.PGSQL.*"))
	if err != nil || len(sockets) != 2 { // one to log in, and one to control it
		t.Errorf("in its directory are %q, %v", sockets, err)
	}
	all := listens(t, p.Processes())
	if len(all) != 2 {
		t.Errorf("it listens at %q", all)
	}
	for _, address := range all {
		if !strings.HasPrefix(address, "0100007F:") {
			t.Errorf("it listens at %s", address)
		}
	}
}

// What is shared between its processes is gone with them, also if they are killed.
func TestKilledProcessesLeaveNoSharedMemory(t *testing.T) {
	t.Parallel()
	p := started(t, Options{Writer: at(t, pgtest.Start(t, pgtest.Options{}), "", "sslmode=disable")})
	pids := p.Processes()
	ours, err := os.Readlink("/proc/self/ns/ipc")
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/ipc", pid)); err != nil || its == ours {
			t.Errorf("process %d is in %s, %v", pid, its, err)
		}
	}
	text, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		const creator = 4
		if f := strings.Fields(line); len(f) > creator && slices.Contains(pids, number(f[creator])) {
			t.Errorf("all see %s", line)
		}
	}
	all, err := p.record.processes()
	if err != nil {
		t.Fatal(err)
	}
	if err := signal(head(all).ID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		if err := p.Ended(); !errors.Is(err, ErrEnded) {
			return fmt.Errorf("it has not ended: %w", errors.Join(err, errStays))
		}
		return nil
	})
}

func number(text string) (n int) {
	if _, err := fmt.Sscan(text, &n); err != nil {
		return 0
	}
	return n
}

// A frozen one ends, too.
func TestAFrozenOneIsTakenAway(t *testing.T) {
	t.Parallel()
	p := started(t, Options{Writer: at(t, pgtest.Start(t, pgtest.Options{}), "", "sslmode=disable")})
	all, err := p.record.processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if err := signal(e.ID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(p.Stop(t.Context()), gone(p.record, p.options.Dir)); err != nil {
		t.Error(err)
	}
}

// A server that is not there is not hidden: nobody comes in, and the error names it.
func TestAServerThatIsNotThere(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	standby := primary.Follow("dead", pgtest.Options{})
	reader := at(t, standby, "", "sslmode=disable")
	standby.Kill()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	o := Options{Program: program(t), Dir: dir, Writer: at(t, primary, "", "sslmode=disable"), Clients: 2}
	o.Readers = append(o.Readers, reader)
	p, err := Start(ctx, o)
	if !errors.Is(err, ErrStart) || !errors.Is(err, ErrLeftOut) || !strings.Contains(err.Error(), standby.Addr) {
		t.Fatalf("%v", err)
	}
	t.Logf("it says: %v", err)
	if p != nil {
		t.Error("there is one")
	}
	if _, err := os.Stat(filepath.Join(dir, folder)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it left something: %v", err)
	}
}

// A password that its file cannot hold is refused, before anything is made.
func TestAPasswordThatItCannotKeep(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	dir := t.TempDir()
	_, err := Start(t.Context(), Options{Program: program(t), Dir: dir, Writer: at(t, s, ":a%3Ab", "sslmode=disable"), Clients: 2})
	if left, _ := os.ReadDir(dir); !errors.Is(err, ErrPassword) || len(left) > 0 {
		t.Errorf("%v, and %v is left", err, left)
	}
}
