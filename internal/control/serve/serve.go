// Package serve is a control plane: embedded etcd, the API, and, in the control plane that leads,
// the reconciler and the judge. Databases do not need it to serve. They need it to change.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"golang.org/x/sync/errgroup"

	admin "howdah/internal/admin/server"
	"howdah/internal/aws/audit"
	"howdah/internal/aws/server"
	databasebackup "howdah/internal/control/backup"
	"howdah/internal/control/job"
	"howdah/internal/control/judge"
	"howdah/internal/control/notify"
	"howdah/internal/control/operation"
	"howdah/internal/control/plan"
	"howdah/internal/control/reconcile"
	"howdah/internal/control/rewind"
	"howdah/internal/host/hostapi"
	"howdah/internal/identity/authority"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/identity/kms"
	"howdah/internal/identity/stranger"
	"howdah/internal/model/patroni"
	"howdah/internal/model/zone"
	"howdah/internal/state"
	"howdah/internal/state/backup"
	"howdah/internal/state/etcd"
	"howdah/internal/state/format"
)

const (
	etcdClientPort = 2379
	etcdPeerPort   = 2380
	etcdGatePort   = 2378
	// electionTTL is after how many seconds another control plane takes over from one that died.
	electionTTL = 3
	// handOverWithin is how long a control plane that stops may take to say so.
	handOverWithin = 2 * time.Second
)

// Config is what a control plane is started with.
type Config struct {
	Home *home.Home
	Name string // among the control planes; etcd's member name
	// Address is the IP for etcd and for hosts. The API listens on Home.Listen.
	Address string
	Peers   string // etcd's initial cluster, of one that joins
	Join    bool
	Policy  plan.Policy
	Pool    string // CIDR of endpoint addresses
	// EtcdQuota is how large etcd's database may be, in bytes. 0 is etcd.DefaultQuota.
	EtcdQuota int64
	// Backups takes backups of the home. nil takes none. Its Dir, Every and Keep are set.
	Backups *backup.Schedule
	// Zone is the DNS zone in which databases have names, "" if they shall have none. nil leaves it
	// as it is.
	Zone *zone.Zone
	// See judge.Config for Detection and Stonith.
	Detection time.Duration
	Stonith   string
	Version   string
	Log       *slog.Logger
}

// Run serves until ctx ends. Each step needs the one before: identity, state, the mirror of the
// state, then what answers callers.
func Run(ctx context.Context, cfg Config) error {
	ca, identity, err := cfg.identity()
	if err != nil {
		return err
	}
	if cfg.Home.Began() && !HasState(cfg.Home) && !cfg.Join {
		// An empty state would be another home, and hosts would believe it.
		return home.ErrNoState
	}
	member, err := etcd.Start(ctx, cfg.etcd())
	if err != nil {
		return err
	}
	if err := cfg.Home.Begin(); err != nil {
		return fmt.Errorf("note that the home has a state: %w", err)
	}
	defer member.Close()
	if err := cfg.readable(ctx, member.Client); err != nil {
		return err
	}
	store := &state.Store{Client: member.Client}
	cache := state.NewCache(member.Client, cfg.Log, state.Root, patroni.Namespace)
	door, err := cfg.listenDoor(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer func() { stop(); _ = group.Wait() }() // before etcd is closed
	// Hosts are let in first, because their databases go on.
	group.Go(func() error { return cfg.serveDoor(ctx, door, identity, member, cache) })
	if err := member.Promote(ctx); err != nil {
		return err
	}
	pulse := judge.NewPulse()
	seals, err := cfg.seals()
	if err != nil {
		return err
	}
	reconciler := &reconcile.Reconciler{Store: store, Cache: cache, Policy: cfg.Policy, Seals: seals, Log: cfg.Log.With("component", "reconcile")}
	reconciler.Watch()
	notifier := notify.New(notify.Config{
		Store: store, Cache: cache, Base: "https://" + cfg.hostAddr(), CA: ca, Dir: cfg.Home.SignerDir(), SMTP: cfg.Home.SMTP,
		Own: cfg.own(cache).listens, Retry: notify.DefaultRetry, Log: cfg.Log.With("component", "notify"),
	})
	places := newPlaces(cfg, cache)
	backups := databasebackup.New(databasebackup.Config{
		Store: store, Cache: cache, Hosts: job.New(store, cache), Repository: cfg.opener(store), Low: places.lowOf, Log: cfg.Log.With("component", "database-backup"),
	})
	rewinds := rewind.Definition(rewind.Config{Store: store, Cache: cache, Look: rewind.LookEvery, Log: cfg.Log.With("component", "rewind")})
	operations := operation.New(operation.Config{
		Store: store, Cache: cache, Name: cfg.Name, Definitions: append(backups.Definitions(), rewinds), Log: cfg.Log.With("component", "operation"),
	})
	members, err := cfg.members(ctx, store)
	if err != nil {
		return err
	}
	now, err := format.Read(ctx, member.Client)
	if err == nil {
		err = now.Check(cfg.Version) // one that was behind has caught up
	}
	if err != nil {
		return err
	}
	named, err := cfg.setZone(ctx, store)
	if err != nil {
		return err
	}
	began, err := cfg.introduce(ctx, store, now, named)
	if err != nil {
		return err
	}
	keeper := &etcd.Keeper{
		Member: member, Credentials: identity, Log: cfg.Log.With("component", "etcd"),
		Busy: func(context.Context) bool { return len(cache.Keys(state.FenceRoot)) > 0 },
	}
	if b := cfg.Backups; b != nil {
		b.From = backup.Source{Home: cfg.Home, Snapshot: member.Snapshot, Version: cfg.Version, Format: format.Of(member.Client)}
		b.Log = cfg.Log.With("component", "backup")
	}
	calls := audit.Open(cfg.Home.AuditDir(), cfg.Log.With("component", "audit"))
	defer calls.Close()
	api, err := server.New(server.Config{
		Home: cfg.Home, Store: store, Cache: cache, Policy: cfg.Policy, Pool: cfg.Pool, PublicPool: cfg.Home.PublicPool,
		Log: cfg.Log.With("component", "api"), Audit: calls, Newest: member.Newest, Scarce: keeper.Scarce,
		Logs: &hostapi.LogReader{Identity: identity}, Settings: &hostapi.SettingChecker{Identity: identity},
		Hearing: pulse, Began: began,
	})
	if err != nil {
		return err
	}
	admins := admin.New(admin.Config{
		Home: cfg.Home, State: api.State(), Front: api.Front(), Looks: api.Looks(), Records: api.Records(), Authorities: api.Authorities(),
		Etcd: keeper, NoBackup: cfg.Backups.Failing, Repositories: &hostapi.Prober{Identity: identity}, Fetches: &hostapi.Fetcher{Identity: identity},
		NoRepository: places.none, Away: places.away, Low: places.low, Version: cfg.Version, Log: cfg.Log.With("component", "api"),
	})
	hosts := &hostapi.Server{
		Home: cfg.Home, CA: ca, Store: store, Etcd: member.Client, Beat: pulse.Beat, Log: cfg.Log.With("component", "hosts"),
		Login: api.Login,
		Authority: func(ctx context.Context, name string) (*certs.CA, error) {
			return authority.Get(ctx, store, ca, cfg.Home.SealKey, name)
		},
		Storage: func(ctx context.Context, database, member string) ([]byte, error) {
			return kms.Open(ctx, store, cfg.Home.SealKey, database, member)
		},
		Placed: func(ctx context.Context, database, name string) (string, error) {
			return placed(ctx, store, database, name)
		},
		Repository: cfg.opener(store),
		Bucket:     cfg.buckets(store, cache),
		Members:    func(context.Context) (*certs.CA, error) { return members, nil },
	}
	group.Go(func() error { return cache.Run(ctx) })
	group.Go(func() error { return watchEtcd(ctx, member) })
	group.Go(func() error { return cfg.follow(ctx, store, cache) })
	group.Go(func() error { return keeper.Run(ctx) })
	group.Go(func() error { return places.watch(ctx) })
	if cfg.Backups != nil {
		group.Go(func() error { return cfg.Backups.Run(ctx) })
	}
	group.Go(func() error { return identity.Keep(ctx, cfg.renewal(ca)) })
	handler := routes(api, admins, hosts.Handler(), http.HandlerFunc(notifier.ServeCert), api.Bundle)
	group.Go(func() error { return cfg.listen(ctx, identity, handler) })
	group.Go(func() error { return cfg.serveGate(ctx, identity, members, member, cache) })
	group.Go(func() error {
		return lead(ctx, member.Client, cfg.Name, cfg.Log, func(ctx context.Context, held state.Op) error {
			j := judge.New(judge.Config{
				Store: store, Cache: cache, Pulse: pulse, Detection: cfg.Detection, Stonith: cfg.Stonith,
				Leading: held, Log: cfg.Log.With("component", "judge"),
			})
			leading, ctx := errgroup.WithContext(ctx)
			leading.Go(func() error { return reconciler.Run(ctx) })
			leading.Go(func() error { return j.Run(ctx) })
			leading.Go(func() error { return cfg.raiseFormat(ctx, store, cache, held) })
			leading.Go(func() error { return api.Upkeep().RunHouse(ctx) })
			leading.Go(func() error { return api.Upkeep().RunAuthorities(ctx) })
			leading.Go(func() error { return notifier.Run(ctx) })
			leading.Go(func() error { return places.ensure(ctx, store, held) })
			leading.Go(func() error { return operations.Run(ctx, held) })
			leading.Go(func() error { return backups.Keep(ctx, held) })
			return leading.Wait()
		})
	})
	return group.Wait()
}

// identity reads the authority and the control plane's certificate. It makes the certificate anew
// when it ages or its addresses changed.
func (cfg Config) identity() (*certs.CA, *certs.Identity, error) {
	ca, err := cfg.Home.CA()
	if err != nil {
		return nil, nil, err
	}
	renewal := cfg.renewal(ca)
	pair, err := certs.Load(cfg.Home.CertDir())
	if err != nil || !pair.Fresh(renewal.Subject, time.Now()) {
		if pair, err = renewal.Get(context.Background()); err != nil {
			return nil, nil, err
		}
	}
	identity, err := certs.NewIdentity(pair)
	return ca, identity, err
}

// renewal returns how the control plane's own certificate is made. Embedded etcd reads it from its
// file for each connection that begins.
func (cfg Config) renewal(ca *certs.CA) certs.Renewal {
	extra := []net.IP{net.ParseIP(cfg.Address)}
	return certs.Renewal{
		Subject: cfg.Home.ServerSubject(extra),
		Get: func(context.Context) (certs.Pair, error) {
			if err := cfg.Home.IssueServerCert(ca, extra); err != nil {
				return certs.Pair{}, err
			}
			return certs.Load(cfg.Home.CertDir())
		},
		Log: cfg.Log.With("component", "certificate"),
	}
}

func (cfg Config) etcd() etcd.Config {
	return etcd.Config{
		Name: cfg.Name, Dir: cfg.Home.EtcdDir(), CertDir: cfg.Home.CertDir(), PeerName: home.ServerName,
		ClientAddr: ClientAddr(cfg.Address), Inside: true,
		PeerAddr: fmt.Sprintf("%s:%d", cfg.Address, etcdPeerPort),
		Peers:    cfg.Peers, Join: cfg.Join && !HasState(cfg.Home),
		Quota: cfg.EtcdQuota, Log: cfg.Log.With("component", "etcd"),
	}
}

// ClientAddr returns where the etcd of a control plane at this address serves clients.
func ClientAddr(address string) string { return fmt.Sprintf("%s:%d", address, etcdClientPort) }

// PeerAddr returns where the etcd of a control plane at this address talks to others.
func PeerAddr(address string) string { return fmt.Sprintf("%s:%d", address, etcdPeerPort) }

// HasState reports whether the control plane of a home has state on disk. Then it starts from that,
// and joins nobody.
func HasState(h *home.Home) bool {
	_, err := os.Stat(filepath.Join(h.EtcdDir(), "member"))
	return err == nil
}

// introduce tells hosts where this control plane answers, and tells edges that it has started,
// which those that run answer. It returns the revision of its write.
func (cfg Config) introduce(ctx context.Context, store *state.Store, now format.Record, named zone.Zone) (int64, error) {
	me := hostapi.ControlMember{
		Name: cfg.Name, URL: "https://" + cfg.hostAddr(), OwnNames: true, Gate: cfg.gateAddr(),
		Said: format.Said{Reads: format.Newest, Format: now.Format, Release: now.Release}, Zone: named,
	}
	return store.Commit(ctx, state.Put(state.Control(cfg.Name), me))
}

// hostAddr returns the API's address that hosts reach.
func (cfg Config) hostAddr() string {
	host, port, err := net.SplitHostPort(cfg.Home.Listen)
	if err != nil {
		return cfg.Home.Listen
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		return net.JoinHostPort(cfg.Address, port)
	}
	return net.JoinHostPort(host, port)
}

func watchEtcd(ctx context.Context, member *etcd.Member) error {
	select {
	case err := <-member.Err():
		return fmt.Errorf("etcd stopped: %w", err)
	case <-ctx.Done():
		return nil
	}
}

// listen serves the API until ctx ends. It serves with TLS. On loopback it also serves without, as
// nobody listens in there: then only SigV4 decides who may call.
func (cfg Config) listen(ctx context.Context, identity *certs.Identity, handler http.Handler) error {
	config, err := identity.ServerTLS()
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Home.Listen)
	if err != nil {
		return fmt.Errorf("listen for the API: %w: choose another address with --listen", err)
	}
	room := stranger.New(stranger.Default)
	srv := &http.Server{
		Handler: room.Handler(handler), MaxHeaderBytes: stranger.MaxHeader,
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return room.Context(ctx, accepted(c)) },
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 60 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		if srv.Shutdown(end) != nil {
			_ = srv.Close() // who did not end in time is told so
		}
	}()
	cfg.Log.Info("API listens", "address", cfg.Home.Listen)
	err = srv.Serve(newSniffer(room.Listen(l), config))
	<-stopped
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// lead runs work while this control plane leads, again and again. held is the condition of a commit
// that only the one which leads may make.
func lead(ctx context.Context, client *clientv3.Client, name string, log *slog.Logger, work func(ctx context.Context, held state.Op) error) error {
	for ctx.Err() == nil {
		err := leadOnce(ctx, client, name, log, work)
		if err != nil && ctx.Err() == nil {
			log.Warn("leadership ended", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil
}

func leadOnce(ctx context.Context, client *clientv3.Client, name string, log *slog.Logger, work func(ctx context.Context, held state.Op) error) error {
	session, end, err := etcd.Session(ctx, client, electionTTL, handOverWithin)
	if err != nil {
		return fmt.Errorf("begin election: %w", err)
	}
	defer end() // whoever stops hands over at once
	election := concurrency.NewElection(session, strings.TrimSuffix(state.ElectionRoot, "/"))
	if err := election.Campaign(ctx, name); err != nil {
		return fmt.Errorf("campaign: %w", err)
	}
	log.Info("leading")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-session.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	return work(ctx, state.Held(election.Key(), election.Rev()))
}
