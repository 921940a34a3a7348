package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"howdah/internal/edge/endpoint"
)

// isolated is set in the process that has a network namespace of its own.
const isolated = "HOWDAH_TEST_NETNS"

// Isolate is a TestMain that runs all tests of a package in a new network namespace. So tests
// cannot reach the machine's own rules and addresses, whatever they do. Without root there is no
// namespace, and tests that need one skip.
func Isolate(m *testing.M, open func(ctx context.Context, home, runDir string) (endpoint.Forwarder, error)) int {
	Main(open)
	if os.Geteuid() != 0 {
		return m.Run()
	}
	if os.Getenv(isolated) == "" {
		return again()
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		fmt.Println("set up lo:", err)
		return 1
	}
	return m.Run()
}

func again() int {
	runtime.LockOSThread() // it would be killed at the end of the thread that started it
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), isolated+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Println("enter a network namespace:", err)
		return 1
	}
	return cmd.ProcessState.ExitCode()
}

// Apart starts a child in a network namespace of its own that is wired to ours. The child has the
// address there, and reaches everything else through the address here. It waits for Go. Apart
// returns the name of the wire on our side, so that a test can cut it.
func Apart(t testing.TB, part string, here, there netip.Prefix) (*Child, string) {
	t.Helper()
	c := Prepare(t, syscall.CLONE_NEWNET, part)
	ns, err := netns.GetFromPid(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	remote, err := netlink.NewHandleAt(ns)
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	local, err := netlink.NewHandle()
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	name := fmt.Sprintf("to%d", c.Process.Pid)
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: "out", PeerNamespace: netlink.NsFd(ns)}
	if err := local.LinkAdd(pair); err != nil {
		t.Fatalf("add a wire: %v", err)
	}
	t.Cleanup(func() { unwire(name) }) // the kernel takes its time to do so after the child's end
	for _, end := range []struct {
		in   *netlink.Handle
		link string
		addr netip.Prefix
	}{{local, name, here}, {remote, "out", there}} {
		if err := configure(end.in, end.link, end.addr); err != nil {
			t.Fatalf("configure %s: %v", end.link, err)
		}
	}
	if err := configure(remote, "lo", netip.Prefix{}); err != nil {
		t.Fatal(err)
	}
	if err := remote.RouteAdd(&netlink.Route{Gw: here.Addr().AsSlice()}); err != nil {
		t.Fatalf("add a route: %v", err)
	}
	return c, name
}

// unwire fails if the child's namespace has already ended, and the wire with it.
func unwire(name string) {
	if link, err := netlink.LinkByName(name); err == nil {
		_ = netlink.LinkDel(link)
	}
}

func configure(in *netlink.Handle, name string, addr netip.Prefix) error {
	link, err := in.LinkByName(name)
	if err != nil {
		return err
	}
	if addr.IsValid() {
		ip := &net.IPNet{IP: addr.Addr().AsSlice(), Mask: net.CIDRMask(addr.Bits(), 32)}
		if err := in.AddrAdd(link, &netlink.Addr{IPNet: ip}); err != nil {
			return err
		}
	}
	return in.LinkSetUp(link)
}
