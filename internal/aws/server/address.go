package server

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"slices"

	"howdah/api"
	"howdah/internal/aws/wire"
	"howdah/internal/state"
)

// claim is a free endpoint address, with the write that takes it. Two who pick
// the same conflict, and the loser tries again. Where the search begins depends
// on the resource: an address that was just given up goes to a newcomer, whom old
// clients would take for the one that they know, only when there is no other.
func (s *Server) claim(resourceID string, public bool, but ...string) (string, state.Op, error) {
	pool := s.poolOf(public)
	taken := func(address string) bool {
		_, _, inUse := s.Cache.Raw(state.Address(address))
		return inUse || slices.Contains(but, address)
	}
	if a, found := free(pool, resourceID, taken); found {
		return a, state.Swap(state.Address(a), 0, resourceID), nil
	}
	return "", state.Op{}, wire.NewError(api.ErrServiceUnavailable, "All endpoint addresses of %s are in use.", pool)
}

// poolOf is where an endpoint gets its address from. Without a public pool all have
// theirs from the private one.
func (s *Server) poolOf(public bool) netip.Prefix {
	if public && s.public.IsValid() {
		return s.public
	}
	return s.pool
}

// free is an address of a pool that is not taken: see claim.
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
