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

	"howdah/internal/authority"
	"howdah/internal/certs"
	"howdah/internal/etcd"
	"howdah/internal/etcdgate"
	"howdah/internal/hostapi"
	"howdah/internal/state"
	"howdah/internal/stranger"
)

// gateAddr is where members reach etcd.
func (cfg Config) gateAddr() string { return fmt.Sprintf("%s:%d", cfg.Address, etcdGatePort) }

// members is the authority of members, which the first control plane makes.
func (cfg Config) members(ctx context.Context, store *state.Store) (*certs.CA, error) {
	seal, err := cfg.Home.SealKey()
	if err != nil {
		return nil, err
	}
	return authority.Members(ctx, store, seal, time.Now())
}

// serveGate has members reach what is theirs in etcd, by certificates of their authority,
// until ctx ends.
func (cfg Config) serveGate(ctx context.Context, identity *certs.Identity, members *certs.CA, cache *state.Cache) error {
	log := cfg.Log.With("component", "etcd-gate")
	own := "https://" + ClientAddr(cfg.Address)
	client, err := etcd.Dial(ctx, []string{own}, identity)
	if err != nil {
		return err
	}
	defer client.Close()
	toEtcd, err := identity.ClientTLS()
	if err != nil {
		return err
	}
	config, err := gateTLS(identity, members)
	if err != nil {
		return err
	}
	gate := etcdgate.New(etcdgate.Config{
		// A watch takes a connection of its own: HTTP/2 would have all of them share one.
		Etcd: own, HTTP: &http.Client{Transport: &http.Transport{TLSClientConfig: toEtcd, MaxIdleConnsPerHost: 64}},
		Client: client, Log: log,
		Member: func(r *http.Request) string { return hostapi.MemberOf(certs.Caller(r.TLS)) },
		Gates: func() (urls []string) {
			for _, m := range state.LoadAll[hostapi.ControlMember](cache, state.ControlRoot) {
				if m.Value.Gate != "" {
					urls = append(urls, "https://"+m.Value.Gate)
				}
			}
			return urls
		},
	})
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.gateAddr())
	if err != nil {
		return fmt.Errorf("listen for members: %w", err)
	}
	room := stranger.New(stranger.Default)
	srv := &http.Server{
		Handler: room.Handler(gate), MaxHeaderBytes: stranger.MaxHeader, TLSConfig: config,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return room.Context(ctx, accepted(c)) },
		// Patroni asks each second: who asks less often may connect anew, and holds nothing.
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 20 * time.Second,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() }) // members ask another one
	defer stop()
	err = srv.ServeTLS(room.Listen(l), "", "")
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// gateTLS takes certificates of the authority of members, and no others: a host talks to
// etcd itself.
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
