package haproxy

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/endpoint/conformance"
	"howdah/internal/testkit"
)

func newForwarder(t testing.TB, dir string) *Forwarder {
	t.Helper()
	testkit.NeedProgram(t, "haproxy")
	f, err := New(context.Background(), endpoint.Config{Home: "test", RunDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Remove(context.Background()); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return f
}

func runDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ep")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "run")
}

// Only its own directory is closed to others. The directories above it also lead to the sockets of
// PostgreSQL, whichever part of the home comes first.
func TestTheDirectoryAboveStaysOpen(t *testing.T) {
	above := filepath.Join(filepath.Dir(runDir(t)), "howdah", "0123abcd")
	newForwarder(t, filepath.Join(above, "ep"))
	for dir, want := range map[string]os.FileMode{filepath.Dir(above): 0o711, above: 0o711, filepath.Join(above, "ep"): 0o700} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", dir, info.Mode().Perm(), err, want)
		}
	}
}

func lead(listen netip.AddrPort, targets ...netip.AddrPort) endpoint.Endpoint {
	return endpoint.Endpoint{ID: "test", Listen: listen, Targets: targets}
}

// mustSync returns what was mended.
func mustSync(t testing.TB, f *Forwarder, all ...endpoint.Endpoint) string {
	t.Helper()
	mended, err := f.Sync(context.Background(), all)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(mended, "; ")
}

func pidOf(t *testing.T, f *Forwarder, listen netip.AddrPort) int {
	t.Helper()
	pid, err := filesOf(f.dir, listen).pid(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// TestHold checks that hold takes no process that is not the proxy, whatever its id, and none that
// has ended.
func TestHold(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if p, err := hold(pid, "/run/x.cfg"); p != nil || err != nil {
		t.Errorf("took hold of sleep: %v, %v", p, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if p, err := hold(pid, "/run/x.cfg"); p != nil || err != nil {
		t.Errorf("took hold of nothing: %v, %v", p, err)
	}
	f := newForwarder(t, runDir(t))
	listen := conformance.SomeListen()
	mustSync(t, f, lead(listen))
	if p, err := hold(pidOf(t, f, listen), "/run/x.cfg"); p != nil || err != nil {
		t.Errorf("took hold of the proxy of another endpoint: %v, %v", p, err)
	}
}

// TestStoppedProxy checks that a proxy which does not answer is replaced.
func TestStoppedProxy(t *testing.T) {
	f := newForwarder(t, runDir(t))
	listen, server := conformance.SomeListen(), conformance.NewServer(t)
	mustSync(t, f, lead(listen, server))
	if err := unix.Kill(pidOf(t, f, listen), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if mended := mustSync(t, f, lead(listen, server)); !strings.Contains(mended, "did not answer") {
		t.Errorf("mended %q", mended)
	}
	conformance.Join(t, listen, server)
}

// TestGivenUp checks that a Sync which is called off ends no proxy.
func TestGivenUp(t *testing.T) {
	f := newForwarder(t, runDir(t))
	listen, server := conformance.SomeListen(), conformance.NewServer(t)
	mustSync(t, f, lead(listen, server))
	s := conformance.Join(t, listen, server)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Sync(ctx, []endpoint.Endpoint{lead(listen, server)}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if mended := mustSync(t, f, lead(listen, server)); mended != "" {
		t.Errorf("mended %q", mended)
	}
	conformance.Check(t, s, server)
}

// TestLostInStart checks that a proxy which was started, and could not be asked for its process id,
// is known all the same.
func TestLostInStart(t *testing.T) {
	f := newForwarder(t, runDir(t))
	listen, server := conformance.SomeListen(), conformance.NewServer(t)
	mustSync(t, f)
	if err := start(t.Context(), f.program, filesOf(f.dir, listen), lead(listen, server), f.maxConn); err != nil {
		t.Fatal(err)
	}
	known := pidOf(t, f, listen)
	for range 2 {
		if err := f.adopt(); err != nil {
			t.Fatal(err)
		}
	}
	mustSync(t, f, lead(listen, server))
	if got := pidOf(t, f, listen); got != known {
		t.Errorf("proxy %d, want %d", got, known)
	}
	conformance.Join(t, listen, server)
}

// TestRunTriesAgain checks that a proxy which could not be started again is started once it can be.
func TestRunTriesAgain(t *testing.T) {
	dir := runDir(t)
	f := newForwarder(t, dir)
	listen, server := conformance.SomeListen(), conformance.NewServer(t)
	mustSync(t, f, lead(listen, server))
	config := filesOf(f.dir, listen).config()
	obstacle := filepath.Join(config, "obstacle")
	if err := errors.Join(os.Remove(config), os.MkdirAll(obstacle, 0o700)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	killAll(t, "", dir)
	testkit.Eventually(t, answerTime, func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.proxies) > 0 {
			return errors.New("it has not seen that the proxy ended")
		}
		return nil
	})
	if err := errors.Join(os.Remove(obstacle), os.Remove(config)); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, startTime, func() error {
		s, err := conformance.Dial(listen)
		if err == nil {
			err = s.Close()
		}
		return err
	})
}

// TestMeddling checks that what someone does through the socket of a proxy is put right.
func TestMeddling(t *testing.T) {
	f := newForwarder(t, runDir(t))
	listen, server := conformance.SomeListen(), conformance.NewServer(t)
	mustSync(t, f, lead(listen, server))
	s := conformance.Join(t, listen, server)
	if _, err := filesOf(f.dir, listen).ask(t.Context(), "disable frontend clients", "set server targets/l1 state maint"); err != nil {
		t.Fatal(err)
	}
	conformance.Refuses(t, listen)
	if mended := mustSync(t, f, lead(listen, server)); !strings.Contains(mended, "led elsewhere") {
		t.Errorf("mended %q", mended)
	}
	conformance.Join(t, listen, server)
	conformance.Check(t, s, server)
}

// TestTwoProxies checks that one of two proxies is ended. A kill -9 between the start of a proxy
// and the end of a Sync can lead to two.
func TestTwoProxies(t *testing.T) {
	dir := runDir(t)
	first := newForwarder(t, dir)
	listen, server := conformance.SomeListen(), conformance.NewServer(t)
	mustSync(t, first, lead(listen, server))
	if err := start(t.Context(), first.program, filesOf(dir, listen), lead(listen, server), first.maxConn); err != nil {
		t.Fatal(err)
	}
	second := newForwarder(t, dir)
	mustSync(t, second, lead(listen, server))
	found, err := running(dir)
	if err != nil || len(found) != 1 || len(found[filesOf(dir, listen).config()]) != 1 {
		t.Errorf("running: %v, %v", found, err)
	}
	conformance.Join(t, listen, server)
}

// TestAddressTaken checks that Sync names an endpoint that cannot be made, and makes the others.
func TestAddressTaken(t *testing.T) {
	f := newForwarder(t, runDir(t))
	listen, server := conformance.SomeListen(), conformance.NewServer(t)
	taken := conformance.NewServer(t)
	_, err := f.Sync(t.Context(), []endpoint.Endpoint{lead(taken, server), lead(listen, server)})
	if err == nil || !strings.Contains(err.Error(), taken.String()) {
		t.Errorf("error %v, want one that names %s", err, taken)
	}
	conformance.Join(t, listen, server)
	mustSync(t, f, lead(listen, server))
}

func TestTooManyTargets(t *testing.T) {
	f := newForwarder(t, runDir(t))
	listen := conformance.SomeListen()
	var targets []netip.AddrPort
	for i := range slots + 1 {
		targets = append(targets, netip.AddrPortFrom(nowhere.Addr(), uint16(i+2)))
	}
	mustSync(t, f, lead(listen, targets[:slots]...))
	if err := f.Point(t.Context(), lead(listen, targets...)); !errors.Is(err, errSlots) {
		t.Errorf("error %v", err)
	}
}

// TestPrepare checks that others cannot reach the sockets.
func TestPrepare(t *testing.T) {
	dir := runDir(t)
	if err := prepare(dir); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("made %v, %v", st, err)
	}
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o750); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"open to others": open, "a link": link, "relative": "run", "none": "", "too long": "/" + strings.Repeat("d", maxDir),
	} {
		if err := prepare(bad); !errors.Is(err, endpoint.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSocketIsPrivate(t *testing.T) {
	f := newForwarder(t, runDir(t))
	listen := conformance.SomeListen()
	mustSync(t, f, lead(listen))
	st, err := os.Stat(filesOf(f.dir, listen).socket())
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", st.Mode(), err)
	}
}

// TestKeepalive checks that both sides of a session have the kernel's keepalive timer.
func TestKeepalive(t *testing.T) {
	f := newForwarder(t, runDir(t))
	listen, server := conformance.SomeListen(), conformance.NewServer(t)
	mustSync(t, f, lead(listen, server))
	s := conformance.Join(t, listen, server)
	client := s.LocalAddr().(*net.TCPAddr).AddrPort()
	testkit.Eventually(t, answerTime, func() error {
		table, err := os.ReadFile("/proc/net/tcp")
		if err != nil {
			return err
		}
		kept := map[string]bool{}
		for _, line := range strings.Split(string(table), "\n") {
			words := strings.Fields(line)
			if len(words) > 5 && strings.HasPrefix(words[5], "02:") { // the timer is that of keepalive
				kept[words[1]+" "+words[2]] = true
				kept[words[2]] = true
			}
		}
		if !kept[kernelForm(listen)+" "+kernelForm(client)] {
			return fmt.Errorf("no keepalive on the client's side")
		}
		if !kept[kernelForm(server)] {
			return fmt.Errorf("no keepalive on the server's side")
		}
		return nil
	})
}

// kernelForm returns an address as /proc/net/tcp has it.
func kernelForm(a netip.AddrPort) string {
	b := a.Addr().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(b[:]), a.Port())
}

// TestMemory checks what `status` tells: 6 MB for a proxy.
func TestMemory(t *testing.T) {
	f := newForwarder(t, runDir(t))
	listen, server := conformance.SomeListen(), conformance.NewServer(t)
	mustSync(t, f, lead(listen, server))
	fresh := resident(t, pidOf(t, f, listen))
	for range 100 {
		conformance.Join(t, listen, server)
	}
	used := resident(t, pidOf(t, f, listen))
	t.Logf("RSS %d kB, with 100 idle sessions %d kB", fresh, used)
	if fresh > 7000 || used > fresh+1000 {
		t.Errorf("RSS %d kB, with 100 idle sessions %d kB", fresh, used)
	}
}

func resident(t *testing.T, pid int) (kB int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	if _, err := fmt.Sscan(rest, &kB); err != nil {
		t.Fatal(err)
	}
	return kB
}
