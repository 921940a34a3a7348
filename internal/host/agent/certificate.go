package agent

import (
	"context"
	"path/filepath"
	"slices"

	"howdah/internal/host/hostapi"
	"howdah/internal/identity/certs"
)

// etcdURLs are where etcd is known to serve: the client keeps the list current.
func (a *Agent) etcdURLs() []string {
	if a.store == nil || len(a.store.Client.Endpoints()) == 0 {
		return a.Etcd
	}
	urls := slices.Clone(a.store.Client.Endpoints())
	slices.Sort(urls)
	return urls
}

// memberPair is one of a member's pairs, which its user may have exchanged.
func (a *Agent) memberPair(id, dir string) (pair certs.Pair, err error) {
	err = a.userOf(id).Do(func() error {
		pair, err = certs.Load(filepath.Join(a.memberDir(id), dir))
		return err
	})
	return pair, err
}

// certificate gets a certificate from whichever control plane answers.
func (a *Agent) certificate(ctx context.Context, id string, use hostapi.Use, key string) (certs.Pair, error) {
	last := hostapi.ErrRefused
	for _, c := range a.control.all() {
		pair, err := c.Certificate(ctx, id, use, key, a.Identity.Pair().CAPEM)
		if err == nil {
			return pair, nil
		}
		last = err
	}
	return certs.Pair{}, last
}
