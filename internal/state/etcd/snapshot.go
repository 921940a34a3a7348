package etcd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// Snapshot writes all that the member has at one moment, with a checksum at the end.
func (m *Member) Snapshot(ctx context.Context, to io.Writer) error {
	return Snapshots(m.Client)(ctx, to)
}

// Snapshots does the same for the member that a client is connected to. That member must have all
// that was written before.
func Snapshots(client *clientv3.Client) func(ctx context.Context, to io.Writer) error {
	return func(ctx context.Context, to io.Writer) error {
		if _, err := client.Get(ctx, "/"); err != nil {
			return fmt.Errorf("take a snapshot of etcd: %w", err)
		}
		from, err := client.Snapshot(ctx)
		if err != nil {
			return fmt.Errorf("take a snapshot of etcd: %w", err)
		}
		defer from.Close()
		if _, err := io.Copy(to, from); err != nil {
			return fmt.Errorf("take a snapshot of etcd: %w", err)
		}
		return nil
	}
}

// SnapshotState says what a snapshot holds.
type SnapshotState struct {
	Revision int64
	Keys     int
}

// CheckSnapshot reads all of a snapshot, which is a file of its own.
func CheckSnapshot(path string) (SnapshotState, error) {
	status, err := snapshot.NewV3(zap.NewNop()).Status(path)
	if err != nil {
		return SnapshotState{}, fmt.Errorf("read a snapshot of etcd: %w", err)
	}
	return SnapshotState{Revision: status.Revision, Keys: status.TotalKey}, nil
}

// Beyond is how much higher the revisions of a restored etcd are than those of its snapshot. So
// they are higher than all that anybody has seen since: ten years of a thousand writes a second
// would not reach that.
const Beyond = 1 << 40

// Unpack makes the data directory of a cluster of one member from a snapshot. Nobody can take the
// new cluster for the old one. It has another identity, its revisions are far higher, and its
// history is gone, so that watchers read everything again.
func Unpack(path, dir, name, peerAddr string) error {
	token := make([]byte, 16)
	if _, err := rand.Read(token); err != nil {
		return fmt.Errorf("make a cluster: %w", err)
	}
	peer := "https://" + peerAddr
	err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: path, OutputDataDir: dir, Name: name, PeerURLs: []string{peer},
		InitialCluster: name + "=" + peer, InitialClusterToken: hex.EncodeToString(token),
		RevisionBump: Beyond, MarkCompacted: true,
	})
	if err != nil {
		return fmt.Errorf("restore etcd from its snapshot: %w", err)
	}
	return nil
}

// StartAside runs a member of a data directory for the caller alone: nobody else knows where it
// listens. alone makes it the only member of its cluster, whatever others there were.
func StartAside(ctx context.Context, dir, certDir, name string, alone bool, log *slog.Logger) (*Member, error) {
	var last error
	for range 5 { // somebody may take a port that was free
		client, peer, err := freeAddrs(ctx)
		if err != nil {
			return nil, err
		}
		var m *Member
		m, last = Start(ctx, Config{
			Name: name, Dir: dir, CertDir: certDir, ClientAddr: client, PeerAddr: peer, Tick: 10 * time.Millisecond, Alone: alone, Log: log,
		})
		if last == nil {
			return m, nil
		}
	}
	return nil, last
}

func freeAddrs(ctx context.Context) (client, peer string, err error) {
	var addrs [2]string
	for i := range addrs {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close()
		addrs[i] = l.Addr().String()
	}
	return addrs[0], addrs[1], nil
}
