// Package testkit holds what tests of several packages share: waiting without
// sleeping, and saying plainly which program or privilege a test needs.
package testkit

import (
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"howdah/internal/testkit/patience"
)

// pollEvery is short enough that a test's time is that of the thing it waits for.
const pollEvery = 20 * time.Millisecond

// Eventually calls check until it returns nil, and fails the test with the last
// error once within has passed, by patience.For. It is how tests wait.
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

// Always calls check for as long as the given time and fails the test with its
// first error: for what must not happen, where nothing tells that it had its chance.
func Always(t testing.TB, during time.Duration, check func() error) {
	t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(pollEvery) {
		if err := check(); err != nil {
			t.Fatal(err)
		}
	}
}

// Missing ends a test that cannot run because something is not installed, or not
// permitted, here: it is skipped, or it fails where the environment says that
// nothing may be missing, as scripts/test does. What the machine itself cannot do,
// such as a kernel without a feature, is for t.Skip.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("HOWDAH_TEST_COMPLETE") != "" {
		t.Fatalf("needs %s", what)
	}
	t.Skipf("needs %s", what)
}

// NeedRoot ends the test when it is not run as root.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, "root")
	}
}

// NeedProgram returns the path of the named program, and ends the test when it is
// not installed. Debian keeps daemons in sbin, which is not on every PATH.
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

// FreeAddr is a loopback host:port that was free a moment ago.
func FreeAddr(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
