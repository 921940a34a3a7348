package hostapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"howdah/internal/identity/certs"
	keys "howdah/internal/model/kind"
	"howdah/internal/state"
)

// renewTimeout bounds one attempt at all control planes.
const renewTimeout = 20 * time.Second

var errNoControl = errors.New("no control plane is known")

// KeepIdentity keeps the certificate of a host or an edge fresh while the process runs, until ctx
// ends. Any control plane that etcd knows renews it. The new certificate is in dir, for the next
// start, before it is used. A process needs its join token again only if it slept through a third
// of a certificate's life.
func KeepIdentity(ctx context.Context, identity *certs.Identity, dir string, store *state.Store, log *slog.Logger) error {
	leaf, err := identity.Pair().Leaf()
	if err != nil {
		return err
	}
	return identity.Keep(ctx, certs.Renewal{
		Subject: certs.Subject{CommonName: leaf.Subject.CommonName},
		Get:     func(ctx context.Context) (certs.Pair, error) { return renew(ctx, identity, dir, store) },
		Log:     log,
	})
}

func renew(ctx context.Context, identity *certs.Identity, dir string, store *state.Store) (certs.Pair, error) {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	urls, err := ControlURLs(ctx, store)
	if err != nil {
		return certs.Pair{}, fmt.Errorf("look for control planes: %w", err)
	}
	last := errNoControl
	for _, url := range urls {
		pair, err := renewAt(ctx, url, identity)
		if err == nil {
			return pair, pair.Write(dir)
		}
		last = err
	}
	return certs.Pair{}, last
}

func renewAt(ctx context.Context, url string, identity *certs.Identity) (certs.Pair, error) {
	client, err := NewClient(url, identity)
	if err != nil {
		return certs.Pair{}, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, renewTimeout/3)
	defer cancel()
	return client.Certificate(ctx, "", ForAll, keys.EC256, identity.Pair().CAPEM)
}
