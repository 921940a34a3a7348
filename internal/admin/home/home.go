// Package home has the admin API's verbs on the whole home: what hosts have after it was restored,
// which copy leads on, and the wipe of a home that is disposable.
package home

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/database"
	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
	"howdah/internal/model/regain"
	"howdah/internal/state"
	"howdah/internal/view"
)

// Config is what the verbs need. All fields except Disposable are required.
type Config struct {
	State     *state.Client
	Databases *database.Source
	Held      *Held
	Now       func() time.Time
	Log       *slog.Logger
	// Disposable says that the home may be wiped.
	Disposable bool
}

// service has the handlers.
type service struct {
	*state.Client
	databases  *database.Source
	held       *Held
	now        func() time.Time
	log        *slog.Logger
	disposable bool
}

// Verbs returns the verbs on the home.
func Verbs(cfg Config) verb.Table {
	s := &service{cfg.State, cfg.Databases, cfg.Held, cfg.Now, cfg.Log, cfg.Disposable}
	return verb.Table{
		admin.VerbHeld:     verb.On(verb.OfHome, s.show),
		admin.VerbTakeOver: verb.On(verb.OfHome, s.takeOver),
		admin.VerbWipe:     verb.On(verb.OfHome, s.wipe).Within(wipeTimeout),
	}
}

// show tells what hosts have since the home was restored.
func (s *service) show(context.Context, front.Call, admin.Nothing) (admin.Held, error) {
	restored, err := state.Load[regain.Home](s.Cache, state.Restored())
	if err != nil {
		return admin.Held{}, nil //nolint:nilerr // it never was
	}
	out := admin.Held{Restored: true, From: restored.Value.From, Taken: restored.Value.Taken.UTC().Format("2006-01-02T15:04:05Z")}
	copies := view.Told(s.Cache, restored.Value.ID)
	out.Missing = view.Missing(s.Cache, restored.Value)
	seals, err := s.held.seals()
	if err != nil {
		return admin.Held{}, err
	}
	names, seen := s.databases.Names(), map[string]bool{}
	for _, c := range copies {
		id := c.Assignment.Scope
		name, known := names[id]
		if !known {
			name = id
		}
		hold, err := state.Load[regain.Hold](s.Cache, state.Hold(id))
		seen[id] = true
		out.Copies = append(out.Copies, admin.Copy{
			Database: name, Known: known, Held: err == nil, Why: hold.Value.Why, Copy: c.Name(), Running: c.Running, Primary: c.Primary,
			Timeline: c.Timeline, LSN: c.LSN.String(), Detail: s.held.detail(seals, c),
		})
	}
	for _, hold := range state.LoadAll[regain.Hold](s.Cache, state.HeldRoot) {
		if id := hold.Value.Database; !seen[id] {
			out.Copies = append(out.Copies, admin.Copy{Database: names[id], Known: true, Held: true, Why: hold.Value.Why})
		}
	}
	slices.SortStableFunc(out.Copies, func(a, b admin.Copy) int {
		return strings.Compare(a.Database+" "+a.Copy, b.Database+" "+b.Copy)
	})
	return out, nil
}

// takeOver takes an operator's word on which copy leads on.
func (s *service) takeOver(ctx context.Context, c front.Call, in admin.TakeOverRequest) (admin.Nothing, error) {
	id := in.Database
	for known, name := range s.databases.Names() {
		if name == in.Database {
			id = known
		}
	}
	hold, err := state.Get[regain.Hold](ctx, s.Store, state.Hold(id))
	if errors.Is(err, state.ErrNotFound) {
		return admin.Nothing{}, admin.NewError(admin.CodeInvalidRequest, in.Database+" does not wait to be taken over.", "see `howdah home held`")
	}
	if err != nil {
		return admin.Nothing{}, err
	}
	restored, err := state.Get[regain.Home](ctx, s.Store, state.Restored())
	if err != nil {
		return admin.Nothing{}, err
	}
	copies := view.Told(s.Cache, restored.Value.ID)
	if !slices.ContainsFunc(copies, func(c regain.Copy) bool {
		return c.Name() == in.Copy && c.Assignment.Scope == id && c.System != "" && c.Assignment.Generation > 0
	}) {
		return admin.Nothing{}, admin.NewError(admin.CodeInvalidRequest, fmt.Sprintf("There is no copy %s of %s.", in.Copy, in.Database), "see `howdah home held`")
	}
	// Patroni knows both members by the same name. The one that is placed would lead on, with its
	// own data.
	host, name, _ := strings.Cut(in.Copy, "/")
	if at, placed := view.Placed(s.Cache, id)[name]; placed && at != host {
		return admin.Nothing{}, admin.NewError(admin.CodeInvalidRequest,
			fmt.Sprintf("The home has member %s of %s on %s: %s cannot have it too.", name, in.Database, at, host), "see `howdah home held`")
	}
	s.log.Warn("a copy was chosen to lead on", "database", id, "copy", in.Copy, "by", c.Who.Key)
	hold.Value.Chosen = in.Copy
	_, err = s.Store.Commit(ctx, state.Swap(hold.Key, hold.Revision, hold.Value))
	return admin.Nothing{}, err
}
