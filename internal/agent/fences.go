package agent

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"howdah/internal/engine/patroni/rest"
	"howdah/internal/fence"
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
	agent *Agent
	seen  map[string]*watching // by database
}

// watching is one case as this host deals with it.
type watching struct {
	c      fence.Case
	cancel context.CancelFunc
}

func (a *Agent) followFences(ctx context.Context) error {
	f := &fences{agent: a, seen: map[string]*watching{}}
	cache := state.NewCache(a.store.Client, a.Log, state.FenceRoot)
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
	defer follow.Wait()
	if cache.Loaded(ctx) != nil {
		return nil
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
	var cuts []fence.Case
	current := map[string]bool{}
	for _, record := range open {
		c := record.Value
		current[c.Leadership.Database] = true
		if c.Wanted() && f.ownStandby(c) != nil {
			cuts = append(cuts, c)
		}
	}
	// Cut first: everything else waits for it.
	if err := f.agent.cut.sync(ctx, cuts); err != nil {
		f.agent.Log.Error("cut off a lost primary", "error", err)
		cuts = nil
	}
	for _, record := range open {
		f.follow(ctx, record.Value, cuts)
	}
	for database, w := range f.seen {
		if !current[database] {
			w.cancel()
			delete(f.seen, database)
		}
	}
}

// ownStandby is this host's member that could confirm commits to the primary.
func (f *fences) ownStandby(c fence.Case) *runner {
	for _, r := range f.agent.allRunners() {
		database, name, _ := strings.Cut(r.id, ".")
		if database == c.Leadership.Database && slices.Contains(c.Leadership.Sync.Standbys, name) {
			return r
		}
	}
	return nil
}

// follow reacts to a case that is new or has moved on.
func (f *fences) follow(ctx context.Context, c fence.Case, cuts []fence.Case) {
	old, known := f.seen[c.Leadership.Database]
	if known && old.c.ID == c.ID && old.c.Phase == c.Phase {
		return
	}
	if c.Wanted() && f.ownStandby(c) != nil && !slices.ContainsFunc(cuts, func(cut fence.Case) bool { return cut.ID == c.ID }) {
		return // the cut failed: tried again at the next look
	}
	if known {
		old.cancel()
	}
	ctx, cancel := context.WithCancel(ctx)
	f.seen[c.Leadership.Database] = &watching{c: c, cancel: cancel}
	if c.Host == f.agent.Name {
		if c.Phase == fence.Revoked {
			f.giveIn(ctx, c)
		}
		return
	}
	standby := f.ownStandby(c)
	if standby == nil {
		return
	}
	if c.Phase == fence.Suspected {
		standby.done.Go(func() { f.witness(ctx, c) })
		return
	}
	f.reportCut(ctx, c, standby)
}

// giveIn ends the own primary, which was replaced while this host was silent.
func (f *fences) giveIn(ctx context.Context, c fence.Case) {
	id := c.Leadership.Database + "." + c.Leadership.Leader
	r := f.agent.runner(ctx, id)
	r.do(func(ctx context.Context) {
		l, err := r.leadership(ctx)
		if err == nil && l.Leader == c.Leadership.Leader {
			return // it was elected again
		}
		r.log.Warn("this primary was replaced while the host was silent", "case", c.ID)
		if r.killAll(ctx, "primary was replaced") {
			r.tellWALEnd(ctx, c)
		}
		r.retry = backoff{}
	})
}

func (f *fences) reportCut(ctx context.Context, c fence.Case, standby *runner) {
	_, name, _ := strings.Cut(standby.id, ".")
	report := fence.CutReport{
		Case: c.ID, Host: f.agent.Name, Member: name, How: f.agent.cut.name(),
		LSN: standby.probe.last().facts.LSN, At: time.Now().UTC(),
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	key := state.Cut(c.Leadership.Database, f.agent.Name)
	if _, err := f.agent.store.Commit(ctx, state.Put(key, report)); err != nil {
		f.agent.Log.Warn("report cut", "case", c.ID, "error", err)
		delete(f.seen, c.Leadership.Database) // tried again at the next look
	}
}

// witness looks at the suspected primary until the case moves on.
func (f *fences) witness(ctx context.Context, c fence.Case) {
	key := state.Witness(c.Leadership.Database, f.agent.Name)
	for {
		seen := fence.Witness{Case: c.ID, Host: f.agent.Name}
		var both sync.WaitGroup
		both.Go(func() { seen.Patroni = f.patroniAnswers(ctx, c.Patroni) })
		both.Go(func() { seen.Postgres = postgresAnswers(ctx, c.Postgres) })
		both.Wait()
		seen.At = time.Now().UTC()
		if ctx.Err() != nil {
			return
		}
		if _, err := f.agent.store.Commit(ctx, state.Put(key, seen)); err != nil {
			f.agent.Log.Warn("bear witness", "case", c.ID, "error", err)
		}
		if !sleep(ctx, witnessEvery) {
			return
		}
	}
}

// patroniAnswers: it completes a request, which a frozen one does not, although
// its kernel still accepts connections.
func (f *fences) patroniAnswers(ctx context.Context, address string) bool {
	config, err := f.agent.Identity.ClientTLS()
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
func postgresAnswers(ctx context.Context, address string) bool {
	dialer := net.Dialer{Timeout: witnessPatience}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(witnessPatience)) != nil {
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
