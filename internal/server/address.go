package server

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"net/netip"

	"howdah/api"
	"howdah/internal/spec"
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
// the same conflict, and the loser tries again.
func (s *Server) claim(resourceID string, but ...string) (string, state.Op, error) {
	taken := map[string]bool{}
	for _, key := range s.Cache.Keys(state.AddressRoot) {
		taken[state.Tail(key, state.AddressRoot)] = true
	}
	for _, a := range but {
		taken[a] = true
	}
	size := uint32(1) << (32 - s.pool.Bits())
	base := binary.BigEndian.Uint32(s.pool.Addr().AsSlice())
	// Neither the network's own address nor the last one.
	for n := uint32(1); n < size-1; n++ {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], base+n)
		address := netip.AddrFrom4(b).String()
		if !taken[address] {
			return address, state.Swap(state.Address(address), 0, resourceID), nil
		}
	}
	return "", state.Op{}, wire.NewError(api.ErrServiceUnavailable, "All endpoint addresses of %s are in use.", s.pool)
}

// nameFree answers the error for a name that is taken.
func (s *Server) nameFree(scope spec.Scope, name string) error {
	if _, _, taken := s.Cache.Raw(state.Instance(scope.Account, scope.Region, name)); taken {
		return wire.NewError("DBInstanceAlreadyExists", "DB instance already exists")
	}
	return nil
}
