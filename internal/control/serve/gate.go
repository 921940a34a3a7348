package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"howdah/internal/host/hostapi"
	"howdah/internal/identity/authority"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/identity/seal"
	"howdah/internal/identity/stranger"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
	"howdah/internal/state/etcdgate"
)

// gateAddr returns where members reach etcd.
func (cfg Config) gateAddr() string { return fmt.Sprintf("%s:%d", cfg.Address, etcdGatePort) }

// members returns the authority of members. The first control plane makes it.
func (cfg Config) members(ctx context.Context, store *state.Store) (*certs.CA, error) {
	key, err := cfg.Home.SealKey()
	if err != nil {
		return nil, err
	}
	return authority.Members(ctx, store, key, time.Now())
}

// seals returns the sealer of what hosts are told of members.
func (cfg Config) seals() (*seal.Assignments, error) {
	key, err := cfg.Home.SealKey()
	if err != nil {
		return nil, err
	}
	return seal.NewAssignments(key)
}

// etcdInside returns the clients by which gate and door reach etcd.
func (cfg Config) etcdInside(ctx context.Context, member *etcd.Member, component string) (etcdgate.Config, error) {
	client, err := member.InsideClient(ctx)
	return etcdgate.Config{
		Etcd: "http://etcd", HTTP: member.InsideHTTP(), Client: client, Log: cfg.Log.With("component", component),
	}, err
}

// listenDoor takes etcd's port early, so that nobody is refused there while serveDoor is not ready.
func (cfg Config) listenDoor(ctx context.Context) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", ClientAddr(cfg.Address))
	if err != nil {
		return nil, fmt.Errorf("listen for hosts at etcd's port: %w", err)
	}
	return l, nil
}

// serveDoor lets control planes reach etcd, and hosts what they need of it, until ctx ends.
func (cfg Config) serveDoor(ctx context.Context, l net.Listener, identity *certs.Identity, member *etcd.Member, cache *state.Cache) error {
	inside, err := cfg.etcdInside(ctx, member, "etcd-door")
	if err != nil {
		return err
	}
	defer inside.Client.Close()
	config, err := identity.ServerTLS()
	if err != nil {
		return err
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	door := etcdgate.NewDoor(etcdgate.DoorConfig{
		Config: inside, TLS: config, ControlPlane: home.ServerName, Inside: member.Inside, Cache: cache,
		CatchUp: func(ctx context.Context) error {
			newest, err := member.Newest(ctx)
			if err == nil {
				err = cache.WaitRevision(ctx, newest)
			}
			return err
		},
		Room: stranger.New(stranger.Default),
	})
	return door.Serve(ctx, l)
}

// serveGate lets members reach what is theirs in etcd, by certificates of their authority, until
// ctx ends.
func (cfg Config) serveGate(ctx context.Context, identity *certs.Identity, members *certs.CA, member *etcd.Member, cache *state.Cache) error {
	inside, err := cfg.etcdInside(ctx, member, "etcd-gate")
	if err != nil {
		return err
	}
	defer inside.Client.Close()
	config, err := gateTLS(identity, members)
	if err != nil {
		return err
	}
	inside.Member = func(r *http.Request) string { return hostapi.MemberOf(certs.Caller(r.TLS)) }
	inside.Gates = func() (urls []string) {
		for _, m := range state.LoadAll[hostapi.ControlMember](cache, state.ControlRoot) {
			if m.Value.Gate != "" {
				urls = append(urls, "https://"+m.Value.Gate)
			}
		}
		return urls
	}
	gate := etcdgate.New(inside)
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.gateAddr())
	if err != nil {
		return fmt.Errorf("listen for members: %w", err)
	}
	room := stranger.New(stranger.Default)
	srv := &http.Server{
		Handler: room.Handler(gate), MaxHeaderBytes: stranger.MaxHeader, TLSConfig: config,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return room.Context(ctx, accepted(c)) },
		// Patroni asks each second. A client that asks less often may connect anew, and holds
		// nothing.
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 20 * time.Second,
		ErrorLog: slog.NewLogLogger(inside.Log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() }) // members ask another one
	defer stop()
	err = srv.ServeTLS(room.Listen(l), "", "")
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// gateTLS takes certificates of the authority of members, and no others. A host talks to etcd
// itself.
func gateTLS(identity *certs.Identity, members *certs.CA) (*tls.Config, error) {
	config, err := identity.ServerTLS()
	if err != nil {
		return nil, err
	}
	config.ClientCAs = x509.NewCertPool()
	config.ClientCAs.AddCert(members.Cert)
	config.ClientAuth = tls.RequireAndVerifyClientCert
	return config, nil
}
