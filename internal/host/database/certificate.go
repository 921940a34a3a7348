package database

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"howdah/internal/host/agent"
	"howdah/internal/host/hostapi"
	"howdah/internal/identity/certs"
	"howdah/internal/model/kind"
)

const (
	// certificateTry bounds the question to the control planes.
	certificateTry = 4 * time.Second
	// certificateAgain is the pause after they did not give one.
	certificateAgain = 10 * time.Second
	// certificateDir is below the host's directory, and root's alone.
	certificateDir = "server"
)

// certificate is that of the agent's servers for members. It names this host's address: the agent's
// own names none. A member's would do, but its key is a tenant's. It is kept on disk, so that
// members are answered without a control plane.
type certificate struct {
	agent *agent.Agent

	mu    sync.Mutex
	pair  certs.Pair       // guarded by mu
	cert  *tls.Certificate // guarded by mu; pair's, parsed
	tried time.Time        // guarded by mu: none came then
}

// newCertificate returns the one that is on disk, if there is one.
func newCertificate(a *agent.Agent) *certificate {
	c := &certificate{agent: a}
	pair, err := certs.Load(a.Path(certificateDir))
	if err == nil {
		err = c.take(pair)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		a.Log.Warn("read the certificate of this host's servers", "error", err)
	}
	return c
}

// take parses a pair. mu is held, or nobody else knows the certificate.
func (c *certificate) take(pair certs.Pair) error {
	cert, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	c.pair, c.cert = pair, &cert
	return nil
}

// get is for tls.Config.
func (c *certificate) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	subject := certs.Subject{CommonName: hostapi.ServerName(c.agent.Name), IPs: []net.IP{net.ParseIP(c.agent.Address)}}
	now := time.Now()
	valid := c.pair.Valid(now)
	if c.pair.Fresh(subject, now) || valid && now.Sub(c.tried) < certificateAgain {
		return c.cert, nil
	}
	ctx, cancel := context.WithTimeout(hello.Context(), certificateTry)
	defer cancel()
	pair, err := c.agent.Certificate(ctx, "", hostapi.ForServer, kind.EC256)
	if err == nil {
		err = c.take(pair)
	}
	if err == nil {
		err = c.keep()
	}
	if err != nil && valid {
		c.tried = now
		c.agent.Log.Info("renew the certificate of this host's servers", "error", err)
		return c.cert, nil
	}
	return c.cert, err
}

func (c *certificate) keep() error {
	dir := c.agent.Path(certificateDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keep certificate: %w", err)
	}
	return c.pair.Write(dir)
}
