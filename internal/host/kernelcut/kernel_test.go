package kernelcut

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/testkit"
)

func TestCutRules(t *testing.T) {
	want := `add table inet howdah_x_fence_zone_a
delete table inet howdah_x_fence_zone_a
table inet howdah_x_fence_zone_a {
	set lost {
		type ipv4_addr . inet_service
		elements = { 10.0.0.1 . 5432, 10.0.0.1 . 8008 }
	}
	chain in {
		type filter hook input priority filter - 10
		ip saddr . tcp sport @lost tcp flags & rst == 0 drop
	}
	chain out {
		type filter hook output priority filter - 10
		ip daddr . tcp dport @lost reject with tcp reset
	}
}
`
	table := Table("x", "zone-a")
	if diff := cmp.Diff(want, cutRules(table, []string{"10.0.0.1:5432", "10.0.0.1:8008"})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(strings.Join(strings.SplitAfter(want, "\n")[:2], ""), cutRules(table, nil)); diff != "" {
		t.Errorf("without cuts: %s", diff)
	}
}

// With the cut in the kernel nothing that a lost primary says arrives any more, what goes to it is
// refused at once, and others are not touched. All of it can be lifted.
func TestKernelCut(t *testing.T) {
	testkit.NeedRoot(t)
	testkit.NeedProgram(t, "nft")
	k := &Rules{Table: Table(fmt.Sprintf("%08x", rand.Uint32()), "t")}
	if err := k.Try(t.Context()); err != nil {
		t.Skipf("needs rules in the kernel: %v", err)
	}
	t.Cleanup(func() {
		if _, err := k.Hold(context.Background(), nil); err != nil {
			t.Error(err)
		}
		if exec.Command("nft", "list", "table", "inet", k.Table).Run() == nil {
			t.Error("a table is left in the kernel")
		}
	})
	lost, other := listen(t), listen(t)
	server, client := lost.accept(t)
	cuts := []string{lost.Addr().String(), testkit.FreeAddr(t)}
	for range 2 { // the second time it mends what someone flushed
		if _, err := k.Hold(t.Context(), cuts); err != nil {
			t.Fatal(err)
		}
		if _, err := net.DialTimeout("tcp", lost.Addr().String(), 5*time.Second); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("connecting to the lost primary: %v, want a refusal", err)
		}
		if out, err := exec.Command("nft", "delete", "table", "inet", k.Table).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if _, err := k.Hold(t.Context(), cuts); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Write([]byte("commit confirmed")); err != nil {
		t.Fatal(err)
	}
	client.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	if n, err := client.Read(make([]byte, 100)); n > 0 {
		t.Errorf("%d bytes of the lost primary arrived, %v", n, err)
	}
	other.accept(t)
	if _, err := k.Hold(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	lost.accept(t)
}

type listener struct{ net.Listener }

func listen(t *testing.T) listener {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return listener{l}
}

// accept makes a connection and returns both ends.
func (l listener) accept(t *testing.T) (server, client net.Conn) {
	t.Helper()
	client, err := net.DialTimeout("tcp", l.Addr().String(), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return server, client
}
