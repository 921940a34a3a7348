// Package endpoint says what the stable address of a database is, and makes it real. A client
// connects to the address and reaches the member to which it leads at that time. After a failover
// the address leads elsewhere. Then the sessions to the old member are reset, even if that member's
// host does not answer at all.
//
// The packages below this one implement Forwarder: nft in the kernel, haproxy with one proxy
// process for each endpoint. Package driver picks one, package conformance tests both.
//
// Every Forwarder keeps three invariants. It touches only what carries the name of its home. What
// it made works on when its process dies, and a later Forwarder of the same home takes it over
// without harm to open sessions. An endpoint without targets refuses clients, and so does every
// endpoint with clients that may not connect; it never leaves them hanging.
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
	// Cut returns ErrSilent with the right number of sessions if some clients did not answer. Their
	// sessions lead nowhere any more, and whatever these clients send is answered with a reset. But
	// nobody saw that they received one.
	ErrSilent = errors.New("clients did not answer")
	// ErrUnavailable means that a driver cannot run on this machine or for this user.
	ErrUnavailable = errors.New("endpoint driver is not available")
)

// Endpoint is one address that clients use and where it leads.
type Endpoint struct {
	ID      string           // stable name, for logs and errors
	Listen  netip.AddrPort   // IPv4; what clients connect to; unique among endpoints
	Targets []netip.AddrPort // IPv4; none: connections are refused at once
	// Allow lists the IPv4 networks whose clients may connect; nil admits all. Other clients are
	// refused at once. Open sessions stay when the list changes.
	Allow []netip.Prefix
	// Away says that it is not known whether this machine may answer for the address, as another
	// machine may have it. New connections are refused and open sessions stay. Where addresses move
	// (nft), the machine does not claim the address on the network. Such an endpoint has no
	// targets.
	Away bool
}

// Forwarder makes endpoints real. A home has one; the homes on one machine do not touch each other.
// Methods may be called from any goroutine and are idempotent.
type Forwarder interface {
	// Sync makes exactly this state real. Sessions of endpoints that stay are kept, even those to a
	// target that is no longer listed. Sessions of endpoints that are gone are cut. Sync is cheap
	// when there is nothing to do, so it may run every second. It also repairs what someone else
	// removed, and takes over what an earlier process left. mended has a line for each thing that
	// this call or Run repaired since the last Sync.
	Sync(ctx context.Context, all []Endpoint) (mended []string, err error)
	// Point is the quick path of a failover: it changes or adds one endpoint in one step. When it
	// returns, new connections go to the endpoint's targets. Open sessions stay where they are.
	Point(ctx context.Context, e Endpoint) error
	// Cut resets every session through listen to target, and returns how many there were. Call it
	// after Point, so that clients which connect again reach a living target. It returns when all
	// sessions are reset. It returns ErrSilent if about a second passed without a further answer.
	Cut(ctx context.Context, listen, target netip.AddrPort) (sessions int, err error)
	// Remove cuts all sessions and removes everything of this home. It needs no Sync before, and
	// also removes what an earlier process left.
	Remove(ctx context.Context) error
	// Run watches what Sync made until ctx ends, and repairs damage at once. Call it once.
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

// Same reports whether a and b lead the same clients to the same places. Both must be in normal
// form. Names do not count.
func Same(a, b []Endpoint) bool {
	return slices.EqualFunc(a, b, func(x, y Endpoint) bool {
		return x.Listen == y.Listen && x.Away == y.Away && slices.Equal(x.Targets, y.Targets) && cidr.Same(x.Allow, y.Allow)
	})
}

// With returns a copy of all in which e replaces the endpoint with the same Listen, or is added. It
// also returns the replaced endpoint, or nil. all must be in normal form.
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
