// Package regain is how the databases of a home are taken over whose state was restored
// and is older than what hosts did since. Until then each of them is held: nobody is
// promoted or demoted by Patroni, nothing is planned, and what serves goes on. Hosts
// tell what data they have, and the newest copy leads on (Elect). The package is pure.
//
// Nothing acknowledged is lost by that: docs/design/availability.md, A lost home.
package regain

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
)

// Home says that the state of the home was restored. There is one at most: the last.
type Home struct {
	ID    string    `json:"id"` // of this restoration
	From  string    `json:"from"`
	Taken time.Time `json:"taken"` // when the state was as it was restored
	At    time.Time `json:"at"`
}

// Hold is a database that was not taken over yet.
type Hold struct {
	Database string `json:"database"`
	// System is the identifier of its data; "" if none had been made.
	System string    `json:"system,omitempty"`
	Since  time.Time `json:"since"`
	// Why it is held still. Written by reconcile.
	Why string `json:"why,omitempty"`
	// Chosen is the member that an operator wants, as HOST/MEMBER, whatever others have.
	Chosen string `json:"chosen,omitempty"`
	// Given is the number that was given to a member last in the state that was restored; 0: it
	// is not known.
	Given int `json:"given,omitempty"`
	// Left are the copies that were given up by then, and to be deleted, as HOST/MEMBER.
	Left []string `json:"left,omitempty"`
}

// Holding are the members of which a host has data. It was written after the copies.
type Holding struct {
	Home    string   `json:"home"` // Home.ID
	Host    string   `json:"host"`
	Members []string `json:"members"`
	// Hosts are those that it knows of, also from before the restoration: one that joined
	// after the backup may have the newest copy.
	Hosts []string  `json:"hosts,omitempty"`
	At    time.Time `json:"at"`
}

// Copy is what a host has of a member.
type Copy struct {
	Home string `json:"home"` // Home.ID
	Host string `json:"host"`
	// Assignment is what the host was told of the member last.
	Assignment member.Assignment `json:"assignment"`
	// Told is the same as it was written, with all fields and its seal; empty: the agent is of an
	// older release, or was told by a control plane of one.
	Told    json.RawMessage `json:"told,omitempty"`
	System  string          `json:"system"` // identifier of the data
	Running bool            `json:"running,omitempty"`
	// Primary: it takes writes, or did until it ended.
	Primary bool `json:"primary,omitempty"`
	// Streaming: it is a standby that receives WAL now.
	Streaming bool    `json:"streaming,omitempty"`
	Timeline  int     `json:"timeline"`
	LSN       lsn.LSN `json:"lsn"`
	// Encrypted: its directory has a key of its own. Locked: that is not in the kernel, so
	// that nobody can look at the copy.
	Encrypted bool `json:"encrypted,omitempty"`
	Locked    bool `json:"locked,omitempty"`
	// Unsettled is why nothing can be said of it now.
	Unsettled string `json:"unsettled,omitempty"`
	// Ground is why it is believed. Control planes find it out; hosts cannot say it.
	Ground Ground `json:"-"`
}

// Ground is why the home believes that it told a host of the member whose copy the host has.
// Otherwise a host could claim a copy of any database, with a timeline of its own making.
type Ground int

const (
	// Unfounded: nothing but the host says so.
	Unfounded Ground = iota
	// Retired: the restored state had given the member up. Others had all that it had.
	Retired
	// Assigned: the restored state has the member at that host.
	Assigned
	// Sealed: what the host was told has the home's seal (Copy.Told).
	Sealed
)

// Founded: the copy counts.
func (g Ground) Founded() bool { return g == Assigned || g == Sealed }

// GroundOf finds the ground of a copy of a database that is held. sealed: its seal is right for
// the host and for what it says. placed are the hosts of the members that the restored state has.
func GroundOf(h Hold, c Copy, sealed bool, placed map[string]string) Ground {
	name := c.Assignment.Name
	number := member.Number(name)
	switch host, known := placed[name]; {
	case known && host == c.Host:
		return Assigned
	case known: // no name is used twice
		return Unfounded
	case number > 0 && number <= h.Given:
		return Retired
	case sealed:
		return Sealed
	}
	return Unfounded
}

// Name is how operators call a copy: HOST/MEMBER.
func (c Copy) Name() string { return c.Host + "/" + c.Assignment.Name }

var (
	// ErrNoData says that no host has data of the database.
	ErrNoData = errors.New("no host has data of it")
	// ErrUndecided says that it cannot be known which copy is the newest.
	ErrUndecided = errors.New("it cannot be known which copy is the newest")
)

// Elect finds the copy that has everything that was acknowledged, among those of all
// hosts. Whoever was promoted had everything, and began a new timeline: the newest one
// counts. Of those on it the primary has most, as the others got all they have of it; without it, who received
// most. What nobody can say leaves it undecided, and so does a copy of which only its host says that it
// should have one: it may have the newest data, or lie.
func Elect(h Hold, copies []Copy) (Copy, error) {
	copies = slices.DeleteFunc(slices.Clone(copies), func(c Copy) bool { return c.Assignment.Scope != h.Database })
	if h.Chosen != "" {
		return chosen(h, copies)
	}
	copies = slices.DeleteFunc(copies, func(c Copy) bool { return c.System == "" && c.Unsettled == "" })
	if len(copies) == 0 {
		return Copy{}, ErrNoData
	}
	given := copies[0].Name()
	copies = slices.DeleteFunc(copies, func(c Copy) bool { return c.Ground == Retired })
	if len(copies) == 0 {
		return Copy{}, fmt.Errorf("%w: there is only %s, and the home had given that member up before", ErrUndecided, given)
	}
	if why := doubt(h, copies); why != "" {
		return Copy{}, fmt.Errorf("%w: %s", ErrUndecided, why)
	}
	slices.SortStableFunc(copies, func(a, b Copy) int {
		return cmp.Or(b.Timeline-a.Timeline, rank(b)-rank(a), cmp.Compare(b.LSN, a.LSN), strings.Compare(a.Name(), b.Name()))
	})
	if len(copies) > 1 && copies[0].Primary && copies[1].Primary && copies[0].Timeline == copies[1].Timeline {
		return Copy{}, fmt.Errorf("%w: %s and %s were primaries on timeline %d", ErrUndecided, copies[0].Name(), copies[1].Name(), copies[0].Timeline)
	}
	return copies[0], nil
}

func rank(c Copy) int {
	if c.Primary {
		return 1
	}
	return 0
}

// doubt is why it cannot be known which of the copies is the newest, or "".
func doubt(h Hold, copies []Copy) string {
	for _, c := range copies {
		if !c.Ground.Founded() {
			return fmt.Sprintf("nothing but the word of %s says that it was told of member %s. Choose by hand, as in howdah home take-over %s %s; or, if %s lies, stop it, and howdah host forget %s",
				c.Host, c.Assignment.Name, h.Database, c.Name(), c.Host, c.Host)
		}
	}
	for _, c := range copies {
		if c.Unsettled != "" {
			return c.Name() + ": " + c.Unsettled
		}
	}
	own := cmp.Or(h.System, copies[0].System)
	for _, c := range copies {
		if c.System != own {
			// The data may have been made anew since.
			return fmt.Sprintf("%s has data of another database: they are %s, and not %s", c.Name(), c.System, own)
		}
	}
	for _, c := range copies {
		sends := func(from Copy) bool { return from.Running && from.Primary && from.Timeline >= c.Timeline }
		if c.Streaming && c.Assignment.Cluster.Upstream == nil && !slices.ContainsFunc(copies, sends) {
			return c.Name() + " receives WAL from a primary that no host has told of"
		}
	}
	return ""
}

func chosen(h Hold, copies []Copy) (Copy, error) {
	for _, c := range copies {
		if c.Name() == h.Chosen && c.System != "" {
			return c, nil
		}
	}
	return Copy{}, fmt.Errorf("%w: %s has none of its data", ErrUndecided, h.Chosen)
}

// Missing are the hosts that did not say what they have since the home was restored: of
// those that the home knows, and of those that hosts know which said it. gone are those
// that an operator forgot.
func Missing(home Home, hosts []string, said map[string]Holding, gone []string) []string {
	all := slices.Clone(hosts)
	for _, s := range said {
		if s.Home == home.ID {
			all = append(all, s.Hosts...)
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(host string) bool {
		return said[host].Home == home.ID || slices.Contains(gone, host)
	})
}
