// Package endpoint says what the stable address of a database is and what it
// takes to make one real. A client connects to the address and reaches whatever
// member of the database it leads to at that time; after a failover it leads
// elsewhere and the sessions that hang on the old member are reset, also when
// that member's host answers nothing at all.
//
// The packages below this one implement Forwarder: nft in the kernel, haproxy
// with one proxy process an endpoint; driver picks one, conformance tests both.
//
// Invariants every Forwarder keeps:
//   - it touches only what carries the name of its home;
//   - what it made works on when its process dies, and a later Forwarder of the
//     same home takes it over without harm to open sessions;
//   - an endpoint without targets refuses, it never leaves a client hanging; and so it
//     does to clients that may not connect.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"regexp"
	"slices"

	"howdah/internal/model/network/cidr"
)

var (
	// ErrInvalid marks a configuration or an endpoint that can never work.
	ErrInvalid = errors.New("invalid endpoint")
	// ErrNotSynced is returned by Point before the first Sync.
	ErrNotSynced = errors.New("endpoints are not synced yet")
	// ErrSilent is returned by Cut with the right number of sessions when some
	// clients gave no sign of life. Their sessions lead nowhere any more, and
	// whatever they send is answered with a reset, but they were not seen to
	// have received one.
	ErrSilent = errors.New("clients did not answer")
	// ErrUnavailable means that a driver cannot run on this machine or for this user.
	ErrUnavailable = errors.New("endpoint driver is not available")
)

// Endpoint is one address that clients use and where it leads.
type Endpoint struct {
	ID      string           // stable name, for logs and errors
	Listen  netip.AddrPort   // IPv4; what clients connect to; unique among endpoints
	Targets []netip.AddrPort // IPv4; none: connections are refused at once
	// Allow are the IPv4 networks whose clients may connect; nil: all. Others are
	// refused at once. Open sessions stay when it changes.
	Allow []netip.Prefix
	// Away: it is not known whether this machine may answer for the address, as that may be
	// on another one. New connections are refused, and where addresses move (nft) the
	// machine does not claim it on the network; open sessions stay. It has no targets.
	Away bool
}

// Forwarder makes endpoints real. There is one a home; several homes on one
// machine don't touch each other. Methods may be called from any goroutine and
// are idempotent.
type Forwarder interface {
	// Sync makes exactly this state real. Sessions of endpoints that stay live
	// on, also those to a target that is no longer listed; sessions of endpoints
	// that are gone are cut. It is cheap when nothing is to be done, so it may
	// run every second. It also finds and mends what someone else removed or
	// what an earlier process left behind: mended says what was mended since the
	// last Sync, by this call or by Run, a line each.
	Sync(ctx context.Context, all []Endpoint) (mended []string, err error)
	// Point is the quick path of a failover: it changes or adds one endpoint in
	// one step. New connections go to its targets when it returns; open sessions
	// stay where they are.
	Point(ctx context.Context, e Endpoint) error
	// Cut resets every session that runs through listen to target and says how
	// many there were. Call it after Point, so that clients which connect again
	// reach a living target. It returns as soon as all are reset, or, with
	// ErrSilent, when for about a second none more has answered.
	Cut(ctx context.Context, listen, target netip.AddrPort) (sessions int, err error)
	// Remove cuts all sessions and takes everything of this home away. It works
	// on what an earlier process left, without a Sync before.
	Remove(ctx context.Context) error
	// Run watches what Sync made and mends it at once when someone else damages
	// it, until ctx ends. Call it once.
	Run(ctx context.Context) error
}

// Info describes a Forwarder for people.
type Info struct {
	Driver               string // "nft" or "haproxy"
	ClientAddressVisible bool   // PostgreSQL sees the client's own address
	Cost                 string // what was measured, one sentence
}

// Config says how endpoints are made. Zero values are documented per field.
type Config struct {
	Home       string         // names what belongs to this home: 1 to 10 of a-z, 0-9, _
	RunDir     string         // haproxy: directory of this home only, mode 0700, at most 66 bytes; made if missing
	Pools      []netip.Prefix // addresses outside 127.0.0.0/8 that endpoints may have
	Driver     string         // "nft" or "haproxy" forces one; "": nft if possible
	Masquerade bool           // nft: targets on other machines see this machine's address, not the client's
	Log        *slog.Logger   // nil: slog.Default()
}

var homePattern = regexp.MustCompile(`^[a-z0-9_]{1,10}$`)

var loopback = netip.MustParsePrefix("127.0.0.0/8")

// Check returns an error that wraps ErrInvalid for a configuration no driver can use.
func (c Config) Check() error {
	if !homePattern.MatchString(c.Home) {
		return fmt.Errorf("%w: home %q is not 1 to 10 of a-z, 0-9 and _", ErrInvalid, c.Home)
	}
	return nil
}

// Logger returns the logger of c with the driver's name on every line.
func (c Config) Logger(driver string) *slog.Logger {
	log := c.Log
	if log == nil {
		log = slog.Default()
	}
	return log.With("component", "endpoint", "driver", driver, "home", c.Home)
}

// Normal returns a copy of all in the one order and form that drivers compare:
// sorted by Listen, targets sorted and each once. It refuses what no driver can
// make real with an error that wraps ErrInvalid.
func (c Config) Normal(all ...Endpoint) ([]Endpoint, error) {
	normal := make([]Endpoint, 0, len(all))
	for _, e := range all {
		if err := c.check(e); err != nil {
			return nil, err
		}
		e.Targets = slices.Clone(e.Targets)
		slices.SortFunc(e.Targets, netip.AddrPort.Compare)
		e.Targets = slices.Compact(e.Targets)
		e.Allow = cidr.Minimal(e.Allow)
		normal = append(normal, e)
	}
	slices.SortFunc(normal, func(a, b Endpoint) int { return a.Listen.Compare(b.Listen) })
	listens := make(map[netip.AddrPort]string, len(normal))
	for _, e := range normal {
		if other, found := listens[e.Listen]; found {
			return nil, fmt.Errorf("%w: %s and %s both listen on %s", ErrInvalid, other, e.ID, e.Listen)
		}
		listens[e.Listen] = e.ID
	}
	for _, e := range normal {
		for _, t := range e.Targets {
			if other, found := listens[t]; found {
				return nil, fmt.Errorf("%w: %s leads to the endpoint %s", ErrInvalid, e.ID, other)
			}
		}
	}
	return normal, nil
}

func (c Config) check(e Endpoint) error {
	if !usable(e.Listen) {
		return fmt.Errorf("%w: %s listens on %s", ErrInvalid, e.ID, e.Listen)
	}
	if !c.Serves(e.Listen.Addr()) {
		return fmt.Errorf("%w: %s listens on %s, which is in no pool (%s)", ErrInvalid, e.ID, e.Listen, cidr.Texts(c.Pools))
	}
	for _, p := range e.Allow {
		if !p.IsValid() || !p.Addr().Is4() {
			return fmt.Errorf("%w: %s lets %s in, which is no IPv4 network", ErrInvalid, e.ID, p)
		}
	}
	if e.Away && len(e.Targets) > 0 {
		return fmt.Errorf("%w: %s is away and leads to %v", ErrInvalid, e.ID, e.Targets)
	}
	for _, t := range e.Targets {
		if !usable(t) {
			return fmt.Errorf("%w: %s leads from %s to %s", ErrInvalid, e.ID, e.Listen, t)
		}
	}
	return nil
}

// Serves reports whether endpoints may have this address.
func (c Config) Serves(a netip.Addr) bool {
	return loopback.Contains(a) || slices.ContainsFunc(c.Pools, func(p netip.Prefix) bool { return p.Contains(a) })
}

func usable(a netip.AddrPort) bool {
	return a.Addr().Is4() && !a.Addr().IsUnspecified() && !a.Addr().IsMulticast() && a.Port() != 0
}

// Local says whether a is an address every machine has anyway (127.0.0.0/8).
func Local(a netip.Addr) bool { return loopback.Contains(a) }

// Same says whether a and b, both in normal form, lead the same clients to the same
// places. Names don't count.
func Same(a, b []Endpoint) bool {
	return slices.EqualFunc(a, b, func(x, y Endpoint) bool {
		return x.Listen == y.Listen && x.Away == y.Away && slices.Equal(x.Targets, y.Targets) && cidr.Same(x.Allow, y.Allow)
	})
}

// With returns a copy of all, which is in normal form, with e in place of the
// endpoint that has its Listen, or added; and that endpoint if there was one.
func With(all []Endpoint, e Endpoint) (with []Endpoint, old *Endpoint) {
	with = slices.Clone(all)
	i, found := slices.BinarySearchFunc(with, e.Listen, func(x Endpoint, l netip.AddrPort) int { return x.Listen.Compare(l) })
	if !found {
		return slices.Insert(with, i, e), nil
	}
	before := with[i]
	with[i] = e
	return with, &before
}
