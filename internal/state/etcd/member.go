// Package etcd runs the embedded etcd member of a control plane, with mutual TLS for clients and
// peers. Only this package knows etcd's own configuration. Package state reads and writes the
// state.
package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

	"howdah/internal/identity/certs"
)

// startTimeout covers a replay of a large log on a slow disk.
const startTimeout = 60 * time.Second

// joinTimeout is how long one that joins waits until the member that it asks knows of it.
const joinTimeout = 5 * time.Second

// Config describes one member.
type Config struct {
	Name    string // unique among the members, stable over restarts
	Dir     string // data directory; holds everything that must survive
	CertDir string // tls.crt, tls.key and ca.crt for clients and peers
	// PeerName is the common name in the certificates of all members. A caller with another name is
	// no peer, and could otherwise write into raft's log. "" takes any name of the authority.
	PeerName string
	// ClientAddr and PeerAddr are host:port, both to listen on and to advertise.
	ClientAddr, PeerAddr string
	// Inside makes the member listen for clients only in its own directory (Member.Inside).
	// Somebody else listens at ClientAddr, and decides what clients may do.
	Inside bool
	// Peers, with Join, is etcd's initial-cluster text: name=url,name=url.
	Peers string
	Join  bool
	// Tick is the period of raft's clock, in whole milliseconds. 0 is etcd's default of 100 ms. An
	// election takes up to twenty ticks, also that of a member that is alone.
	Tick time.Duration
	// Quota is how large the database may be, in bytes, before nobody can write. 0 is DefaultQuota.
	Quota int64
	// Alone makes the member the only one of its cluster, whatever others there were.
	Alone bool
	Log   *slog.Logger
}

// Member is a running etcd member.
type Member struct {
	// Client talks to the member within the process: no network, no TLS.
	Client *clientv3.Client
	server *embed.Etcd
	inside *inside // nil: it listens at ClientAddr
	close  sync.Once
}

// Start runs a member and returns once it serves. A member that joins a cluster starts as a
// learner. Then call Promote, which waits until the member has caught up.
func Start(ctx context.Context, cfg Config) (*Member, error) {
	conf, err := cfg.embed()
	if err != nil {
		return nil, err
	}
	var door *inside
	if cfg.Inside {
		if door, err = openInside(cfg.Dir); err != nil {
			return nil, err
		}
		conf.ListenClientUrls, conf.ClientTLSInfo = []url.URL{door.url()}, transport.TLSInfo{}
	}
	m, err := launch(ctx, conf)
	for until := time.Now().Add(joinTimeout); cfg.Join && isBehind(err) && ctx.Err() == nil && time.Now().Before(until); m, err = launch(ctx, conf) {
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		door.close()
		return nil, err
	}
	m.inside = door
	return m, nil
}

// isBehind reports whether another member, which etcd asked, did not know yet who was added.
func isBehind(err error) bool {
	return err != nil && strings.Contains(err.Error(), "error validating peerURLs")
}

// launch returns once the member serves.
func launch(ctx context.Context, conf *embed.Config) (*Member, error) {
	server, err := embed.StartEtcd(conf)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		server.Close()
		return nil, fmt.Errorf("start etcd: %w", err)
	case <-ctx.Done():
		server.Close()
		return nil, fmt.Errorf("start etcd: %w", ctx.Err())
	}
	return &Member{Client: v3client.New(server.Server), server: server}, nil
}

func (cfg Config) embed() (*embed.Config, error) {
	client, err := url.Parse("https://" + cfg.ClientAddr)
	if err != nil {
		return nil, fmt.Errorf("client address %q: %w", cfg.ClientAddr, err)
	}
	peer, err := url.Parse("https://" + cfg.PeerAddr)
	if err != nil {
		return nil, fmt.Errorf("peer address %q: %w", cfg.PeerAddr, err)
	}
	conf := embed.NewConfig()
	conf.Name = cfg.Name
	conf.Dir = cfg.Dir
	conf.ListenClientUrls, conf.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	conf.ListenPeerUrls, conf.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	conf.InitialCluster = cfg.Name + "=" + peer.String()
	if cfg.Join {
		conf.InitialCluster = cfg.Peers
		conf.ClusterState = embed.ClusterStateFlagExisting
	}
	tls := transport.TLSInfo{
		CertFile:       filepath.Join(cfg.CertDir, certs.CertFile),
		KeyFile:        filepath.Join(cfg.CertDir, certs.KeyFile),
		TrustedCAFile:  filepath.Join(cfg.CertDir, certs.CAFile),
		ClientCertAuth: true,
	}
	conf.ClientTLSInfo, conf.PeerTLSInfo = tls, tls
	if cfg.PeerName != "" {
		conf.PeerTLSInfo.AllowedCNs = []string{cfg.PeerName}
	}
	// Leases and watches need little history. Gates ask for the last minutes. Keeper also compacts
	// by size.
	conf.AutoCompactionMode = embed.CompactorModePeriodic
	conf.AutoCompactionRetention = "10m"
	// Raft's log is kept in memory up to the snapshot. A small log is enough here.
	conf.SnapshotCount = 2000
	conf.SnapshotCatchUpEntries = 1000
	conf.QuotaBackendBytes = cmp.Or(cfg.Quota, DefaultQuota)
	// Changes that must happen at once may be more than the usual 128: a reset of all parameters of
	// a group, or a larger class for all that follow a database. Changes that stand alone go by
	// state.Batches.
	conf.MaxTxnOps = 1024
	conf.ForceNewCluster = cfg.Alone
	if cfg.Tick != 0 {
		conf.TickMs = uint(cfg.Tick.Milliseconds())
		conf.ElectionMs = 10 * conf.TickMs
	}
	conf.ZapLoggerBuilder = zapTo(cfg.Log)
	return conf, nil
}

// Err delivers the error of a member that stopped by itself.
func (m *Member) Err() <-chan error { return m.server.Err() }

// Leading reports whether this member is etcd's raft leader now.
func (m *Member) Leading() bool {
	return m.server.Server.Leader() == m.server.Server.MemberID()
}

// Newest returns a revision that is not below any write which was acknowledged before the call. The
// members of a cluster have to agree on it. A member that votes alone knows it. It does not wait
// for the disk, on which it may be writing what others ask for.
func (m *Member) Newest(ctx context.Context) (int64, error) {
	if m.alone() {
		answer, err := m.Client.Get(ctx, "/", clientv3.WithSerializable())
		// Another member votes only after this one has counted it. Before that it decides nothing.
		if err == nil && m.alone() {
			return answer.Header.Revision, nil
		}
	}
	answer, err := m.Client.Get(ctx, "/")
	if err != nil {
		return 0, fmt.Errorf("ask etcd for the newest revision: %w", err)
	}
	return answer.Header.Revision, nil
}

// alone reports whether this is the only member that votes.
func (m *Member) alone() bool {
	voters := slices.DeleteFunc(m.server.Server.Cluster().Members(), func(o *membership.Member) bool { return o.IsLearner })
	return len(voters) == 1 && voters[0].ID == m.server.Server.MemberID()
}

// Close stops the member. Its data stay. It is idempotent.
func (m *Member) Close() {
	m.close.Do(func() {
		m.Client.Close()
		m.server.Close()
		m.inside.close()
	})
}

// ClientURLs lists where the voting members serve clients, as the cluster knows it.
func ClientURLs(ctx context.Context, client *clientv3.Client) ([]string, error) {
	list, err := client.MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("list etcd members: %w", err)
	}
	var urls []string
	for _, m := range list.Members {
		if !m.IsLearner {
			urls = append(urls, m.ClientURLs...)
		}
	}
	return urls, nil
}

// Add tells the cluster that a member with this name and peer address will join, as a learner. It
// returns the initial-cluster text that the member needs. While the cluster is too young or
// unhealthy for a change it waits, until ctx ends. It is idempotent: a second call with the same
// address gives the same answer.
func Add(ctx context.Context, client *clientv3.Client, name, peerAddr string) (peers string, err error) {
	peerURL := "https://" + peerAddr
	list, err := client.MemberList(ctx)
	if err != nil {
		return "", fmt.Errorf("list etcd members: %w", err)
	}
	members := list.Members
	known := false
	for _, m := range members {
		known = known || (len(m.PeerURLs) > 0 && m.PeerURLs[0] == peerURL)
	}
	if !known {
		if members, err = addLearner(ctx, client, peerURL); err != nil {
			return "", fmt.Errorf("add etcd member %s: %w", name, err)
		}
	}
	var parts []string
	for _, m := range members {
		memberName := m.Name
		if len(m.PeerURLs) > 0 && m.PeerURLs[0] == peerURL {
			memberName = name
		}
		for _, u := range m.PeerURLs {
			parts = append(parts, memberName+"="+u)
		}
	}
	return strings.Join(parts, ","), nil
}

// addLearner waits while etcd judges the cluster unhealthy, as it does for some seconds after the
// previous member was added.
func addLearner(ctx context.Context, client *clientv3.Client, peerURL string) ([]*etcdserverpb.Member, error) {
	for {
		added, err := client.MemberAddAsLearner(ctx, []string{peerURL})
		if err == nil {
			return added.Members, nil
		}
		if !errors.Is(err, rpctypes.ErrUnhealthy) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Promote makes this member, a learner, a voter. It waits until the member has caught up. It does
// nothing for a voter.
func (m *Member) Promote(ctx context.Context) error {
	id := uint64(m.server.Server.MemberID())
	for m.server.Server.IsLearner() {
		_, err := m.server.Server.PromoteMember(ctx, id)
		if err != nil && !retryPromote(err) {
			return fmt.Errorf("promote etcd learner: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("promote etcd learner: %w", ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil
}

func retryPromote(err error) bool {
	return errors.Is(err, rpctypes.ErrMemberLearnerNotReady) || strings.Contains(err.Error(), "learner") ||
		errors.Is(err, context.DeadlineExceeded)
}
