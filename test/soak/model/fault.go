package model

import (
	"errors"
	"fmt"
	"strconv"

	"pgregory.net/rapid"
)

// There is one of each of these, and a step has it to itself in its round. Names of databases have
// no spaces.
const (
	theHosts = "the hosts"
	theParts = "the parts"
)

var (
	roles = []string{"primary", "standby"}
	// parts are the parts of Howdah, as a rig names them.
	parts = []string{"serve", "edge", "agent-a", "agent-b", "agent-c"}
)

// What hosts are on.
const (
	Loopback = "loopback" // all on one
	Apart    = "apart"    // each behind a link that can be cut
	Moving   = "moving"   // the same, with an edge on each host and addresses that move
	Disks    = "disks"    // all on one, each with a disk of its own that can be made to hang
)

var networks = []string{Loopback, Apart, Moving, Disks}

// Sides has the sides of a host's network that it can be cut off from.
var Sides = []string{
	"all", "control", "clients", "peers", "control+peers", "control+clients",
	"control-deaf", "control-mute", "peers-deaf", "peers-mute",
}

// These are phases of a failover at which a primary's host that stood still goes on: its loss is
// noticed, its key is taken away, another primary is elected, and the other one acknowledges
// writes.
const (
	Noticed = "noticed"
	Revoked = "revoked"
	Elected = "elected"
	Served  = "served"
)

// Phases in their order.
var Phases = []string{Noticed, Revoked, Elected, Served}

// longest is how many seconds a fault lasts at most: longer than the age at which a lease of
// Patroni counts as a hang (8 s), and longer than a lease's time to live (20 s).
const longest = 24

// faults break something, and mend it again in the same round. The fleet does not change.
var faults = map[string]verb{
	// Of the processes of one member.
	"kill-postgres":   ofMember(false),
	"kill-patroni":    ofMember(false),
	"freeze-postgres": ofMember(true),
	"freeze-patroni":  ofMember(true),
	// Of a host with all that it runs.
	"freeze-host": ofHost(),
	"lose-host":   ofHost(),
	// The primary's host stands still until the failover has come to a phase.
	"pause": {
		draw: func(t *rapid.T, f *Fleet) []string {
			return []string{one(t, f, replaceable), evenly(t, Phases, "phase")}
		},
		apply:   change(replaceable, func(_ *Database, s Step) error { return among(Phases, s.Word(1)) }),
		touches: only(theHosts),
	},
	"part": {
		draw: func(t *rapid.T, f *Fleet) []string {
			return append(memberOf(t, f), evenly(t, Sides, "side"), seconds(t))
		},
		apply: func(f *Fleet, s Step) error {
			if f.Network != Apart && f.Network != Moving {
				return errState
			}
			return errors.Join(isMember(f, s), among(Sides, s.Word(2)), isSeconds(s.Word(3)))
		},
		touches: only(theHosts),
	},
	"hang-disk": {
		draw: func(t *rapid.T, f *Fleet) []string { return append(memberOf(t, f), seconds(t)) },
		apply: func(f *Fleet, s Step) error {
			if f.Network != Disks {
				return errState
			}
			return errors.Join(isMember(f, s), isSeconds(s.Word(2)))
		},
		touches: only(theHosts),
	},
	"drain": {
		draw:    func(t *rapid.T, _ *Fleet) []string { return []string{evenly(t, zones, "zone")} },
		apply:   func(_ *Fleet, s Step) error { return among(zones, s.Word(0)) },
		touches: only(theHosts),
	},
	// The engine of backups, whatever it does.
	"kill-engine": {
		draw:    func(t *rapid.T, _ *Fleet) []string { return []string{seconds(t)} },
		apply:   func(_ *Fleet, s Step) error { return isSeconds(s.Word(0)) },
		touches: only("the engine"),
	},
	// Howdah's own processes. Databases go on.
	"kill-part":   ofPart(),
	"freeze-part": ofPart(),
	// etcd takes no writes, and is then mended.
	"fill-etcd": {
		draw:    func(t *rapid.T, _ *Fleet) []string { return []string{seconds(t)} },
		apply:   func(_ *Fleet, s Step) error { return isSeconds(s.Word(0)) },
		touches: only(theParts),
	},
	"upgrade": {draw: func(*rapid.T, *Fleet) []string { return nil }, apply: nothing, touches: only(theHosts, theParts)},
	// Clients: commits under way are cancelled, and their sessions ended.
	"cancel":    ofSessions(),
	"terminate": ofSessions(),
}

// setting is the first step: what the fleet is on.
var setting = map[string]verb{
	"network": {
		draw: func(t *rapid.T, _ *Fleet) []string { return []string{evenly(t, networks, "network")} },
		apply: func(f *Fleet, s Step) error {
			if f.Network != "" || f.Serials > 0 {
				return errState
			}
			f.Network = s.Word(0)
			return among(networks, s.Word(0))
		},
		touches: only(theHosts, theParts),
	},
}

func nothing(*Fleet, Step) error { return nil }

func only(touched ...string) func(*Fleet, Step) []string {
	return func(*Fleet, Step) []string { return append([]string(nil), touched...) }
}

// ofMember is a fault of a database's primary, or of one of its standbys.
func ofMember(lasts bool) verb {
	v := verb{
		draw: func(t *rapid.T, f *Fleet) []string {
			words := memberOf(t, f)
			if lasts {
				words = append(words, seconds(t))
			}
			return words
		},
		apply: func(f *Fleet, s Step) error {
			if lasts {
				if err := isSeconds(s.Word(2)); err != nil {
					return err
				}
			}
			return isMember(f, s)
		},
	}
	v.touches = func(_ *Fleet, s Step) []string { return []string{"a process of " + s.Word(1)} }
	return v
}

func memberOf(t *rapid.T, f *Fleet) []string {
	role := evenly(t, roles, "role")
	return []string{role, one(t, f, func(f *Fleet, d Database) bool { return has(d, role) })}
}

// has reports whether the database has such a member now.
func has(d Database, role string) bool { return !d.Stopped && (role == roles[0] || d.Members() > 1) }

// replaceable reports whether a standby takes over when the primary is lost.
func replaceable(f *Fleet, d Database) bool { return own(f, d) && d.Members() > 1 }

func isMember(f *Fleet, s Step) error {
	d, ok := f.Databases[s.Word(1)]
	switch {
	case !ok:
		return errNone
	case !has(d, s.Word(0)):
		return errState
	}
	return among(roles, s.Word(0))
}

func ofHost() verb {
	v := ofMember(true)
	v.touches = only(theHosts)
	return v
}

func ofPart() verb {
	return verb{
		draw: func(t *rapid.T, _ *Fleet) []string {
			return []string{evenly(t, parts, "part"), seconds(t)}
		},
		apply: func(_ *Fleet, s Step) error {
			if err := among(parts, s.Word(0)); err != nil {
				return err
			}
			return isSeconds(s.Word(1))
		},
		touches: func(_ *Fleet, s Step) []string {
			if s.Word(0) == parts[0] {
				return []string{theParts}
			}
			return []string{theParts, theHosts} // it may be on the host that another step breaks
		},
	}
}

func ofSessions() verb {
	return verb{
		draw:    func(t *rapid.T, f *Fleet) []string { return []string{one(t, f, own), seconds(t)} },
		apply:   change(own, func(_ *Database, s Step) error { return isSeconds(s.Word(1)) }),
		touches: func(_ *Fleet, s Step) []string { return []string{"sessions of " + s.Word(0)} },
	}
}

// seconds draws how long a fault lasts: mostly a few seconds.
func seconds(t *rapid.T) string {
	return strconv.Itoa(rapid.OneOf(rapid.IntRange(1, 6), rapid.IntRange(1, longest)).Draw(t, "seconds"))
}

func isSeconds(text string) error {
	var n int
	if err := number(&n, text); err != nil {
		return err
	}
	if n > longest {
		return fmt.Errorf("%d s are more than %d", n, longest)
	}
	return nil
}
