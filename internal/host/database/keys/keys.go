// Package keys sees to what a member shows, and how it reaches etcd by it.
package keys

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"howdah/internal/engine/patroni/config"
	"howdah/internal/host/agent"
	"howdah/internal/host/hostapi"
	"howdah/internal/identity/certs"
	"howdah/internal/model/kind"
	"howdah/internal/model/patroni"
)

// A member has two pairs. That of its servers, PostgreSQL and Patroni's REST API, names its
// addresses, and is good for a server alone. What it shows as a client, to the gates before
// etcd and to other members, names the member. In a home with parts of an older release
// there is one pair for both, which names the host.

// Ring are the keys of one member. The fields are required. own says of a method whether the
// member's Patroni, as it runs or is to be started, shows the member's own key.
type Ring struct {
	*agent.Member
	Agent *agent.Agent
}

// gateWithin bounds how long gates are waited for.
const gateWithin = time.Second

// ErrNoGates: a control plane with a gate has not been heard of yet.
var ErrNoGates = errors.New("no control plane has told yet where members reach etcd")

// Prepare sees to what the next Patroni will need.
func (k *Ring) Prepare(ctx context.Context) error {
	if k.Want.OwnKey() && len(k.Agent.Gates()) == 0 {
		return ErrNoGates
	}
	if err := k.ensureOwn(ctx); err != nil || !k.Want.OwnKey() {
		return err
	}
	pair, err := k.Agent.MemberPair(k.ID, patroni.OwnDir)
	if err != nil {
		return err
	}
	pair.CAPEM = k.Agent.Identity.Pair().CAPEM
	return reachGate(ctx, pair, k.Agent.Gates())
}

// reachGate answers nil if one of the gates answers who shows this pair. A port that is new
// may be closed on the way to it, and a primary without etcd steps down.
func reachGate(ctx context.Context, pair certs.Pair, hosts []string) error {
	config, err := pair.ClientTLS()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, gateWithin)
	defer cancel()
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	answers := make(chan error, len(hosts))
	for _, host := range hosts {
		go func() { answers <- askGate(ctx, transport, host) }()
	}
	last := ErrNoGates
	for range hosts {
		if last = <-answers; last == nil {
			return nil
		}
	}
	return last
}

func askGate(ctx context.Context, transport http.RoundTripper, host string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/version", nil)
	if err != nil {
		return err
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return fmt.Errorf("reach the gate before etcd: %w", err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the gate before etcd at %s answers %s", host, answer.Status)
	}
	return nil
}

// EtcdHosts are where Patroni reaches etcd: at its gates with a key of the member's own, at
// etcd itself with that of the host. Those of the start before are good enough.
func (k *Ring) EtcdHosts(own bool) ([]string, error) {
	if !own {
		return config.EtcdHosts(k.Agent.EtcdURLs()), nil
	}
	hosts := k.Agent.Gates()
	if last := k.Last(); len(hosts) == 0 && last.OwnKey() {
		hosts = last.Etcd.Hosts
	}
	if len(hosts) == 0 {
		return nil, ErrNoGates
	}
	return hosts, nil
}

// certificateWithin bounds how long a member waits for a certificate.
const certificateWithin = 5 * time.Second

// Ensure has the member's certificates as they shall be.
func (k *Ring) Ensure(ctx context.Context, own bool) error {
	return errors.Join(k.ensureServer(ctx, own), k.ensureOwn(ctx))
}

// ensureServer: that of its servers names all its addresses, and is by the authority that
// it shall be of.
func (k *Ring) ensureServer(ctx context.Context, own bool) error {
	if k.serverCertified(own) {
		return nil
	}
	use := hostapi.ForAll
	if own {
		use = hostapi.ForServer
	}
	return k.fetch(ctx, use, k.Want.ServerKey, patroni.CertDir)
}

// ensureOwn: its own names it, and comes with the authority of members.
func (k *Ring) ensureOwn(ctx context.Context) error {
	if k.ownCertified() {
		return nil
	}
	return k.fetch(ctx, hostapi.ForClient, kind.EC256, patroni.OwnDir)
}

func (k *Ring) fetch(ctx context.Context, use hostapi.Use, key, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, certificateWithin)
	defer cancel()
	pair, err := k.Agent.Certificate(ctx, k.ID, use, key)
	if err != nil {
		return fmt.Errorf("get a certificate for %s: %w", k.ID, err)
	}
	return k.User().Do(func() error { return pair.Write(filepath.Join(k.Dir(), dir)) })
}

// Certified reports whether the member's certificates are as they shall be, and will be for a
// while.
func (k *Ring) Certified(own bool) bool { return k.serverCertified(own) && k.ownCertified() }

func (k *Ring) serverCertified(own bool) bool {
	pair, err := k.Agent.MemberPair(k.ID, patroni.CertDir)
	return err == nil && pair.Fresh(k.subject(own), time.Now()) && pair.NamesOnly(k.Want.ServerNames) && pair.By(k.Want.Authority)
}

func (k *Ring) ownCertified() bool {
	if k.Want.Keys == nil {
		return true
	}
	pair, err := k.Agent.MemberPair(k.ID, patroni.OwnDir)
	return err == nil && pair.Fresh(certs.Subject{CommonName: hostapi.MemberName(k.ID)}, time.Now()) && pair.Trusts(k.Want.Keys.Authority)
}

// subject is what the certificate of the member's servers says.
func (k *Ring) subject(own bool) certs.Subject {
	s := certs.Subject{CommonName: "agent:" + k.Agent.Name, DNSNames: k.Want.ServerNames}
	if own {
		s.CommonName = hostapi.ServerName(k.ID)
	}
	for _, ip := range k.Want.ServerIPs {
		s.IPs = append(s.IPs, net.ParseIP(ip))
	}
	return s
}
