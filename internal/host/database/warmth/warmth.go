// Package warmth sees to cluster cache management: a primary is set up to answer its standby, and a
// standby is asked how far it is. Where PostgreSQL has not loaded the library, the agent does the
// work from outside.
package warmth

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/host/database/dial"
	"howdah/internal/host/database/probe"
	"howdah/internal/host/database/visitor"
	"howdah/internal/host/pace"
	"howdah/internal/model/member"
)

const (
	// every is how often it looks.
	every = time.Second
	// within is how long it waits for an answer.
	within = 5 * time.Second
	// againEvery is how often it looks for databases that are new.
	againEvery = time.Minute
)

// Keeper sees to the cache of one member.
type Keeper struct {
	agent *agent.Agent
	id    string
	probe *probe.Prober

	mu   sync.Mutex
	told *member.Cache // guarded by mu

	// All below belongs to the goroutine of Run.
	conn  *pgx.Conn       // to a standby, as rdsmon
	setUp bool            // the platform's database of a primary is
	whole bool            // it was, with the library
	ready map[uint32]bool // databases of a primary that are set up
	again time.Time       // when it looks for others, or tries again
	visit visitor.Visitor // enters them
	round time.Time       // when the next round of reading from outside may begin
	reads *pace.Flow      // of reading from outside
	// forgot says that a standby has no list any more of what it had cached as a primary; unforgotten
	// is why not.
	forgot      bool
	unforgotten string
	// seen is the start of a primary for which its list was dealt with, and written when the next list
	// is due.
	seen, written time.Time
	turn          *sync.Mutex
}

// New returns the keeper of a member, which a prober looks at. All members of a host share turn: one at a
// time reads again what it had cached before it was started.
func New(a *agent.Agent, id string, p *probe.Prober, turn *sync.Mutex) *Keeper {
	return &Keeper{agent: a, id: id, probe: p, turn: turn}
}

// Last is what the member's cache manager said last; nil: it has nothing to do.
func (k *Keeper) Last() *member.Cache {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.told
}

func (k *Keeper) tell(c *member.Cache) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.told = c
}

// Run looks until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	defer k.drop()
	for pace.Sleep(ctx, every) {
		target, sight := k.probe.Target(), k.probe.Last()
		if target.Parameters[postgres.CacheSetting] != "on" || !sight.Ready {
			k.forget()
			continue
		}
		if !sight.Facts.InRecovery {
			k.tell(nil)
			k.forgot = false
			k.answers(ctx, target, loaded(sight.Facts.Libraries))
			k.remembers(ctx, target, sight.Facts.Started)
			continue
		}
		k.setUp, k.ready, k.again = false, nil, time.Time{}
		k.forgetList(sight.Facts.Streaming)
		k.asks(ctx, target, loaded(sight.Facts.Libraries))
	}
}

// forget ends what is told, and begins anew when there is something to do again.
func (k *Keeper) forget() {
	k.tell(nil)
	k.drop()
	k.setUp, k.ready, k.again, k.forgot, k.seen = false, nil, time.Time{}, false, time.Time{}
}

func (k *Keeper) drop() {
	if k.conn != nil {
		visitor.HangUp(k.conn)
		k.conn = nil
	}
}

// answers sets a primary up: again when PostgreSQL was started with the library, or without it.
func (k *Keeper) answers(ctx context.Context, target member.Assignment, library bool) {
	k.drop()
	if k.whole != library {
		k.setUp, k.whole, k.again = false, library, time.Time{}
	}
	if time.Now().Before(k.again) {
		return
	}
	err := k.prepare(ctx, target, library)
	if k.again = time.Now().Add(againEvery); !k.setUp {
		k.again = time.Now().Add(within)
	}
	if err != nil && ctx.Err() == nil {
		k.agent.Log.Warn("cluster cache management is not set up", "member", k.id, "error", err)
	}
}

func (k *Keeper) prepare(ctx context.Context, target member.Assignment, library bool) error {
	conn, err := k.admin(ctx, target, "rdsadmin")
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if !k.setUp {
		err := postgres.SetUpAsking(ctx, conn)
		if err == nil && library {
			err = postgres.SetUpCache(ctx, conn)
		}
		if err != nil {
			return err
		}
		k.setUp, k.ready = true, map[uint32]bool{}
	}
	databases, err := postgres.Databases(ctx, conn)
	if err != nil {
		return err
	}
	for _, d := range databases {
		if k.ready[d.OID] {
			continue
		}
		ready, bad := k.visit.Call(ctx, conn, d,
			func(ctx context.Context) (*pgx.Conn, error) { return k.admin(ctx, target, d.Name) },
			func(conn *pgx.Conn) error { return postgres.SetUpDatabase(ctx, conn, library) })
		k.ready[d.OID] = ready
		err = errors.Join(err, bad)
		if errors.Is(bad, visitor.ErrStuck) {
			break
		}
	}
	return err
}

// admin connects as rdsadmin. Nothing waits long there: neither for locks, nor for answers, nor for
// standbys. What is made there is made again by the next primary, if that has not received it.
func (k *Keeper) admin(ctx context.Context, target member.Assignment, database string) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	config, err := dial.AdminConfig(k.agent, target)
	if err != nil {
		return nil, err
	}
	config.Database = database
	config.RuntimeParams["search_path"] = "pg_catalog"
	config.RuntimeParams["lock_timeout"] = "100ms"
	config.RuntimeParams["statement_timeout"] = "30s"
	config.RuntimeParams["synchronous_commit"] = "local"
	return pgx.ConnectConfig(ctx, config)
}

// asks finds out how warm a standby is, or makes it so.
func (k *Keeper) asks(ctx context.Context, target member.Assignment, library bool) {
	if library {
		c, err := k.ask(ctx, target)
		if err == nil || !errors.Is(err, postgres.ErrNoCache) {
			k.tell(&c)
			return
		}
	}
	if time.Now().Before(k.round) {
		return
	}
	k.outside(ctx, target)
	k.round = time.Now().Add(outsideEvery)
}

// ask asks the cache manager of a standby. The error is postgres.ErrNoCache where this standby, or
// its primary, has none.
func (k *Keeper) ask(ctx context.Context, target member.Assignment) (c member.Cache, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err = k.connect(ctx, target); err == nil {
		c, err = postgres.ReadCache(ctx, k.conn)
	}
	if err != nil && !errors.Is(err, postgres.ErrNoCache) {
		k.drop()
		c = member.Cache{State: "unknown", Why: err.Error()}
	}
	return c, err
}

// connect keeps a connection to a standby, as rdsmon.
func (k *Keeper) connect(ctx context.Context, target member.Assignment) error {
	if k.conn != nil && !k.conn.IsClosed() {
		return nil
	}
	config, err := dial.Monitor(k.agent, target)
	if err == nil {
		k.conn, err = pgx.ConnectConfig(ctx, config)
	}
	if err != nil {
		k.conn = nil
	}
	return err
}

func loaded(libraries string) bool {
	return slices.ContainsFunc(strings.Split(libraries, ","), func(l string) bool { return strings.Trim(l, ` "`) == postgres.CacheModule })
}
