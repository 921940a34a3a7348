package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"howdah/internal/edge/endpoint"
	"howdah/internal/testkit"
)

// role is the environment variable that makes a child of a test binary play a
// part instead of running tests.
const role = "HOWDAH_TEST_ROLE"

// Main plays the part of a child process if this process is one, and returns
// otherwise. Call it first in TestMain.
func Main(open func(ctx context.Context, home, runDir string) (endpoint.Forwarder, error)) {
	part, args, _ := strings.Cut(os.Getenv(role), " ")
	if part == "" {
		return
	}
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		os.Exit(1) // the parent died before it said go
	}
	var err error
	switch part {
	case "server":
		err = playServer(args)
	case "forwarder":
		err = playForwarder(open, args)
	case "clients":
		err = playClients(args)
	default:
		err = fmt.Errorf("no such part: %s", part)
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// playServer serves on an address until it is killed.
func playServer(addr string) error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", addr)
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	serve(l)
	return nil
}

type forwarderPart struct {
	Home, RunDir string
	Endpoints    []endpoint.Endpoint
}

// playForwarder makes endpoints real and then waits to be killed.
func playForwarder(open func(ctx context.Context, home, runDir string) (endpoint.Forwarder, error), args string) error {
	var part forwarderPart
	if err := json.Unmarshal([]byte(args), &part); err != nil {
		return err
	}
	fw, err := open(context.Background(), part.Home, part.RunDir)
	if err != nil {
		return err
	}
	if _, err := fw.Sync(context.Background(), part.Endpoints); err != nil {
		return err
	}
	fmt.Println("synced")
	return fw.Run(context.Background())
}

// Child is a process that plays a part. It dies with the test.
type Child struct {
	*exec.Cmd
	lines *bufio.Scanner // of its standard output
	input io.Writer
}

// start runs this test binary in a part.
func start(t testing.TB, part string) *Child {
	t.Helper()
	c := Prepare(t, 0, part)
	c.Go(t)
	return c
}

// Prepare starts a child, in new namespaces if flags say so, that waits for Go.
func Prepare(t testing.TB, flags uintptr, part string) *Child {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), role+"="+part)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	testkit.Start(t, cmd)
	c := &Child{cmd, bufio.NewScanner(out), in}
	t.Cleanup(c.kill)
	return c
}

// Go makes the child play its part.
func (c *Child) Go(t testing.TB) {
	t.Helper()
	if _, err := fmt.Fprintln(c.input); err != nil {
		t.Fatal(err)
	}
}

// Line returns the next line that the child prints.
func (c *Child) Line(t testing.TB) string {
	t.Helper()
	if !c.lines.Scan() {
		t.Fatalf("child ended: %v", c.lines.Err())
	}
	return c.lines.Text()
}

// kill is kill -9. It also ends a stopped process.
func (c *Child) kill() {
	if c.ProcessState == nil {
		_ = c.Process.Kill() // it may be dead already
		_ = c.Wait()
	}
}

// NewFreezer starts a server that can be stopped in the middle of everything.
func NewFreezer(t testing.TB) (netip.AddrPort, *Child) {
	t.Helper()
	return NewFreezerAt(t, netip.AddrPortFrom(SomeAddr(), 0))
}

// NewFreezerAt is NewFreezer at an address of the caller's choice. Port 0 is any port.
func NewFreezerAt(t testing.TB, at netip.AddrPort) (netip.AddrPort, *Child) {
	t.Helper()
	c := start(t, ServerPart(at))
	addr, err := netip.ParseAddrPort(c.Line(t))
	if err != nil {
		t.Fatal(err)
	}
	return addr, c
}

// Freeze stops the process. It returns once the process does not run any more.
func (c *Child) Freeze(t testing.TB) {
	t.Helper()
	if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(c.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("stop the server: %v, status %v", err, status)
	}
}
