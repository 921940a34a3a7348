package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/aws/front"
	"howdah/internal/identity/seal"
	"howdah/internal/model/regain"
	"howdah/internal/state"
	"howdah/internal/view"
)

// adminHeld tells what hosts have since the home was restored.
func (s *Server) adminHeld(context.Context, front.Call, admin.Nothing) (admin.Held, error) {
	home, err := state.Load[regain.Home](s.Cache, state.Restored())
	if err != nil {
		return admin.Held{}, nil //nolint:nilerr // it never was
	}
	out := admin.Held{Restored: true, From: home.Value.From, Taken: home.Value.Taken.UTC().Format("2006-01-02T15:04:05Z")}
	copies := view.Told(s.Cache, home.Value.ID)
	out.Missing = view.Missing(s.Cache, home.Value)
	seals, err := s.seals()
	if err != nil {
		return admin.Held{}, err
	}
	names, seen := s.databaseNames(), map[string]bool{}
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
			Timeline: c.Timeline, LSN: c.LSN.String(), Detail: s.detail(seals, c),
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

// seals are those of what hosts are told of members.
func (s *Server) seals() (*seal.Assignments, error) {
	key, err := s.Home.SealKey()
	if err != nil {
		return nil, err
	}
	return seal.NewAssignments(key)
}

// detail is what an operator should know of a copy before it is chosen.
func (s *Server) detail(seals *seal.Assignments, c regain.Copy) string {
	_, _, held := s.Cache.Raw(state.Hold(c.Assignment.Scope))
	founded, ok := view.Held{Cache: s.Cache, Seals: seals}.Founded(c.Host, c.Assignment.ID, c)
	switch {
	case !held || c.Unsettled != "":
		return c.Unsettled
	case !ok:
		return "its host was forgotten, and nothing else says that it was told of it"
	case founded.Ground == regain.Retired:
		return "the home had given it up before"
	case founded.Ground == regain.Unfounded:
		return "nothing but its host's word says that it was told of it"
	}
	return ""
}

// awaited: databases wait for what a host says that only other hosts know.
func (s *Server) awaited(host string) bool {
	home, err := state.Load[regain.Home](s.Cache, state.Restored())
	if err != nil || len(s.Cache.Keys(state.HeldRoot)) == 0 {
		return false
	}
	return slices.Contains(view.Missing(s.Cache, home.Value), host)
}

// told: the host has said since the restoration what it has.
func (s *Server) told(host string) bool {
	_, _, said := s.Cache.Raw(state.Holding(host))
	return said || len(s.Cache.Keys(state.HoldingPrefix(host))) > 0
}

// elsewhere: another host has told of data of a database that is held, and not by its own word
// alone.
func (s *Server) elsewhere(database, host string) bool {
	home, err := state.Load[regain.Home](s.Cache, state.Restored())
	if err != nil {
		return false
	}
	seals, err := s.seals()
	if err != nil {
		return false
	}
	judge := view.Held{Cache: s.Cache, Seals: seals}
	copies := view.Told(s.Cache, home.Value.ID)
	return slices.ContainsFunc(copies, func(c regain.Copy) bool {
		founded, ok := judge.Founded(c.Host, c.Assignment.ID, c)
		return ok && founded.Ground.Founded() && founded.Assignment.Scope == database && c.Host != host && c.System != ""
	})
}

// databaseNames are those of all databases, by resource id.
func (s *Server) databaseNames() map[string]string {
	names := map[string]string{}
	for _, d := range s.subjects() {
		names[d.Want.ID] = d.common.Name
	}
	return names
}

// adminTakeOver takes an operator's word on which copy leads on.
func (s *Server) adminTakeOver(ctx context.Context, c front.Call, in admin.TakeOverRequest) (admin.Nothing, error) {
	id := in.Database
	for known, name := range s.databaseNames() {
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
	home, err := state.Get[regain.Home](ctx, s.Store, state.Restored())
	if err != nil {
		return admin.Nothing{}, err
	}
	copies := view.Told(s.Cache, home.Value.ID)
	if !slices.ContainsFunc(copies, func(c regain.Copy) bool {
		return c.Name() == in.Copy && c.Assignment.Scope == id && c.System != "" && c.Assignment.Generation > 0
	}) {
		return admin.Nothing{}, admin.NewError(admin.CodeInvalidRequest, fmt.Sprintf("There is no copy %s of %s.", in.Copy, in.Database), "see `howdah home held`")
	}
	// Patroni knows both by the same name: the one that is placed would lead on, with its own data.
	host, name, _ := strings.Cut(in.Copy, "/")
	if at, placed := view.Placed(s.Cache, id)[name]; placed && at != host {
		return admin.Nothing{}, admin.NewError(admin.CodeInvalidRequest,
			fmt.Sprintf("The home has member %s of %s on %s: %s cannot have it too.", name, in.Database, at, host), "see `howdah home held`")
	}
	s.Log.Warn("a copy was chosen to lead on", "database", id, "copy", in.Copy, "by", c.Who.Key)
	hold.Value.Chosen = in.Copy
	_, err = s.Store.Commit(ctx, state.Swap(hold.Key, hold.Revision, hold.Value))
	return admin.Nothing{}, err
}

// strangers are problems of data of which the home knows no database since it was
// restored: nothing of them is touched.
func (s *Server) strangers() []admin.Problem {
	home, err := state.Load[regain.Home](s.Cache, state.Restored())
	if err != nil {
		return nil
	}
	copies := view.Told(s.Cache, home.Value.ID)
	names := s.databaseNames()
	of := map[string][]regain.Copy{}
	for _, c := range copies {
		if id := c.Assignment.Scope; names[id] == "" {
			of[id] = append(of[id], c)
		}
	}
	var all []admin.Problem
	for id, theirs := range of {
		hosts := make([]string, len(theirs))
		for i, c := range theirs {
			hosts[i] = fmt.Sprintf("%s (%s:%d)", c.Host, c.Assignment.Address, c.Assignment.Port)
		}
		slices.Sort(hosts)
		all = append(all, admin.Problem{
			Code: admin.ProblemStranger, Subject: "data of " + id, Command: "howdah home held",
			Text: "the restored home knows no such database, and leaves its data alone: on " + strings.Join(hosts, ", ") + s.lostKey(id, theirs),
		})
	}
	slices.SortFunc(all, func(a, b admin.Problem) int { return strings.Compare(a.Subject, b.Subject) })
	return all
}

// lostKey says what the loss of its key means for an encrypted database that the home does not
// know; "" if it has none, or the key is there.
func (s *Server) lostKey(id string, copies []regain.Copy) string {
	encrypted := func(c regain.Copy) bool { return c.Encrypted }
	open := func(c regain.Copy) bool { return !c.Locked }
	if _, _, there := s.Cache.Raw(state.StorageKey(id)); there || !slices.ContainsFunc(copies, encrypted) {
		return ""
	}
	const lost = "; its storage is encrypted, and the key of it is lost with the home: "
	if slices.ContainsFunc(copies, open) {
		return lost + "save the data now, while the kernels of these hosts have it"
	}
	return lost + "nobody can read it without a newer backup of the home"
}

// held says why a database waits to be taken over; "" if it does not.
func (s *Server) held(id string) string {
	hold, err := state.Load[regain.Hold](s.Cache, state.Hold(id))
	switch {
	case err != nil:
		return ""
	case hold.Value.Why == "":
		return "hosts are asked what data they have"
	}
	return hold.Value.Why
}
