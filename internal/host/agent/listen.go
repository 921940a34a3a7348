package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"howdah/internal/model/member"
)

// listenForControl has the agent answer control planes, by certificates of the home
// on both sides. Databases do not depend on it: an agent that cannot listen goes on
// without.
func (a *Agent) listenForControl(ctx context.Context) (answer func(context.Context) error) {
	l, err := a.controlListener(ctx)
	if err != nil {
		a.Log.Warn("listen for control planes: logs of this host cannot be shown", "error", err)
		return func(context.Context) error { return nil }
	}
	a.listen = l.Addr().String()
	srv := &http.Server{
		Handler: a.Kind.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(a.Log.Handler(), slog.LevelDebug),
	}
	return func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
		defer stop()
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			a.Log.Warn("answer control planes", "error", err)
		}
		return nil
	}
}

func (a *Agent) controlListener(ctx context.Context) (net.Listener, error) {
	config, err := a.Identity.ServerTLS()
	if err != nil {
		return nil, err
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	l, err := a.ListenFrom(ctx, controlPort)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(l, config), nil
}

// The ports that an agent listens on: the first free ones, of a few.
const (
	controlPort = member.FirstAgentPort
	portTries   = 20
	// KindPort is the first port that a kind may listen from.
	KindPort = controlPort + portTries
)

// ListenFrom listens on the host's address, on the first port that is free.
func (a *Agent) ListenFrom(ctx context.Context, first int) (net.Listener, error) {
	var last error
	for port := first; port < first+portTries; port++ {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(a.Address, strconv.Itoa(port)))
		if err == nil {
			return l, nil
		}
		last = err
	}
	return nil, fmt.Errorf("listen: %w", last)
}
