package database

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	"howdah/internal/engine/patroni/config"
	"howdah/internal/host/hostapi"
	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
	"howdah/internal/identity/certs"
	"howdah/internal/model/kind"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// A member has two pairs. That of its servers, PostgreSQL and Patroni's REST API, names its
// addresses, and is good for a server alone. What it shows as a client, to the gates before
// etcd and to other members, names the member. In a home with parts of an older release
// there is one pair for both, which names the host.

// errNoGates: a control plane with a gate has not been heard of yet.
var errNoGates = errors.New("no control plane has told yet where members reach etcd")

// keysOf is how a member and others know each other.
func keysOf(as member.Assignment) config.Keys {
	if as.Keys == nil {
		return config.Keys{}
	}
	return config.Keys{Admits: as.Keys.Admits, Own: as.Keys.Own, Only: as.Keys.Only}
}

// ownKey: what was started shows the member's own key.
func (c lastConfig) ownKey() bool {
	return filepath.Base(filepath.Dir(c.Etcd.Cert)) == filepath.Base(patroni.OwnDir)
}

// showsOwn: Patroni, as it runs or is to be started, shows the member's own key.
func (r *runner) showsOwn() bool {
	if r.patroni.Alive() {
		return r.ownKey
	}
	return r.Want.OwnKey()
}

// rekey has a running Patroni started again with another key: its client of etcd takes none
// while it runs. It reports whether Patroni was ended for that. PostgreSQL goes on, and the
// next Patroni takes it over, with the leader key, which is the member's for as long as
// its lease.
func (r *runner) rekey(ctx context.Context) bool {
	quiet := r.Reported.Ready || !r.postmaster.Alive() && !r.patroniIsBusy()
	if r.ownKey == r.Want.OwnKey() || !quiet || !r.hearsReload() {
		return false
	}
	if time.Since(r.rekeyTried) < rekeyPause || r.writable(ctx) != nil {
		return false // the next Patroni could not take over
	}
	err := r.prepareKeys(ctx)
	if errors.Is(err, errNoGates) {
		return false // they will be heard of soon
	}
	r.rekeyTried = time.Now()
	if err != nil {
		r.Log.Warn("the member keeps the key that it has: look whether its host reaches port 2378 of the control planes", "error", err)
		return false
	}
	r.Log.Info("starting Patroni again with another key", "own", r.Want.OwnKey())
	if err := r.host.Procs.Signal(r.patroni.Process, syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
		r.Log.Warn("end Patroni", "error", err)
		return false
	}
	r.retry, r.rekeyed = pace.Backoff{}, time.Now()
	return true
}

const (
	// gateWithin bounds how long gates are waited for, and rekeyPause is how long a member
	// goes on as it is where none answers.
	gateWithin = time.Second
	rekeyPause = 10 * time.Second
)

// rekeyGrace is how long the next Patroni may take to be started: until then nobody takes
// the end of the one before for its death, and has a standby take over.
const rekeyGrace = 3 * time.Second

// prepareKeys sees to what the next Patroni will need.
func (r *runner) prepareKeys(ctx context.Context) error {
	if r.Want.OwnKey() && len(r.host.Gates()) == 0 {
		return errNoGates
	}
	if err := r.ensureOwn(ctx); err != nil || !r.Want.OwnKey() {
		return err
	}
	pair, err := r.host.MemberPair(r.ID, patroni.OwnDir)
	if err != nil {
		return err
	}
	pair.CAPEM = r.host.Identity.Pair().CAPEM
	return reachGate(ctx, pair, r.host.Gates())
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
	last := errNoGates
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

// etcdHosts are where Patroni reaches etcd: at its gates with a key of the member's own, at
// etcd itself with that of the host. Those of the start before are good enough.
func (r *runner) etcdHosts() ([]string, error) {
	if !r.showsOwn() {
		return config.EtcdHosts(r.host.EtcdURLs()), nil
	}
	hosts := r.host.Gates()
	if last := r.onDisk(); len(hosts) == 0 && last.ownKey() {
		hosts = last.Etcd.Hosts
	}
	if len(hosts) == 0 {
		return nil, errNoGates
	}
	return hosts, nil
}

// certificateWithin bounds how long a member waits for a certificate.
const certificateWithin = 5 * time.Second

// ensureCertificates has the member's certificates as they shall be.
func (r *runner) ensureCertificates(ctx context.Context) error {
	return errors.Join(r.ensureServer(ctx), r.ensureOwn(ctx))
}

// ensureServer: that of its servers names all its addresses, and is by the authority that
// it shall be of.
func (r *runner) ensureServer(ctx context.Context) error {
	if r.serverCertified() {
		return nil
	}
	use := hostapi.ForAll
	if r.showsOwn() {
		use = hostapi.ForServer
	}
	return r.fetch(ctx, use, r.Want.ServerKey, patroni.CertDir)
}

// ensureOwn: its own names it, and comes with the authority of members.
func (r *runner) ensureOwn(ctx context.Context) error {
	if r.ownCertified() {
		return nil
	}
	return r.fetch(ctx, hostapi.ForClient, kind.EC256, patroni.OwnDir)
}

func (r *runner) fetch(ctx context.Context, use hostapi.Use, key, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, certificateWithin)
	defer cancel()
	pair, err := r.host.Certificate(ctx, r.ID, use, key)
	if err != nil {
		return fmt.Errorf("get a certificate for %s: %w", r.ID, err)
	}
	return r.User().Do(func() error { return pair.Write(filepath.Join(r.Dir(), dir)) })
}

// certified: the member's certificates are as they shall be, and will be for a while.
func (r *runner) certified() bool { return r.serverCertified() && r.ownCertified() }

func (r *runner) serverCertified() bool {
	pair, err := r.host.MemberPair(r.ID, patroni.CertDir)
	return err == nil && pair.Fresh(r.subject(), time.Now()) && pair.By(r.Want.Authority)
}

func (r *runner) ownCertified() bool {
	if r.Want.Keys == nil {
		return true
	}
	pair, err := r.host.MemberPair(r.ID, patroni.OwnDir)
	return err == nil && pair.Fresh(certs.Subject{CommonName: hostapi.MemberName(r.ID)}, time.Now()) && pair.Trusts(r.Want.Keys.Authority)
}

// subject is what the certificate of the member's servers says.
func (r *runner) subject() certs.Subject {
	s := certs.Subject{CommonName: "agent:" + r.host.Name}
	if r.showsOwn() {
		s.CommonName = hostapi.ServerName(r.ID)
	}
	for _, ip := range r.Want.ServerIPs {
		s.IPs = append(s.IPs, net.ParseIP(ip))
	}
	return s
}
