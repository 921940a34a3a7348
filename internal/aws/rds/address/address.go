// Package address gives endpoints their addresses, which are the home's scarce good: those that
// clients of one network reach, and those that everybody does.
package address

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"

	"howdah/api"
	"howdah/internal/aws/wire"
	"howdah/internal/state"
)

// Pools are where addresses are from.
type Pools struct {
	Cache   *state.Cache
	Private netip.Prefix
	Public  netip.Prefix // not valid: there is none
}

var (
	errPool    = errors.New("it must be an IPv4 network of at least four addresses")
	errOverlap = errors.New("it has addresses of the pool of all other endpoints")
)

// Parse reads pools as CIDRs; public may be "": there is none.
func Parse(cache *state.Cache, private, public string) (Pools, error) {
	pools := Pools{Cache: cache}
	var err error
	if pools.Private, err = parse(private); err != nil {
		return pools, fmt.Errorf("endpoint pool: %w", err)
	}
	if public == "" {
		return pools, nil
	}
	if pools.Public, err = parse(public); err != nil {
		return pools, fmt.Errorf("public pool: %w", err)
	}
	if pools.Public.Overlaps(pools.Private) {
		return pools, fmt.Errorf("public pool %s: %w (%s)", pools.Public, errOverlap, pools.Private)
	}
	return pools, nil
}

func parse(text string) (netip.Prefix, error) {
	pool, err := netip.ParsePrefix(text)
	if err != nil {
		return pool, err
	}
	if !pool.Addr().Is4() || pool.Bits() > 30 {
		return pool, fmt.Errorf("%s: %w", text, errPool)
	}
	return pool.Masked(), nil
}

// Claim is a free endpoint address, with the write that takes it. Two who pick
// the same conflict, and the loser tries again. Where the search begins depends
// on the resource: an address that was just given up goes to a newcomer, whom old
// clients would take for the one that they know, only when there is no other.
func (p *Pools) Claim(resourceID string, public bool, but ...string) (string, state.Op, error) {
	pool := p.of(public)
	taken := func(address string) bool {
		_, _, inUse := p.Cache.Raw(state.Address(address))
		return inUse || slices.Contains(but, address)
	}
	if a, found := free(pool, resourceID, taken); found {
		return a, state.Swap(state.Address(a), 0, resourceID), nil
	}
	return "", state.Op{}, wire.NewError(api.ErrServiceUnavailable, "All endpoint addresses of %s are in use.", pool)
}

// of is where an endpoint gets its address from. Without a public pool all have
// theirs from the private one.
func (p *Pools) of(public bool) netip.Prefix {
	if public && p.Public.IsValid() {
		return p.Public
	}
	return p.Private
}

// free is an address of a pool that is not taken: see Claim.
func free(pool netip.Prefix, resourceID string, taken func(string) bool) (string, bool) {
	// Neither the network's own address nor the last one.
	size := uint32(1)<<(32-pool.Bits()) - 2
	base := binary.BigEndian.Uint32(pool.Addr().AsSlice()) + 1
	hash := fnv.New32a()
	hash.Write([]byte(resourceID))
	start := hash.Sum32() % size
	for n := range size {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], base+(start+n)%size)
		if address := netip.AddrFrom4(b).String(); !taken(address) {
			return address, true
		}
	}
	return "", false
}

// Seat is where an endpoint is: its address, and those that it is leaving.
type Seat struct {
	Address string
	Former  []string
}

// Reseat gives an endpoint an address of the pool that it shall be in, unless it has
// one. It goes back to a former one where that will do. It takes none of the addresses in but.
func (p *Pools) Reseat(at Seat, resourceID string, was, want bool, but ...string) (Seat, []state.Op, error) {
	if p.mayStay(at.Address, was, want) {
		return at, nil, nil
	}
	pool := p.of(want)
	for n, a := range at.Former {
		if Contains(pool, a) {
			former := slices.Concat(at.Former[:n], at.Former[n+1:])
			return Seat{a, append(former, at.Address)}, nil, nil
		}
	}
	address, claim, err := p.Claim(resourceID, want, but...)
	if err != nil {
		return at, nil, err
	}
	return Seat{address, append(slices.Clone(at.Former), at.Address)}, []state.Op{claim}, nil
}

// mayStay: the address will do. That of a private endpoint may be of a pool that the
// control plane had once; that of one that was public may not.
func (p *Pools) mayStay(address string, was, want bool) bool {
	switch {
	case want && p.Public.IsValid():
		return Contains(p.Public, address)
	case want:
		return true
	}
	return Contains(p.Private, address) || !was && !Contains(p.Public, address)
}

// Contains reports whether a text is an address of a pool.
func Contains(pool netip.Prefix, address string) bool {
	a, err := netip.ParseAddr(address)
	return err == nil && pool.IsValid() && pool.Contains(a)
}
