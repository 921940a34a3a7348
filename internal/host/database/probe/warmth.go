package probe

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/dial"
	"howdah/internal/model/member"
)

// warmEvery is how often a standby is asked how warm its cache is.
const warmEvery = 5 * time.Second

// warmth is what is known of a member's cache manager.
type warmth struct {
	at   time.Time
	last *member.Cache
	set  bool // a primary answers its standby's
}

// look sets a primary up to answer, and asks a standby how far it is. A member that has no pair has
// no cache manager at work.
func (w *warmth) look(ctx context.Context, p *Prober, target member.Assignment, facts postgres.Facts) *member.Cache {
	switch {
	case target.Parameters[postgres.CacheSetting] != "on":
		*w = warmth{}
		return nil
	case !installed(target.Major):
		return &member.Cache{State: "not installed", Why: "its host has no library " + postgres.CacheModule + " for PostgreSQL " + strconv.Itoa(target.Major) + ": run scripts/install there"}
	case !loaded(facts.Libraries):
		return &member.Cache{State: "not loaded", Why: "PostgreSQL was started without the library " + postgres.CacheModule + ": reboot it"}
	case !facts.InRecovery:
		w.last = nil
		w.setUp(ctx, p, target)
		return nil
	}
	w.set = false
	if time.Since(w.at) < warmEvery {
		return w.last
	}
	c, err := postgres.ReadCache(ctx, p.conn)
	if err != nil {
		// The primary has not been set up yet, or what it has made has not come.
		c = member.Cache{State: "waiting", Why: err.Error()}
	}
	w.at, w.last = time.Now(), &c
	return w.last
}

func (w *warmth) setUp(ctx context.Context, p *Prober, target member.Assignment) {
	if w.set || time.Since(w.at) < warmEvery {
		return
	}
	w.at = time.Now()
	conn, err := dial.Admin(ctx, p.agent, target)
	if err == nil {
		defer conn.Close(ctx)
		err = postgres.SetUpCache(ctx, conn)
	}
	if err != nil {
		p.agent.Log.Warn("cluster cache management is not set up", "member", p.id, "error", err)
	}
	w.set = err == nil
}

func installed(major int) bool {
	modules, err := postgres.Modules(major)
	return err == nil && postgres.HasCache(modules)
}

func loaded(libraries string) bool {
	return slices.ContainsFunc(strings.Split(libraries, ","), func(l string) bool { return strings.Trim(l, ` "`) == postgres.CacheModule })
}
