package certs

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Identity is a pair that a process uses and that the process outlives. A TLS configuration made
// from it shows the pair that it holds when a connection begins. To replace the pair touches no
// connection that exists, and refuses none meanwhile. The authority stays: a pair of another one is
// refused.
type Identity struct {
	mu   sync.Mutex
	pair Pair             // guarded by mu
	cert *tls.Certificate // guarded by mu; pair's, parsed
}

// NewIdentity returns an identity that holds pair.
func NewIdentity(pair Pair) (*Identity, error) {
	i := &Identity{}
	return i, i.Replace(pair)
}

// Replace makes connections show pair that begin from now on.
func (i *Identity) Replace(pair Pair) error {
	cert, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		return fmt.Errorf("load key pair: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cert != nil && string(pair.CAPEM) != string(i.pair.CAPEM) {
		return fmt.Errorf("replace certificate: %w", ErrNotOurs)
	}
	i.pair, i.cert = pair, &cert
	return nil
}

// Pair returns the pair that is held now.
func (i *Identity) Pair() Pair {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.pair
}

func (i *Identity) current() (*tls.Certificate, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.cert, nil
}

// ClientTLS is like that of Pair, and also holds for connections after Replace.
func (i *Identity) ClientTLS() (*tls.Config, error) {
	config, err := i.Pair().ClientTLS()
	if err != nil {
		return nil, err
	}
	config.Certificates = nil
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return i.current() }
	return config, nil
}

// ServerTLS is like that of Pair, and also holds for connections after Replace.
func (i *Identity) ServerTLS() (*tls.Config, error) {
	config, err := i.Pair().ServerTLS()
	if err != nil {
		return nil, err
	}
	config.Certificates = nil
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return i.current() }
	return config, nil
}

// Renewal says how an identity is kept fresh. All fields are required.
type Renewal struct {
	Subject Subject
	// Get makes a new pair. It puts the pair where the next start of the process finds it, and
	// others that use it. It is called again until it works.
	Get func(context.Context) (Pair, error)
	Log *slog.Logger
}

// lookAtMost bounds the wait for a renewal, because somebody may set the clock meanwhile.
const lookAtMost = time.Hour

// Keep replaces the identity's pair whenever two thirds of its life are over,
// until ctx ends.
func (i *Identity) Keep(ctx context.Context, r Renewal) error {
	for {
		wait := i.untilDue(time.Now())
		if wait <= 0 {
			wait = i.renew(ctx, r)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// renew returns how long to wait before the next look.
func (i *Identity) renew(ctx context.Context, r Renewal) time.Duration {
	pair, err := r.Get(ctx)
	if err == nil && !pair.Fresh(r.Subject, time.Now()) {
		err = fmt.Errorf("the new certificate is not one for %s: %w", r.Subject.CommonName, ErrNotOurs)
	}
	if err == nil {
		err = i.Replace(pair)
	}
	if err != nil {
		if ctx.Err() == nil {
			r.Log.Warn("renew certificate", "name", r.Subject.CommonName, "error", err)
		}
		return i.retryAfter()
	}
	r.Log.Info("certificate renewed", "name", r.Subject.CommonName, "until", i.notAfter())
	return 0
}

// untilDue returns how long to wait before the pair is to be looked at again.
func (i *Identity) untilDue(now time.Time) time.Duration {
	leaf, err := i.Pair().Leaf()
	if err != nil {
		return 0
	}
	return min(due(leaf).Sub(now), lookAtMost)
}

// retryAfter returns a pause that lets a renewal be tried a hundred times in the last third of the
// life.
func (i *Identity) retryAfter() time.Duration {
	leaf, err := i.Pair().Leaf()
	if err != nil {
		return time.Second
	}
	return min(leaf.NotAfter.Sub(leaf.NotBefore)/300, lookAtMost)
}

func (i *Identity) notAfter() time.Time {
	leaf, err := i.Pair().Leaf()
	if err != nil {
		return time.Time{}
	}
	return leaf.NotAfter
}
