package rig

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"howdah/internal/testkit"
)

func TestMain(m *testing.M) {
	Isolate() // without root there are no namespaces, and the tests that need them skip
	os.Exit(m.Run())
}

// A host that is cut off from one side reaches the others, and is whole again when it is told so.
func TestAHostIsCutOffFromOneSideAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	n, err := makeNetwork()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.remove(); err != nil {
			t.Error(err)
		}
	})
	r := &Rig{Options: Options{Netns: true}, net: n}
	etcd := answering(t, controlIP+":2379") // within the namespace that this test has to itself
	client := answering(t, controlIP+":5432")
	for _, c := range []struct {
		sides                 []Side
		control, peer, client bool
	}{
		{nil, true, true, true},
		{[]Side{Control()}, false, true, true},
		{[]Side{Control(), Peers()}, false, false, true},
		{[]Side{Peers("b")}, true, false, true},
		{[]Side{Peers("c")}, true, true, true},
		{[]Side{Clients()}, true, true, false},
		{[]Side{Control().Deaf()}, false, true, true},
		{[]Side{Peers().Mute()}, true, false, true},
		{nil, true, true, true},
	} {
		if err := r.Part("a", c.sides...); err != nil {
			t.Fatal(err)
		}
		for what, want := range map[string]bool{etcd: c.control, hostIP("b") + ":1": c.peer, client: c.client} {
			if !want {
				if r.reaches("a", what) == nil {
					t.Errorf("cut off from %v, zone a reaches %s", c.sides, what)
				}
				continue
			}
			testkit.Eventually(t, 10*time.Second, func() error { return r.reaches("a", what) })
		}
	}
}

// answering listens, and returns the address.
func answering(t *testing.T, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	return address
}

// reaches returns nil if an address answers a host, if only by refusing. Otherwise it returns what
// the host saw. It waits only a moment for an answer.
func (r *Rig) reaches(zone, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	args := r.HostCommand(zone, "timeout", "0.5", "bash", "-c", "exec 3<>/dev/tcp/"+host+"/"+port)
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if strings.Contains(string(out), "refused") {
		return nil
	}
	return err
}
