package database

import (
	"context"
	"fmt"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/dial"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// A standby whose host is lost confirms nothing, and commits wait for it until its WAL
// sender gives it up by itself. The judge knows earlier. It changes nothing about who has
// to confirm: with the WAL sender gone, Patroni shrinks /sync in its next round, and only
// then does the primary acknowledge without that standby.

// liveness is the judgement on a host.
type liveness struct {
	Alive bool `json:"alive"`
}

// places is where the members of a database are.
type places struct {
	Members []struct {
		Name string `json:"name"`
		Host string `json:"host"`
	} `json:"members"`
}

const (
	// sendersTimeout bounds one attempt to end WAL senders.
	sendersTimeout = 3 * time.Second
)

// followLosses ends the WAL senders of this host's primaries that lead to lost hosts.
func (a *Host) followLosses(ctx context.Context) error {
	cache := state.NewCache(a.Store.Client, a.Log, state.LiveRoot)
	cache.OnChange(func(keys []string) {
		for _, key := range keys {
			host := state.Tail(key, state.LiveRoot)
			if judged, err := state.Load[liveness](cache, key); err != nil || judged.Value.Alive || host == a.Name {
				continue
			}
			for _, r := range a.allRunners() {
				if s := r.probe.Last(); s.Ready && !s.Facts.InRecovery {
					r.Go(func() { a.endSenders(ctx, r, host) })
				}
			}
		}
	})
	return cache.Run(ctx)
}

// membersOn names the members of a database that are on a host, as PostgreSQL knows them:
// by their own names, or those of members that an older release made.
func (a *Host) membersOn(ctx context.Context, database, host string) ([]string, error) {
	layout, err := state.Get[places](ctx, a.Store, state.Layout(database))
	if err != nil {
		return nil, fmt.Errorf("find the members of %s: %w", database, err)
	}
	var names []string
	for _, m := range layout.Value.Members {
		if m.Host == host {
			names = append(names, patroni.OwnName(database, m.Name), m.Name)
		}
	}
	return names, nil
}

// endSenders ends the WAL senders of a primary that lead to members on a lost host, and
// has Patroni look at once. A standby that lives all the same connects again.
func (a *Host) endSenders(ctx context.Context, r *runner, host string) {
	ctx, cancel := context.WithTimeout(ctx, sendersTimeout)
	defer cancel()
	names, err := a.membersOn(ctx, r.Database(), host)
	if err != nil || len(names) == 0 {
		return // none of its standbys is there, or nobody knows: the time-out does it
	}
	target := r.probe.Target()
	conn, err := dial.Admin(ctx, a.Agent, target)
	if err != nil {
		r.Log.Warn("end WAL senders to a lost host", "host", host, "error", err)
		return
	}
	defer conn.Close(context.WithoutCancel(ctx))
	ended, err := postgres.EndSenders(ctx, conn, names)
	if err != nil {
		r.Log.Warn("end WAL senders to a lost host", "host", host, "error", err)
		return
	}
	if ended == 0 {
		return
	}
	r.Log.Info("ended WAL senders to a lost host", "host", host, "members", names)
	dial.Wake(ctx, a.Agent, target)
}
