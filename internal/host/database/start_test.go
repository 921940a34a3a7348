package database

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/engine/postgres"
	"howdah/internal/failover/fence"
	"howdah/internal/host/hostapi"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

func TestProblemOf(t *testing.T) {
	t.Parallel()
	cases := []struct {
		err  error
		want member.Problem
	}{
		{fmt.Errorf("x: %w", postgres.ErrNoVersion), member.NoVersion},
		{fmt.Errorf("x: %w", errPort), member.PortTaken},
		{fmt.Errorf("x: %w", syscall.ENOSPC), member.DiskFull},
		{errors.New("x"), member.StartFails},
	}
	for _, c := range cases {
		if got := problemOf(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}

// However often it failed to start before, what was fenced, or is to be revived, or has been told
// something newer, is started at once.
func TestNoPauseBeforeAStartThatIsDue(t *testing.T) {
	t.Parallel()
	r := unstarted(newWorld(t, waits).open(), "db-1.m1")
	for name, due := range map[string]func(){
		"fenced": r.guard.Revoked, "revived": r.deeds.again, "buried": r.Buried, "told": func() { r.Told(false) },
	} {
		now := time.Now()
		for range 5 {
			r.retry.Attempt(now)
		}
		if due(); !r.retry.Ready(now) {
			t.Errorf("%s: it is not started at once", name)
		}
	}
}

// slow takes its time until signals do not end it.
const slow = `echo $$ >> starts
mkdir -p data
until [ -e go ]; do sleep 0.05; done
trap 'echo hup >> hups' HUP
while :; do sleep 1 & wait; done
`

// A change while Patroni starts must not end it.
func TestAStartingPatroniIsNotToldYet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, slow)
	w.run(nil)
	a := w.Assignment("db-1", 1)
	w.Assign(a)
	w.Awaits(a.ID, 10*time.Second, hosttest.Running(1))
	w.restarted(a.ID, 1)
	a.Generation = 2
	w.Assign(a)
	testkit.Always(t, 500*time.Millisecond, func() error {
		if n := len(w.Lines(a.ID, "starts")); n != 1 {
			return fmt.Errorf("%d starts", n)
		}
		return nil
	})
	w.Must(os.WriteFile(filepath.Join(w.Dir, "members", a.ID, "go"), nil, 0o600))
	w.Awaits(a.ID, 10*time.Second, hosttest.Running(2))
	testkit.Eventually(t, 10*time.Second, func() error {
		if len(w.Lines(a.ID, "hups")) == 0 {
			return errors.New("it was not told")
		}
		return nil
	})
	if n := len(w.Lines(a.ID, "starts")); n != 1 {
		t.Errorf("%d starts", n)
	}
}

// Patroni may throw the data of a killed server away, and with them what tells where its
// shared memory is.
func TestAStartRemovesTheMemoryOfAKilledServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	a := w.Assignment("db-1", 1)
	data := filepath.Join(w.Dir, "members", a.ID, patroni.DataDir)
	left := leaveMemory(t, data)
	w.run(nil)
	w.Assign(a)
	w.Awaits(a.ID, hosttest.Soon, hosttest.Running(1))
	if left() {
		t.Error("the segment is still there")
	}
}

// leaveMemory leaves a data directory and a segment as a PostgreSQL that was killed does,
// and answers how to find out whether that is still there.
func leaveMemory(t *testing.T, data string) (left func() bool) {
	t.Helper()
	const magic, size = 679834894, 4096
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(data, 0o700))
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, size, unix.IPC_CREAT|0o600)
	must(err)
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	header, err := unix.SysvShmAttach(id, 0, 0)
	must(err)
	var directory syscall.Stat_t
	must(syscall.Stat(data, &directory))
	binary.NativeEndian.PutUint32(header, magic)
	binary.NativeEndian.PutUint64(header[40:], directory.Dev)
	binary.NativeEndian.PutUint64(header[48:], directory.Ino)
	must(unix.SysvShmDetach(header))
	pidFile := fmt.Appendf(nil, "0\n%s\n0\n5432\n\n\n  1 %d\n", data, id)
	must(os.WriteFile(filepath.Join(data, "postmaster.pid"), pidFile, 0o600))
	return func() bool {
		_, err := unix.SysvShmCtl(id, unix.IPC_STAT, &unix.SysvShmDesc{})
		return !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EIDRM)
	}
}

func has(problem member.Problem, detail string) func(member.Report) error {
	return func(r member.Report) error {
		if r.Problem != problem || !strings.Contains(r.Detail, detail) {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	}
}

// A Patroni that ends again and again is started ever more seldom, and the report
// says why. Once it stays, all is well again.
func TestACrashLoopIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ends)
	w.run(nil)
	a := w.Assignment("db-1", 1)
	w.Assign(a)
	r := w.Awaits(a.ID, hosttest.Soon, has(member.StartFails, "no such thing as a cluster"))
	if !strings.Contains(r.Detail, "3") {
		t.Errorf("detail %q does not tell the exit code", r.Detail)
	}
	if starts := w.Lines(a.ID, "starts"); len(starts) < crashLoop || len(starts) > crashLoop+1 {
		t.Errorf("told after %d starts", len(starts))
	}
	w.setPatroni(waits)
	w.Awaits(a.ID, 2*hosttest.Soon, hosttest.Running(1))
}

func TestAPortThatIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	w.run(nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.Must(err)
	defer l.Close()
	a := w.Assignment("db-1", 1)
	a.Port = l.Addr().(*net.TCPAddr).Port
	w.Assign(a)
	w.Awaits(a.ID, hosttest.Soon, has(member.PortTaken, fmt.Sprint(a.Port)))
	if starts := w.Lines(a.ID, "starts"); len(starts) != 0 {
		t.Errorf("%d starts on a port that is taken", len(starts))
	}
	a.Generation, a.Port = 2, hosttest.FreePort(t)
	w.Assign(a)
	w.Awaits(a.ID, hosttest.Soon, hosttest.Running(2))
}

func TestAVersionThatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	w.run(nil)
	a := w.Assignment("db-1", 1)
	a.Major = 7
	w.Assign(a)
	w.Awaits(a.ID, hosttest.Soon, has(member.NoVersion, "7"))
}

// No control plane, no certificate: the member starts once etcd knows one.
func TestAMemberWaitsForItsCertificate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	there := hostapi.ControlMember{Name: "s1", URL: w.Control[0]}
	gone := hostapi.ControlMember{Name: "s1", URL: "https://" + testkit.FreeAddr(t)}
	w.Control = []string{gone.URL}
	w.Put(state.Control("s1"), gone)
	w.run(nil)
	a := w.Assignment("db-1", 1)
	w.Assign(a)
	w.Awaits(a.ID, hosttest.Soon, has(member.StartFails, "get a certificate"))
	w.Put(state.Control("s1"), there)
	w.Awaits(a.ID, hosttest.Soon, hosttest.Running(1))
}

// Patroni has data, but neither a PostgreSQL nor a child that makes one: it is
// started again, and that is recorded. One that works is left alone.
func TestAPatroniThatHangsIsStartedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hangs)
	w.run(func(a *Host) { a.hangAfter = time.Second })
	a := w.Assignment("db-1", 1)
	w.Assign(a)
	testkit.Eventually(t, hosttest.Soon, func() error {
		if starts := w.Lines(a.ID, "starts"); len(starts) < 2 {
			return fmt.Errorf("%d starts", len(starts))
		}
		return nil
	})
	w.setPatroni(serves)
	w.Awaits(a.ID, hosttest.Soon, func(r member.Report) error {
		if !r.Postgres {
			return fmt.Errorf("report %+v", r)
		}
		return hosttest.Running(1)(r)
	})
	testkit.Eventually(t, hosttest.Soon, func() error {
		incidents := w.incidents("db-1")
		if len(incidents) == 0 {
			return errors.New("no incident")
		}
		if i := incidents[0]; i.Kind != fence.Hang || i.Member != "m1" || i.Host != hosttest.Name || i.Detected.IsZero() {
			return fmt.Errorf("incident %+v", i)
		}
		return nil
	})
}

// A Patroni without data is busy making them; so is one with a child.
func TestAPatroniThatWorksIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	w.run(func(a *Host) { a.hangAfter = 300 * time.Millisecond })
	a := w.Assignment("db-1", 1)
	w.Assign(a)
	began := time.Now()
	testkit.Eventually(t, hosttest.Soon, func() error {
		if err := hosttest.Running(1)(w.Awaits(a.ID, hosttest.Soon, hosttest.Running(1))); err != nil {
			return err
		}
		if time.Since(began) < 2*time.Second {
			return errors.New("not long enough")
		}
		return nil
	})
	if starts := w.Lines(a.ID, "starts"); len(starts) != 1 {
		t.Errorf("%d starts, want 1", len(starts))
	}
}
