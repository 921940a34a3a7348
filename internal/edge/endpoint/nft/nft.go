// Package nft makes endpoints real in the kernel, by a table of nf_tables that translates the
// endpoint's address to a target's. It costs next to nothing, and the target sees the client's own
// address (unless Masquerade is set).
//
// How it cuts: conntrack forgets the session, so a rule answers whatever the client sends next with
// a reset. A packet that fits nothing makes an idle client send. No other host takes part. So it
// works when the old primary is frozen or unreachable, and also when there is no new one yet.
//
// It needs CAP_NET_ADMIN and CAP_NET_RAW, the nft program, and nf_tables with nat. With
// net.netfilter.nf_conntrack_tcp_loose = 0 (not the default) Cut works, but cannot see that, and
// returns ErrSilent.
//
// Limits: an endpoint at 127.x.y.z serves only clients of this machine, and leads only to targets
// on it. For clients or targets elsewhere the address is one of the pool, and net.ipv4.ip_forward
// is up to the administrator. A client that is just connecting to a dead target has no session yet.
// Its kernel tries again after a second, and is then led to the new target.
//
// Who may connect is checked when a connection starts, by a set of endpoints and networks.
// Endpoints that everyone may use are not in it.
//
// Invariants: the table of a home is replaced or changed in one transaction. An address is only
// removed if it carries this home's label. Rules of anyone else are never touched.
package nft

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"howdah/internal/edge/endpoint"
	"howdah/internal/model/network/cidr"
)

// Name is what Config.Driver calls this implementation.
const Name = "nft"

// cost is what BenchmarkPaths of package driver measured.
const cost = "in the kernel: within 5 % of the connections and round trips a second of a direct connection"

// Forwarder implements endpoint.Forwarder. Make it with New.
type Forwarder struct {
	cfg   endpoint.Config
	rules dialect
	label string
	nft   program
	log   *slog.Logger

	table    *socket // for rules and elements
	sessions *socket // for conntrack, so that Cut does not wait for a Sync

	mu     sync.Mutex // guards what follows and who may change the table
	synced bool
	have   []endpoint.Endpoint // what the table says unless someone else touched it
	seal   string              // the listing of the table with have, "" when not known
	gen    uint32              // generation of the kernel's rules while have was true, 0 when not known
	mended []string            // since the last Sync
	guard  *guard
}

var _ endpoint.Forwarder = (*Forwarder)(nil)

// New returns a Forwarder. The error wraps endpoint.ErrUnavailable if the kernel or the user's
// rights do not allow what f will need. New changes nothing.
func New(ctx context.Context, cfg endpoint.Config) (*Forwarder, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	nft, err := find()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", endpoint.ErrUnavailable, err)
	}
	f := &Forwarder{
		cfg:   cfg,
		rules: dialect{table: tableName(cfg.Home), masquerade: cfg.Masquerade},
		label: labelOf(cfg.Home),
		nft:   nft,
		log:   cfg.Logger(Name),
	}
	if f.table, err = dial(); err != nil {
		return nil, fmt.Errorf("%w: %w", endpoint.ErrUnavailable, err)
	}
	if f.sessions, err = dial(); err != nil {
		return nil, fmt.Errorf("%w: %w", endpoint.ErrUnavailable, err)
	}
	if err := f.probe(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", endpoint.ErrUnavailable, err)
	}
	return f, nil
}

// Info describes f.
func (f *Forwarder) Info() endpoint.Info {
	return endpoint.Info{Driver: Name, ClientAddressVisible: !f.cfg.Masquerade, Cost: cost}
}

// probe has the kernel check a table with every kind of endpoint, and tries the other privileges
// that Cut needs.
func (f *Forwarder) probe(ctx context.Context) error {
	at := func(last byte) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, last}), 1)
	}
	all := []endpoint.Endpoint{
		{Listen: at(1)},
		{Listen: at(2), Targets: []netip.AddrPort{at(9)}},
		{Listen: at(3), Targets: []netip.AddrPort{at(8), at(9)}, Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
	}
	trial := f.rules
	trial.table = "howdah_probe"
	if err := f.nft.check(ctx, trial.whole(all)); err != nil {
		return fmt.Errorf("try nf_tables: %w", err)
	}
	if _, err := f.sessions.list(ctx, at(1), func(flow) bool { return false }); err != nil {
		return fmt.Errorf("try conntrack: %w", err)
	}
	return nudge(nil)
}

// Close gives back what f needs of the kernel. What f made stays.
func (f *Forwarder) Close() {
	f.guard.release()
	f.table.close()
	f.sessions.close()
}

// Sync implements endpoint.Forwarder.
func (f *Forwarder) Sync(ctx context.Context, all []endpoint.Endpoint) ([]string, error) {
	want, err := f.cfg.Normal(all...)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	err = f.retire(ctx, want)
	if err == nil {
		err = f.converge(ctx, want)
	}
	mended := f.mended
	f.mended = nil
	return mended, err
}

// retire cuts the endpoints that exist and are not wanted any more. Meanwhile
// they refuse, so that nobody connects again.
func (f *Forwarder) retire(ctx context.Context, want []endpoint.Endpoint) error {
	listens, err := f.existing(ctx)
	if err != nil {
		return err
	}
	stays := map[netip.AddrPort]bool{}
	for _, e := range want {
		stays[e.Listen] = true
	}
	gone := map[netip.AddrPort]bool{}
	closing := want
	for _, l := range listens {
		if !stays[l] {
			gone[l] = true
			closing, _ = endpoint.With(closing, endpoint.Endpoint{ID: "retired", Listen: l})
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if err := f.converge(ctx, closing); err != nil {
		return err
	}
	_, err = f.cut(ctx, netip.AddrPort{}, func(x flow) bool { return gone[x.listen] }, brief)
	if err != nil && !errors.Is(err, endpoint.ErrSilent) {
		return fmt.Errorf("cut the sessions of what is gone: %w", err)
	}
	return nil
}

// existing returns the addresses in use, also those that an earlier process left.
func (f *Forwarder) existing(ctx context.Context) ([]netip.AddrPort, error) {
	if !f.synced {
		return f.table.listens(ctx, f.rules.table)
	}
	listens := make([]netip.AddrPort, len(f.have))
	for i, e := range f.have {
		listens[i] = e.Listen
	}
	return listens, nil
}

// converge makes want real. The address of an endpoint is there before its rules, and is removed
// after them. The caller holds mu.
func (f *Forwarder) converge(ctx context.Context, want []endpoint.Endpoint) error {
	added, err := addAddresses(f.label, want)
	if err != nil {
		return err
	}
	known := addressesOf(f.have)
	for _, a := range added {
		if slices.Contains(known, a) {
			f.note("address %s was missing on %s", a, device)
		}
	}
	if f.guard == nil {
		f.guard = f.hold(ctx)
	}
	if err := f.write(ctx, want); err != nil {
		return err
	}
	return dropAddresses(f.label, want)
}

func (f *Forwarder) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	f.log.Warn("mended an endpoint", "what", text)
	f.mended = append(f.mended, text)
}

// write replaces the table unless it is known to be right. The generation of the rules says, for
// next to nothing, that nobody touched any table. The seal says, for the price of a listing, that
// nobody touched this one.
func (f *Forwarder) write(ctx context.Context, want []endpoint.Endpoint) error {
	gen, err := f.table.generation(ctx)
	if err != nil {
		return err
	}
	same := f.synced && endpoint.Same(want, f.have)
	if same && gen == f.gen {
		return f.sealAfterMove(ctx)
	}
	before, err := f.listing(ctx)
	if err != nil {
		return err
	}
	if same && f.seal != "" && before == f.seal {
		f.gen = gen
		return nil
	}
	if err := f.nft.apply(ctx, f.rules.whole(want)); err != nil {
		return fmt.Errorf("write table %s: %w", f.rules.table, err)
	}
	f.written(ctx, want, gen, before)
	return nil
}

// written records what write did. It seals the table only if nobody changed anything since the
// generation gen. A listing fails if somebody is changing something now.
func (f *Forwarder) written(ctx context.Context, want []endpoint.Endpoint, gen uint32, before string) {
	same := f.synced && endpoint.Same(want, f.have)
	after, err := f.listing(ctx)
	now, genErr := f.table.generation(ctx)
	f.judge(before, after, same)
	f.have, f.synced, f.seal, f.gen = want, true, "", 0
	if err == nil && genErr == nil && now == gen+1 {
		f.seal, f.gen = after, now
	}
}

// sealAfterMove does what a quick Point left out.
func (f *Forwarder) sealAfterMove(ctx context.Context) error {
	if f.seal != "" {
		return nil
	}
	text, err := f.listing(ctx)
	if err != nil {
		return err
	}
	now, err := f.table.generation(ctx)
	if err == nil && now == f.gen {
		f.seal = text
	}
	return err
}

// listing returns "" if there is no table.
func (f *Forwarder) listing(ctx context.Context) (string, error) {
	found, err := f.table.exists(ctx, f.rules.table)
	if err != nil || !found {
		return "", err
	}
	return f.nft.listing(ctx, f.rules.table)
}

// judge notes what the listing before a replacement says about others. The listing should be as we
// left it. If that is not known, it should be as the replacement.
func (f *Forwarder) judge(before, after string, same bool) {
	expected := f.seal
	if expected == "" && (same || !f.synced) {
		expected = after
	}
	switch {
	case before == "" && f.synced:
		f.note("table %s was missing", f.rules.table)
	case before == "" || expected == "" || before == expected:
	case f.synced:
		f.note("table %s differed in %d lines", f.rules.table, differences(before, expected))
	default:
		f.note("table %s, left by an earlier process, differed in %d lines", f.rules.table, differences(before, expected))
	}
}

// differences counts the lines that only one of a and b has.
func differences(a, b string) int {
	count := map[string]int{}
	for _, l := range strings.Split(a, "\n") {
		count[l]++
	}
	for _, l := range strings.Split(b, "\n") {
		count[l]--
	}
	n := 0
	for _, c := range count {
		n += max(c, -c)
	}
	return n
}

// Point implements endpoint.Forwarder.
func (f *Forwarder) Point(ctx context.Context, e endpoint.Endpoint) error {
	normal, err := f.cfg.Normal(e)
	if err != nil {
		return err
	}
	e = normal[0]
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.synced {
		return fmt.Errorf("point %s: %w", e.ID, endpoint.ErrNotSynced)
	}
	want, old := endpoint.With(f.have, e)
	if err := f.step(ctx, want, old, e); err != nil {
		return fmt.Errorf("point %s: %w", e.ID, err)
	}
	return nil
}

// step moves elements if that is enough, which takes less than a millisecond. If somebody has
// changed any rules since the last look, it checks ours first. If more is needed, or if it fails,
// the whole table is written.
func (f *Forwarder) step(ctx context.Context, want []endpoint.Endpoint, old *endpoint.Endpoint, e endpoint.Endpoint) error {
	if old == nil || kindOf(*old) == several || kindOf(e) == several || !cidr.Same(old.Allow, e.Allow) || old.Away != e.Away || endpoint.Same(want, f.have) {
		return f.converge(ctx, want)
	}
	if f.move(ctx, want, *old, e) {
		return nil
	}
	if err := f.write(ctx, f.have); err != nil {
		return err
	}
	if f.move(ctx, want, *old, e) {
		return nil
	}
	return f.converge(ctx, want)
}

// move reports whether the elements were moved.
func (f *Forwarder) move(ctx context.Context, want []endpoint.Endpoint, old, e endpoint.Endpoint) bool {
	if f.gen == 0 || f.table.move(ctx, f.rules.table, f.gen, old, e) != nil {
		return false
	}
	f.have, f.seal, f.gen = want, "", f.gen+1
	return true
}

// Remove implements endpoint.Forwarder.
func (f *Forwarder) Remove(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.retire(ctx, nil); err != nil {
		return err
	}
	if err := f.nft.apply(ctx, f.rules.clear()); err != nil {
		return fmt.Errorf("remove table %s: %w", f.rules.table, err)
	}
	f.guard.release()
	f.guard, f.have, f.synced, f.seal, f.gen, f.mended = nil, nil, false, "", 0, nil
	return dropAddresses(f.label, nil)
}
