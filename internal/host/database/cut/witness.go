package cut

import (
	"context"
	"crypto/tls"
	"net/http"
	"sync"
	"time"

	"howdah/internal/engine/patroni/rest"
	"howdah/internal/failover/fence"
	"howdah/internal/host/agent"
	"howdah/internal/host/database/dial"
	"howdah/internal/host/pace"
	"howdah/internal/state"
)

const (
	// witnessEvery is how often a suspected primary is looked at.
	witnessEvery = 200 * time.Millisecond
	// witnessPatience is how long an answer of it is waited for.
	witnessPatience = 300 * time.Millisecond
)

// witness looks at the suspected primary until the case moves on.
func (f *Fences) witness(ctx context.Context, c fence.Case) {
	key := state.Witness(c.ID, f.Agent.Name)
	for {
		seen := fence.Witness{Case: c.ID, Host: f.Agent.Name}
		var both sync.WaitGroup
		both.Go(func() { seen.Patroni = f.patroniAnswers(ctx, c.Patroni) })
		both.Go(func() { seen.Postgres = dial.Answers(ctx, c.Postgres, witnessPatience) })
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

func (f *Fences) testify(ctx context.Context, key string, seen fence.Witness) {
	call, cancel := context.WithTimeout(ctx, agent.EtcdTimeout)
	defer cancel()
	if _, err := f.Agent.Store.Commit(call, state.Put(key, seen)); err != nil && ctx.Err() == nil {
		f.Agent.Log.Warn("bear witness", "case", seen.Case, "error", err)
	}
}

// patroniAnswers: it completes a request, which a frozen one does not, although
// its kernel still accepts connections.
func (f *Fences) patroniAnswers(ctx context.Context, address string) bool {
	config, err := f.Agent.Identity.ClientTLS()
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
