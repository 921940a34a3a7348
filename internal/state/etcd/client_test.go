package etcd

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/testkit"
)

// However long etcd is away, a client must not be late when it returns. With gRPC's own backoff the
// sixth attempt would come after about ten seconds, and the next after sixteen.
func TestAClientGoesOnTryingToConnect(t *testing.T) {
	ca, err := certs.New("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, _ := issue(t, ca, "client")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var attempts atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			attempts.Add(1)
			_ = c.Close()
		}
	}()
	client, err := Dial(t.Context(), []string{"https://" + l.Addr().String()}, pair)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	client.ActiveConnection().Connect()
	testkit.Eventually(t, 5*time.Second, func() error {
		if n := attempts.Load(); n < 6 {
			return fmt.Errorf("%d attempts", n)
		}
		return nil
	})
}
