package server

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"hash/fnv"
	"net/netip"

	"howdah/api"
	"howdah/internal/state"
	"howdah/internal/wire"
)

// newResourceID makes an identifier that stays when a resource is renamed, in
// RDS's form: a prefix and 26 capital letters and digits.
func newResourceID(prefix string) string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("server: no randomness: " + err.Error())
	}
	return prefix + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:])
}

// claim is a free endpoint address, with the write that takes it. Two who pick
// the same conflict, and the loser tries again. Where the search begins depends
// on the resource: an address that was just given up goes to a newcomer, whom old
// clients would take for the one that they know, only when there is no other.
func (s *Server) claim(resourceID string, but ...string) (string, state.Op, error) {
	taken := map[string]bool{}
	for _, key := range s.Cache.Keys(state.AddressRoot) {
		taken[state.Tail(key, state.AddressRoot)] = true
	}
	for _, a := range but {
		taken[a] = true
	}
	// Neither the network's own address nor the last one.
	size := uint32(1)<<(32-s.pool.Bits()) - 2
	base := binary.BigEndian.Uint32(s.pool.Addr().AsSlice()) + 1
	hash := fnv.New32a()
	hash.Write([]byte(resourceID))
	start := hash.Sum32() % size
	for n := range size {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], base+(start+n)%size)
		address := netip.AddrFrom4(b).String()
		if !taken[address] {
			return address, state.Swap(state.Address(address), 0, resourceID), nil
		}
	}
	return "", state.Op{}, wire.NewError(api.ErrServiceUnavailable, "All endpoint addresses of %s are in use.", s.pool)
}
