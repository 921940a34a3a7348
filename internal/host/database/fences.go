package database

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"howdah/internal/engine/patroni/rest"
	"howdah/internal/failover/fence"
	"howdah/internal/host/agent"
	"howdah/internal/host/pace"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

const (
	// witnessEvery is how often a suspected primary is looked at.
	witnessEvery = 200 * time.Millisecond
	// witnessPatience is how long an answer of it is waited for.
	witnessPatience = 300 * time.Millisecond
)

// fences follows the cases of primaries that may be lost: as a witness, by
// cutting the own standbys off, and by giving in when the own primary was
// replaced. It belongs to one goroutine.
type fences struct {
	host    *Host
	seen    map[string]*watching // by the case's id
	reports *cutReports
}

// watching is one case as this host deals with it.
type watching struct {
	phase  fence.Phase
	cancel context.CancelFunc
}

// cut is one of the own standbys that has to be cut off from a lost primary.
type cut struct {
	from    fence.Case
	standby *runner
}

// key is that of the report.
func (c cut) key() string { return state.Cut(c.from.ID, c.standby.Name()) }

func (a *Host) followFences(ctx context.Context) error {
	f := &fences{host: a, seen: map[string]*watching{}, reports: newCutReports(a)}
	cache := state.NewCache(a.Store.Client, a.Log, state.FenceRoot)
	changed := make(chan struct{}, 1)
	changed <- struct{}{} // cuts that an earlier agent left are mended at once
	cache.OnChange(func([]string) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	var follow sync.WaitGroup
	follow.Go(func() { _ = cache.Run(ctx) })
	follow.Go(func() { f.reports.run(ctx) })
	defer follow.Wait()
	for cache.Loaded(ctx) != nil { // members wait for it
		if !pace.Sleep(ctx, time.Second) {
			return nil
		}
	}
	for {
		select {
		case <-ctx.Done():
			f.stop()
			return nil
		case <-changed:
		case <-time.After(time.Second):
		}
		f.update(ctx, state.LoadAll[fence.Case](cache, state.FenceRoot))
	}
}

func (f *fences) stop() {
	for _, w := range f.seen {
		w.cancel()
	}
}

// update makes this host do what the open cases ask for.
func (f *fences) update(ctx context.Context, open []state.Record[fence.Case]) {
	var wanted []cut
	found := &admission{tried: map[*runner]bool{}}
	current := map[string]bool{}
	for _, record := range open {
		c := record.Value
		current[c.ID] = true
		if !c.Wanted() {
			continue
		}
		found.lost = append(found.lost, c)
		for _, r := range f.ownStandbys(c) {
			wanted = append(wanted, cut{from: c, standby: r})
			found.tried[r] = true
		}
	}
	// Cut first: everything else waits for it.
	found.err = f.host.cut.sync(ctx, wanted, f.reports.made)
	if found.err != nil {
		f.host.Log.Error("cut off a lost primary", "error", found.err)
	}
	f.host.admission.Store(found)
	for _, record := range open {
		f.follow(ctx, record.Value)
	}
	f.forget(current)
}

// forget drops what is known of cases that are closed.
func (f *fences) forget(current map[string]bool) {
	for id, w := range f.seen {
		if !current[id] {
			w.cancel()
			delete(f.seen, id)
		}
	}
	f.reports.forget(current)
}

// ownStandbys are this host's members that could confirm commits to the primary.
func (f *fences) ownStandbys(c fence.Case) []*runner {
	var own []*runner
	for _, r := range f.host.allRunners() {
		if r.confirms(c.Leadership) {
			own = append(own, r)
		}
	}
	return own
}

// confirms: this member could confirm commits to the primary of a leadership.
func (r *runner) confirms(l fence.Leadership) bool {
	return r.Database() == l.Database && slices.Contains(l.Sync.Standbys, r.Name())
}

// follow reacts to a case that is new or has moved on.
func (f *fences) follow(ctx context.Context, c fence.Case) {
	old := f.seen[c.ID]
	if old != nil && old.phase == c.Phase {
		return
	}
	if old != nil {
		old.cancel()
	}
	ctx, cancel := context.WithCancel(ctx)
	f.seen[c.ID] = &watching{phase: c.Phase, cancel: cancel}
	switch own := f.ownStandbys(c); {
	case c.Host == f.host.Name:
		if c.Wanted() {
			f.giveIn(ctx, c)
		}
	case c.Phase == fence.Suspected && len(own) > 0:
		own[0].Go(func() { f.witness(ctx, c) })
	}
}

// giveIn ends the own primary, which was replaced while this host was silent.
func (f *fences) giveIn(ctx context.Context, c fence.Case) {
	id := member.ID(c.Leadership.Database, c.Leadership.Leader)
	r := f.host.runner(ctx, id)
	r.Do(func(ctx context.Context) {
		l, err := r.leadership(ctx)
		switch {
		case err == nil && l.Leader == c.Leadership.Leader:
			return // it was elected again, or leads still
		case c.Phase != fence.Revoked && (err != nil || l.Leader == ""):
			return // nobody else leads yet: its Patroni may
		}
		r.Log.Warn("this primary was replaced while the host was silent", "case", c.ID)
		if proof, ok := r.Kill(ctx, "primary was replaced"); ok {
			if err == nil {
				r.tellDeath(ctx, proof, l)
			}
			r.tellWALEnd(ctx, c)
		}
		r.retry = pace.Backoff{}
	})
}

// witness looks at the suspected primary until the case moves on.
func (f *fences) witness(ctx context.Context, c fence.Case) {
	key := state.Witness(c.ID, f.host.Name)
	for {
		seen := fence.Witness{Case: c.ID, Host: f.host.Name}
		var both sync.WaitGroup
		both.Go(func() { seen.Patroni = f.patroniAnswers(ctx, c.Patroni) })
		both.Go(func() { seen.Postgres = postgresAnswers(ctx, c.Postgres, witnessPatience) })
		both.Wait()
		seen.At = time.Now().UTC()
		if ctx.Err() != nil {
			return
		}
		f.testify(ctx, key, seen)
		if !pace.Sleep(ctx, witnessEvery) {
			return
		}
	}
}

func (f *fences) testify(ctx context.Context, key string, seen fence.Witness) {
	call, cancel := context.WithTimeout(ctx, agent.EtcdTimeout)
	defer cancel()
	if _, err := f.host.Store.Commit(call, state.Put(key, seen)); err != nil && ctx.Err() == nil {
		f.host.Log.Warn("bear witness", "case", seen.Case, "error", err)
	}
}

// patroniAnswers: it completes a request, which a frozen one does not, although
// its kernel still accepts connections.
func (f *fences) patroniAnswers(ctx context.Context, address string) bool {
	config, err := f.host.Identity.ClientTLS()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, witnessPatience)
	defer cancel()
	client := rest.Member{URL: "https://" + address, HTTP: &http.Client{Transport: &http.Transport{
		TLSClientConfig: withoutSessions(config), DisableKeepAlives: true,
	}}}
	return client.Alive(ctx) == nil
}

// withoutSessions makes each connection prove itself anew.
func withoutSessions(config *tls.Config) *tls.Config {
	config = config.Clone()
	config.ClientSessionCache = nil
	return config
}

// postgresAnswers asks a server whether it speaks TLS: the first message of the
// protocol, which the postmaster answers with one byte before any login.
func postgresAnswers(ctx context.Context, address string, patience time.Duration) bool {
	dialer := net.Dialer{Timeout: patience}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(patience)) != nil {
		return false
	}
	// SSLRequest: length 8, code 80877103 (PostgreSQL protocol documentation, 55.7).
	request := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), 80877103)
	if _, err := conn.Write(request); err != nil {
		return false
	}
	answer := make([]byte, 1)
	n, err := conn.Read(answer)
	return err == nil && n == 1
}
