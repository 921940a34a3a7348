package nft

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"howdah/internal/edge/endpoint/conformance"
	"howdah/internal/testkit"
)

func TestMessages(t *testing.T) {
	first := encode(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_GETGEN, unix.NLM_F_ACK, attribute(3, []byte("abc")), nested(4, attribute(5, big16(6))))
	second := beginBatch()
	all := parseMessages(bytes.Join([][]byte{first, second}, nil))
	if len(all) != 2 || all[0].kind != unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETGEN || all[1].kind != unix.NFNL_MSG_BATCH_BEGIN {
		t.Fatalf("parsed %v", all)
	}
	got := all[0].attributes()
	if string(got[3]) != "abc" || !bytes.Equal(parseAttributes(got[4])[5], big16(6)) {
		t.Errorf("attributes %v", got)
	}
	if name := tableOf(message{kind: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_DELTABLE, body: append([]byte{2, 0, 0, 0}, attribute(unix.NFTA_TABLE_NAME, zeroEnded("x"))...)}); name != "x" {
		t.Errorf("notice of table %q, want x", name)
	}
}

// FuzzParse checks that nothing which the kernel could send makes the parsers fail.
func FuzzParse(f *testing.F) {
	f.Add(encode(unix.NFNL_SUBSYS_CTNETLINK, ctGet, 0, filterFor(netip.MustParseAddrPort("127.0.0.1:1"))...))
	f.Add(elementMessage(unix.NFT_MSG_NEWSETELEM, 0, "t", single, nested(unix.NFTA_SET_ELEM_KEY, attribute(1, make([]byte, 20)))))
	f.Add([]byte{20, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, m := range parseMessages(b) {
			parseFlow(m)
			tableOf(m)
			_ = m.failure()
			for _, element := range attributesOf(m.attributes()[unix.NFTA_SET_ELEM_LIST_ELEMENTS]) {
				parsePairs(parseAttributes(element)[unix.NFTA_SET_ELEM_KEY])
			}
		}
	})
}

func TestPairs(t *testing.T) {
	a, b := netip.MustParseAddrPort("127.1.8.1:5432"), netip.MustParseAddrPort("10.0.0.1:65535")
	raw := append(pairBytes(a), pairBytes(b)...)
	if want := "7f01080115380000" + "0a000001ffff0000"; hex.EncodeToString(raw) != want {
		t.Errorf("encoded %x, want %s", raw, want)
	}
	got := parsePairs(raw)
	if len(got) != 2 || got[0] != a || got[1] != b {
		t.Errorf("parsed %v", got)
	}
}

// TestSynAck compares with a packet whose checksum was computed by hand: the sum over addresses,
// protocol, length and segment with its checksum is all ones.
func TestSynAck(t *testing.T) {
	p := synAck(netip.MustParseAddrPort("10.1.2.3:5432"), netip.MustParseAddrPort("10.4.5.6:40000"), 0x01020304, 0x0a0b0c0d)
	want := "45000028" + "00000000" + "40060000" + "0a010203" + "0a040506" +
		"15389c40" + "01020304" + "0a0b0c0d" + "50120000" + "c92e0000"
	if diff := cmp.Diff(want, hex.EncodeToString(p)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	sum := uint32(unix.IPPROTO_TCP + 20)
	for i := 12; i < len(p); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(p[i:]))
	}
	if sum%0xffff != 0 {
		t.Errorf("checksum leaves %#x", sum%0xffff)
	}
}

// TestCallGivenUp checks that the answer to a call that ran out of time is not taken for that of
// the next.
func TestCallGivenUp(t *testing.T) {
	testkit.NeedRoot(t)
	s, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := s.generation(ctx); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("with no time left: %v", err)
	}
	if err := s.file.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	lost := encode(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_GETTABLE, unix.NLM_F_ACK, attribute(unix.NFTA_TABLE_NAME, zeroEnded("nothere")))
	if _, err := s.file.Write(lost); err != nil { // as if its answer were still to be read
		t.Fatal(err)
	}
	for range 3 {
		if n, err := s.generation(t.Context()); err != nil || n == 0 {
			t.Fatalf("generation %d: %v", n, err)
		}
	}
}

// TestConntrack finds a session of this machine by the kernel's filter.
func TestConntrack(t *testing.T) {
	f := edge(t, config("edge", ""))
	listen, other := conformance.SomeListen(), conformance.SomeListen()
	server := conformance.NewServer(t)
	mustSync(t, f, lead(listen, server), lead(other, server))
	s := conformance.Join(t, listen, server)
	conformance.Join(t, other, server)
	for name, from := range map[string]netip.AddrPort{"filtered": listen, "all": {}} {
		flows, err := f.sessions.list(t.Context(), from, func(x flow) bool { return x.listen == listen })
		if err != nil || len(flows) != 1 {
			t.Fatalf("%s: %v, error %v", name, flows, err)
		}
		got := flows[0]
		if got.client.String() != s.LocalAddr().String() || got.server != server || !got.open() {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
