// Package regain is how the databases of a home are taken over whose state was restored
// and is older than what hosts did since. Until then each of them is held: nobody is
// promoted or demoted by Patroni, nothing is planned, and what serves goes on. Hosts
// tell what data they have, and the newest copy leads on (Elect). The package is pure.
//
// Nothing acknowledged is lost by that: docs/design/availability.md, A lost home.
package regain

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"howdah/internal/engine/postgres/lsn"
	"howdah/internal/member"
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
}

// Holding are the members of which a host has data. It was written after the copies.
type Holding struct {
	Home    string    `json:"home"` // Home.ID
	Host    string    `json:"host"`
	Members []string  `json:"members"`
	At      time.Time `json:"at"`
}

// Copy is what a host has of a member.
type Copy struct {
	Home string `json:"home"` // Home.ID
	Host string `json:"host"`
	// Assignment is what the host was told of the member last.
	Assignment member.Assignment `json:"assignment"`
	System     string            `json:"system"` // identifier of the data
	Running    bool              `json:"running,omitempty"`
	// Primary: it takes writes, or did until it ended.
	Primary  bool    `json:"primary,omitempty"`
	Timeline int     `json:"timeline"`
	LSN      lsn.LSN `json:"lsn"`
	// Unsettled is why nothing can be said of it now.
	Unsettled string `json:"unsettled,omitempty"`
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
// most.
func Elect(h Hold, copies []Copy) (Copy, error) {
	copies, err := ofDatabase(h, copies)
	if err != nil {
		return Copy{}, err
	}
	if h.Chosen != "" {
		return chosen(h, copies)
	}
	for _, c := range copies {
		if c.Unsettled != "" {
			return Copy{}, fmt.Errorf("%w: %s: %s", ErrUndecided, c.Name(), c.Unsettled)
		}
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

// ofDatabase are the copies that are data of the database.
func ofDatabase(h Hold, copies []Copy) ([]Copy, error) {
	var own []Copy
	for _, c := range copies {
		switch {
		case c.Assignment.Scope != h.Database || c.System == "":
		case h.System == "" || c.System == h.System:
			own = append(own, c)
		}
	}
	if len(own) == 0 {
		return nil, ErrNoData
	}
	for _, c := range own {
		if c.System != own[0].System {
			return nil, fmt.Errorf("%w: %s and %s have data of two databases", ErrUndecided, own[0].Name(), c.Name())
		}
	}
	return own, nil
}

func chosen(h Hold, copies []Copy) (Copy, error) {
	for _, c := range copies {
		if c.Name() == h.Chosen {
			return c, nil
		}
	}
	return Copy{}, fmt.Errorf("%w: %s has none of its data", ErrUndecided, h.Chosen)
}

// Missing are the hosts that did not say what they have since the home was restored.
func Missing(home Home, hosts []string, said map[string]Holding) []string {
	var missing []string
	for _, host := range hosts {
		if said[host].Home != home.ID {
			missing = append(missing, host)
		}
	}
	slices.Sort(missing)
	return missing
}
