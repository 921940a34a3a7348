// Package regain takes over the databases of a home after its state was restored from a backup that
// is older than what hosts did since. Until a database is taken over it is held: Patroni promotes
// and demotes nobody, nothing is planned, and what serves goes on. Hosts tell what data they have,
// and the newest copy becomes the leader (Elect). The package is pure.
//
// No acknowledged write is lost by that: docs/design/availability.md, A lost home.
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

// Home says that the state of the home was restored. Only the newest restoration is kept.
type Home struct {
	ID    string    `json:"id"` // of this restoration
	From  string    `json:"from"`
	Taken time.Time `json:"taken"` // when the state was as it was restored
	At    time.Time `json:"at"`
}

// Hold is a database that is not taken over yet.
type Hold struct {
	Database string `json:"database"`
	// System is the system identifier of its data, or "" if there were no data.
	System string    `json:"system,omitempty"`
	Since  time.Time `json:"since"`
	// Why says why the database is still held. Only reconcile writes it.
	Why string `json:"why,omitempty"`
	// Chosen is the copy that an operator chose, as HOST/MEMBER. It wins whatever other hosts have.
	Chosen string `json:"chosen,omitempty"`
	// Given is the highest member number that the restored state had given. 0 means that it is not
	// known.
	Given int `json:"given,omitempty"`
	// Left lists copies that the restored state had given up and was going to delete, as
	// HOST/MEMBER.
	Left []string `json:"left,omitempty"`
}

// Holding lists the members of which a host has data. It is written after the copies.
type Holding struct {
	Home    string   `json:"home"` // Home.ID
	Host    string   `json:"host"`
	Members []string `json:"members"`
	// Hosts lists all hosts that this host knows, also from before the restoration. A host that
	// joined after the backup may have the newest copy.
	Hosts []string  `json:"hosts,omitempty"`
	At    time.Time `json:"at"`
}

// Copy is the data that a host has of a member.
type Copy struct {
	Home string `json:"home"` // Home.ID
	Host string `json:"host"`
	// Assignment is the newest assignment that the host was given for the member.
	Assignment member.Assignment `json:"assignment"`
	// Told is the assignment as it was written, with all fields and its seal. It is empty if the
	// agent, or the control plane that wrote the assignment, is of an older release.
	Told    json.RawMessage `json:"told,omitempty"`
	System  string          `json:"system"` // identifier of the data
	Running bool            `json:"running,omitempty"`
	// Primary says that the copy takes writes, or did so until it ended.
	Primary bool `json:"primary,omitempty"`
	// Streaming says that the copy is a standby that receives WAL now.
	Streaming bool    `json:"streaming,omitempty"`
	Timeline  int     `json:"timeline"`
	LSN       lsn.LSN `json:"lsn"`
	// Encrypted says that the copy's directory has a key of its own. Locked says that the kernel
	// does not have that key, so that nobody can look at the copy.
	Encrypted bool `json:"encrypted,omitempty"`
	Locked    bool `json:"locked,omitempty"`
	// Unsettled says why nothing is known about the copy now.
	Unsettled string `json:"unsettled,omitempty"`
	// Ground says why the copy is believed. Control planes find it out; hosts cannot set it.
	Ground Ground `json:"-"`
}

// Ground says why the home believes that the host was told to run the member whose copy it has.
// Without a ground, a host could claim a copy of any database, with a timeline that it made up.
type Ground int

const (
	// Unfounded means that only the host itself says so.
	Unfounded Ground = iota
	// Retired means that the restored state had given the member up. Others had all that it had.
	Retired
	// Assigned means that the restored state has the member on that host.
	Assigned
	// Sealed means that what the host was told has the home's seal (Copy.Told).
	Sealed
)

// Founded reports whether the copy counts.
func (g Ground) Founded() bool { return g == Assigned || g == Sealed }

// GroundOf finds the ground of a copy. h is the hold of the copy's database. sealed says whether
// the seal is right for the host and for the text. placed maps each member of the restored state to
// its host.
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

// Name returns the name by which operators know a copy: HOST/MEMBER.
func (c Copy) Name() string { return c.Host + "/" + c.Assignment.Name }

var (
	// ErrNoData says that no host has data of the database.
	ErrNoData = errors.New("no host has data of it")
	// ErrUndecided says that nobody can know which copy is the newest.
	ErrUndecided = errors.New("it cannot be known which copy is the newest")
)

// Elect finds the copy that has every acknowledged write, among the copies of all hosts. A member
// that was promoted had every acknowledged write, and began a new timeline. So the copies on the
// newest timeline count. On it the primary has most, as the others received everything from it.
// Without the primary, the copy that received most is elected. Elect returns ErrUndecided if a
// copy's state is not known. It also does so if only a copy's own host says that it should have the
// copy: the copy may be the newest, or the host may lie. It returns ErrNoData if no host has data.
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

// doubt says why nobody can know which copy is the newest, or returns "".
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
			// The database may have been created anew after the backup.
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

// Missing returns the hosts that have not said what they have since the home was restored. It
// expects the hosts that the home knows, and those that any host which has answered knows. gone
// lists the hosts that an operator forgot.
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
