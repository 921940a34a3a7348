package s3test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"howdah/internal/testkit"
)

// Link is a connection to a server that can be slow, or pass on nothing.
type Link struct {
	Endpoint string // of the server, through this link
	delay    atomic.Int64
	open     sync.RWMutex // held for writing while nothing passes
}

// piece is how many bytes are delayed at once.
const piece = 16 << 10

// Link makes a link to the server, which ends with the test. At first it is as quick as the machine.
func (s *Server) Link(t testing.TB) *Link {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", testkit.FreeAddr(t))
	must(t, err)
	l := &Link{Endpoint: "https://" + listener.Addr().String()}
	ctx, cancel := context.WithCancel(context.Background())
	var going sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		going.Wait()
	})
	going.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			going.Go(func() { l.join(ctx, from, strings.TrimPrefix(s.Endpoint, "https://")) })
		}
	})
	return l
}

// Slow has each piece of 16 KiB, and each smaller message, come so much later, in both directions.
func (l *Link) Slow(delay time.Duration) { l.delay.Store(int64(delay)) }

// Hold has nothing pass until pass is called. Nobody is told of it.
func (l *Link) Hold() (pass func()) {
	l.open.Lock()
	return sync.OnceFunc(l.open.Unlock)
}

// join passes on what both sides send, until one of them ends.
func (l *Link) join(ctx context.Context, from net.Conn, addr string) {
	defer from.Close()
	to, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return
	}
	defer to.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { from.Close(); to.Close() })()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			defer cancel()
			l.pass(ctx, way[1], way[0])
		})
	}
	both.Wait()
}

func (l *Link) pass(ctx context.Context, to io.Writer, from io.Reader) {
	buffer := make([]byte, piece)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			select {
			case <-time.After(time.Duration(l.delay.Load())):
			case <-ctx.Done():
				return
			}
			l.open.RLock()
			l.open.RUnlock() //nolint:staticcheck // it waits while nothing passes
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
