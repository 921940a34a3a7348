package agent

import (
	"context"
	"path/filepath"
	"slices"

	"howdah/internal/host/hostapi"
	"howdah/internal/identity/certs"
)

// EtcdURLs are where etcd is known to serve: the client keeps the list current.
func (a *Agent) EtcdURLs() []string {
	if a.Store == nil || len(a.Store.Client.Endpoints()) == 0 {
		return a.Etcd
	}
	urls := slices.Clone(a.Store.Client.Endpoints())
	slices.Sort(urls)
	return urls
}

// MemberPair is one of a member's pairs, which its user may have exchanged.
func (a *Agent) MemberPair(id, dir string) (pair certs.Pair, err error) {
	err = a.UserOf(id).Do(func() error {
		pair, err = certs.Load(filepath.Join(a.MemberDir(id), dir))
		return err
	})
	return pair, err
}

// Certificate gets a certificate from whichever control plane answers.
func (a *Agent) Certificate(ctx context.Context, id string, use hostapi.Use, key string) (certs.Pair, error) {
	last := hostapi.ErrRefused
	for _, c := range a.Controls() {
		pair, err := c.Certificate(ctx, id, use, key, a.Identity.Pair().CAPEM)
		if err == nil {
			return pair, nil
		}
		last = err
	}
	return certs.Pair{}, last
}

// Controls are clients of the control planes that are known now.
func (a *Agent) Controls() []*hostapi.Client { return a.planes.All() }

// Gates are the gates before etcd, as host:port; none if nobody has told yet.
func (a *Agent) Gates() []string { return a.planes.Gates() }
