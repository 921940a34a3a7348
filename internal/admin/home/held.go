package home

import (
	"fmt"
	"slices"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/admin/database"
	"howdah/internal/identity/seal"
	"howdah/internal/model/regain"
	"howdah/internal/state"
	"howdah/internal/view"
)

// Held knows what hosts have told since the home was restored, and how far they are to be believed.
// All fields are required.
type Held struct {
	Cache     *state.Cache
	Databases *database.Source
	// SealKey returns the key that seals secrets of the state.
	SealKey func() ([]byte, error)
}

// Why returns why a database waits to be taken over. It returns "" if it does not wait.
func (h *Held) Why(id string) string {
	hold, err := state.Load[regain.Hold](h.Cache, state.Hold(id))
	switch {
	case err != nil:
		return ""
	case hold.Value.Why == "":
		return "hosts are asked what data they have"
	}
	return hold.Value.Why
}

// Strangers returns problems: one for each database whose data hosts have, and that the home does
// not know since it was restored. Nothing of these data is touched.
func (h *Held) Strangers() []admin.Problem {
	home, err := state.Load[regain.Home](h.Cache, state.Restored())
	if err != nil {
		return nil
	}
	copies := view.Told(h.Cache, home.Value.ID)
	names := h.Databases.Names()
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
			Text: "the restored home knows no such database, and leaves its data alone: on " + strings.Join(hosts, ", ") + h.lostKey(id, theirs),
		})
	}
	slices.SortFunc(all, func(a, b admin.Problem) int { return strings.Compare(a.Subject, b.Subject) })
	return all
}

// lostKey says what the loss of its key means for an encrypted database that the home does not
// know. It returns "" if the database has no key, or if the key is there.
func (h *Held) lostKey(id string, copies []regain.Copy) string {
	encrypted := func(c regain.Copy) bool { return c.Encrypted }
	open := func(c regain.Copy) bool { return !c.Locked }
	if _, _, there := h.Cache.Raw(state.StorageKey(id)); there || !slices.ContainsFunc(copies, encrypted) {
		return ""
	}
	const lost = "; its storage is encrypted, and the key of it is lost with the home: "
	if slices.ContainsFunc(copies, open) {
		return lost + "save the data now, while the kernels of these hosts have it"
	}
	return lost + "nobody can read it without a newer backup of the home"
}

// Awaited reports whether databases wait for the word of a host that only other hosts know.
func (h *Held) Awaited(host string) bool {
	home, err := state.Load[regain.Home](h.Cache, state.Restored())
	if err != nil || len(h.Cache.Keys(state.HeldRoot)) == 0 {
		return false
	}
	return slices.Contains(view.Missing(h.Cache, home.Value), host)
}

// Told reports whether a host has said what it has since the home was restored.
func (h *Held) Told(host string) bool {
	_, _, said := h.Cache.Raw(state.Holding(host))
	return said || len(h.Cache.Keys(state.HoldingPrefix(host))) > 0
}

// Elsewhere reports whether another host has told of data of a database that is held. A host's word
// alone does not count.
func (h *Held) Elsewhere(database, host string) bool {
	home, err := state.Load[regain.Home](h.Cache, state.Restored())
	if err != nil {
		return false
	}
	seals, err := h.seals()
	if err != nil {
		return false
	}
	judge := view.Held{Cache: h.Cache, Seals: seals}
	copies := view.Told(h.Cache, home.Value.ID)
	return slices.ContainsFunc(copies, func(c regain.Copy) bool {
		founded, ok := judge.Founded(c.Host, c.Assignment.ID, c)
		return ok && founded.Ground.Founded() && founded.Assignment.Scope == database && c.Host != host && c.System != ""
	})
}

// detail returns what an operator should know of a copy before it is chosen.
func (h *Held) detail(seals *seal.Assignments, c regain.Copy) string {
	_, _, held := h.Cache.Raw(state.Hold(c.Assignment.Scope))
	founded, ok := view.Held{Cache: h.Cache, Seals: seals}.Founded(c.Host, c.Assignment.ID, c)
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

// seals returns the sealer of what hosts are told of members.
func (h *Held) seals() (*seal.Assignments, error) {
	key, err := h.SealKey()
	if err != nil {
		return nil, err
	}
	return seal.NewAssignments(key)
}
