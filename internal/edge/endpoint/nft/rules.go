package nft

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"howdah/internal/edge/endpoint"
)

// generation returns a number that grows with every change of the rules of nf_tables, whoever makes
// it. It is never 0.
func (s *socket) generation(ctx context.Context) (uint32, error) {
	var number uint32
	err := s.call(ctx, func(m message) {
		if v := m.attributes()[unix.NFTA_GEN_ID]; len(v) == 4 {
			number = binary.BigEndian.Uint32(v)
		}
	}, encode(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_GETGEN, unix.NLM_F_ACK))
	if err != nil {
		return 0, fmt.Errorf("read the generation of the rules: %w", err)
	}
	return number, nil
}

// exists says whether there is such a table.
func (s *socket) exists(ctx context.Context, table string) (bool, error) {
	err := s.call(ctx, nil, encode(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_GETTABLE, unix.NLM_F_ACK,
		attribute(unix.NFTA_TABLE_NAME, zeroEnded(table))))
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for table %s: %w", table, err)
	}
	return true, nil
}

// move leads the endpoint from old to e in one transaction, provided that the rules still have the
// given generation. Then what we believe of the table is true, and the next generation is ours.
// Neither may have several targets: those need rules, which are written as text.
func (s *socket) move(ctx context.Context, table string, gen uint32, old, e endpoint.Endpoint) error {
	key := nested(unix.NFTA_SET_ELEM_KEY, attribute(unix.NFTA_DATA_VALUE, pairBytes(e.Listen)))
	element := key
	if kindOf(e) == single {
		element = append(element[:len(key):len(key)],
			nested(unix.NFTA_SET_ELEM_DATA, attribute(unix.NFTA_DATA_VALUE, pairBytes(e.Targets[0])))...)
	}
	err := s.call(ctx, nil,
		beginBatch(attribute(unix.NFNL_BATCH_GENID, big32(gen))),
		elementMessage(unix.NFT_MSG_DELSETELEM, 0, table, kindOf(old), key),
		elementMessage(unix.NFT_MSG_NEWSETELEM, unix.NLM_F_CREATE|unix.NLM_F_ACK, table, kindOf(e), element),
		endBatch())
	if err != nil {
		return fmt.Errorf("move %s: %w", e.Listen, err)
	}
	return nil
}

func elementMessage(kind, flags int, table string, set kind, element []byte) []byte {
	return encode(unix.NFNL_SUBSYS_NFTABLES, kind, flags,
		attribute(unix.NFTA_SET_ELEM_LIST_TABLE, zeroEnded(table)),
		attribute(unix.NFTA_SET_ELEM_LIST_SET, zeroEnded(string(set))),
		nested(unix.NFTA_SET_ELEM_LIST_ELEMENTS, nested(unix.NFTA_LIST_ELEM, element)))
}

func beginBatch(attributes ...[]byte) []byte {
	return encodeFor(unix.NFNL_MSG_BATCH_BEGIN, 0, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES, attributes...)
}

func endBatch() []byte {
	return encodeFor(unix.NFNL_MSG_BATCH_END, 0, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
}

// elements reads a set whose elements are one or several pairs of address and port.
func (s *socket) elements(ctx context.Context, table, set string) ([][]netip.AddrPort, error) {
	var all [][]netip.AddrPort
	err := s.call(ctx, func(m message) {
		for _, element := range attributesOf(m.attributes()[unix.NFTA_SET_ELEM_LIST_ELEMENTS]) {
			key := parseAttributes(parseAttributes(element)[unix.NFTA_SET_ELEM_KEY])
			all = append(all, parsePairs(key[unix.NFTA_DATA_VALUE]))
		}
	}, encode(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_GETSETELEM, unix.NLM_F_DUMP,
		attribute(unix.NFTA_SET_ELEM_LIST_TABLE, zeroEnded(table)),
		attribute(unix.NFTA_SET_ELEM_LIST_SET, zeroEnded(set))))
	if err != nil {
		return nil, fmt.Errorf("read set %s of table %s: %w", set, table, err)
	}
	return all, nil
}

// pairSize is the size of an address and a port in a set, padded to whole registers, in bytes.
const pairSize = 8

func pairBytes(a netip.AddrPort) []byte {
	addr := a.Addr().As4()
	return append(binary.BigEndian.AppendUint16(addr[:], a.Port()), 0, 0)
}

func parsePairs(b []byte) []netip.AddrPort {
	var pairs []netip.AddrPort
	for ; len(b) >= pairSize; b = b[pairSize:] {
		pair, _ := parsePair(b[:4], b[4:6])
		pairs = append(pairs, pair)
	}
	return pairs
}

// listens reads the addresses of all endpoints from a table that may not be there.
func (s *socket) listens(ctx context.Context, table string) ([]netip.AddrPort, error) {
	found, err := s.exists(ctx, table)
	if err != nil || !found {
		return nil, err
	}
	rows, err := s.elements(ctx, table, "listens")
	if err != nil {
		return nil, err
	}
	listens := make([]netip.AddrPort, 0, len(rows))
	for _, row := range rows {
		if len(row) == 1 {
			listens = append(listens, row[0])
		}
	}
	return listens, nil
}

// answered returns which sessions were answered with a reset in the last seconds. If somebody has
// removed the table, it returns none.
func (s *socket) answered(ctx context.Context, table string) (map[pair]bool, error) {
	rows, err := s.elements(ctx, table, "answered")
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := map[pair]bool{}
	for _, row := range rows {
		if len(row) == 2 {
			all[pair{client: row[0], listen: row[1]}] = true
		}
	}
	return all, nil
}
