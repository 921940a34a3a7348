// Package testkit holds what tests of several packages share: waiting without
// sleeping, and saying plainly which program or privilege a test needs.
package testkit

import (
	"net"
	"os"
	"os/exec"
	"testing"
	"time"
)

// pollEvery is short enough that a test's time is that of the thing it waits for.
const pollEvery = 20 * time.Millisecond

// Eventually calls check until it returns nil, and fails the test with the last
// error once within has passed. It is the only way tests wait.
func Eventually(t testing.TB, within time.Duration, check func() error) {
	t.Helper()
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

// NeedRoot skips the test with a clear line when it is not run as root.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// NeedProgram returns the path of the named program, and skips the test with a
// clear line when it is not installed. Debian keeps daemons in sbin, which is
// not on every PATH.
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
	t.Skipf("needs the program %s: run scripts/install", name)
	return ""
}

// FreeAddr is a loopback host:port that was free a moment ago.
func FreeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
