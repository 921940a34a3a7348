// Package testkit has what tests of several packages share: waiting without sleeping, and saying
// plainly which program or privilege a test needs.
package testkit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"howdah/internal/testkit/patience"
	_ "howdah/internal/testkit/pgversion" // for all tests
)

// pollEvery is so short that a test takes as long as what it waits for.
const pollEvery = 20 * time.Millisecond

// Eventually calls check until it returns nil. Once within has passed, by patience.For, it fails
// the test with the last error. Tests wait only with this function.
func Eventually(t testing.TB, within time.Duration, check func() error) {
	t.Helper()
	within = patience.For(within)
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %v", within, err)
		}
		time.Sleep(pollEvery)
	}
}

// Always calls check for the given time, and fails the test with the first error. It is for what
// must not happen, if nothing tells when that would have happened.
func Always(t testing.TB, during time.Duration, check func() error) {
	t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(pollEvery) {
		if err := check(); err != nil {
			t.Fatal(err)
		}
	}
}

// Missing ends a test that cannot run because something is not installed or not permitted here. The
// test is skipped, or fails if the environment says that nothing may be missing, as scripts/test
// does. For what the machine itself cannot do, such as a kernel without a feature, use t.Skip.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("HOWDAH_TEST_COMPLETE") != "" {
		t.Fatalf("needs %s", what)
	}
	t.Skipf("needs %s", what)
}

// NeedRoot ends the test if it does not run as root.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, "root")
	}
}

// NeedProgram returns the path of a program, and ends the test if the program is not installed.
// Debian keeps daemons in sbin, which is not on every PATH.
func NeedProgram(t testing.TB, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		path := dir + "/" + name
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	Missing(t, "the program "+name+": run scripts/install --test")
	return ""
}

// Start starts a command with a Pdeathsig, for as long as the test runs. That signal comes when the
// thread ends that started the command, so Start keeps the thread. Starting a process in a control
// group throws threads away, and could throw away any of ours.
func Start(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- cmd.Start()
		<-ended
	}()
	t.Cleanup(func() { close(ended) })
	if err := <-started; err != nil {
		t.Fatal(err)
	}
}

// Ports for tests. They are below the ports that Linux gives to those who ask for any port.
const (
	firstPort = 12000
	lastPort  = 32000
	portTries = 1000
)

// FreeAddr returns a loopback host:port on which nobody listens. No other test on this machine gets
// it before this test has ended.
func FreeAddr(t testing.TB) string {
	t.Helper()
	var err error
	for range portTries {
		var addr string
		if addr, err = reserve(t, firstPort+rand.IntN(lastPort-firstPort)); err == nil {
			return addr
		}
	}
	t.Fatalf("no free port: %v", err)
	return ""
}

// reserve takes a port by a name that the kernel gives to one process at a time, and takes back
// when the process dies. What will listen on the port may be started much later.
func reserve(t testing.TB, port int) (addr string, err error) {
	hold, err := new(net.ListenConfig).Listen(t.Context(), "unix", fmt.Sprintf("@howdah/test/port/%d", port))
	if err != nil {
		return "", err
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return "", errors.Join(err, hold.Close())
	}
	t.Cleanup(func() { _ = hold.Close() })
	return l.Addr().String(), l.Close()
}
