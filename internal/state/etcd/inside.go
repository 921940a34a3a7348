package etcd

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// inside is the socket of a member that listens in its own directory. That directory is closed to
// other users: whoever reaches the socket may do everything. A descriptor of the directory names
// the socket, because the name of a socket has 107 bytes at most.
type inside struct{ dir *os.File }

const insideSocket = "client.sock"

func openInside(dir string) (*inside, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make etcd's directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("close etcd's directory to others: %w", err)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open etcd's directory: %w", err)
	}
	return &inside{f}, nil
}

func (i *inside) path() string { return fmt.Sprintf("/proc/self/fd/%d/%s", i.dir.Fd(), insideSocket) }

func (i *inside) url() url.URL { return url.URL{Scheme: "unix", Path: i.path()} }

// close may be called on nil.
func (i *inside) close() {
	if i != nil {
		_ = i.dir.Close()
	}
}

// Inside connects, without TLS, to a member that listens inside. The caller may do everything.
func (m *Member) Inside(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", m.inside.path())
}

// InsideClient returns etcd's own client over Inside. The caller closes it.
func (m *Member) InsideClient(ctx context.Context) (*clientv3.Client, error) {
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return m.Inside(ctx) }
	client, err := clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: []string{"http://etcd"}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(dial), grpc.WithConnectParams(retry)},
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd inside: %w", err)
	}
	return client, nil
}

// InsideHTTP returns a client of the member's JSON gateway over Inside, for any http:// address.
// Each watch takes a connection of its own.
func (m *Member) InsideHTTP() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return m.Inside(ctx) },
		MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute,
	}}
}
