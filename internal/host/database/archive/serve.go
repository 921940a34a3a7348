package archive

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"howdah/internal/host/agent"
	"howdah/internal/system/plainfile"
)

const (
	// firstPort is where a new host's gateway listens, or on one of the ports that follow.
	firstPort = agent.KindPort + 20
	// portFile has the port that it had last.
	portFile = "port"
)

// Begin listens for members, at the port that they know from before if that is free. It is called
// before any of them is started. What it returns works until ctx ends.
func (k *Keeper) Begin(ctx context.Context, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) (run func(context.Context) error, err error) {
	l, err := k.listen(ctx)
	if err != nil {
		return nil, fmt.Errorf("listen for backups: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := plainfile.Replace(k.dir(portFile), []byte(strconv.Itoa(port)+"\n"), 0o600); err != nil {
		l.Close()
		return nil, err
	}
	k.mu.Lock()
	k.port = port
	k.mu.Unlock()
	server := k.gateway.Server()
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate}
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return k.run(ctx) })
		group.Go(func() error { return k.gateway.Run(ctx) })
		group.Go(func() error {
			stop := context.AfterFunc(ctx, func() { _ = server.Close() })
			defer stop()
			if err := server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
				k.Agent.Log.Error("answer members that archive and back up", "error", err)
			}
			return nil
		})
		return group.Wait()
	}, nil
}

func (k *Keeper) listen(ctx context.Context) (net.Listener, error) {
	text, err := os.ReadFile(k.dir(portFile))
	if last, parseErr := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && parseErr == nil && last > 0 {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(k.Agent.Address, strconv.Itoa(last)))
		if err == nil {
			return l, nil
		}
		k.Agent.Log.Warn("the port of backups is another one from now on", "port", last, "error", err)
	}
	return k.Agent.ListenFrom(ctx, firstPort)
}
