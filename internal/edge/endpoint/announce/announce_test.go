package announce

import (
	"encoding/hex"
	"net"
	"net/netip"
	"testing"
)

func TestFrame(t *testing.T) {
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 7}
	got := hex.EncodeToString(frame(mac, netip.MustParseAddr("10.99.0.129"), 1))
	const want = "ffffffffffff" + "020000000007" + "0806" +
		"0001" + "0800" + "06" + "04" + "0001" +
		"020000000007" + "0a630081" + "ffffffffffff" + "0a630081"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestOnlyNeighboursAreTold(t *testing.T) {
	lo := net.Interface{Flags: net.FlagUp | net.FlagLoopback}
	if fits(lo, netip.MustParseAddr("127.0.0.1")) {
		t.Error("the loopback interface has no neighbours")
	}
	down := net.Interface{Flags: net.FlagBroadcast, HardwareAddr: make(net.HardwareAddr, 6)}
	if fits(down, netip.MustParseAddr("10.0.0.1")) {
		t.Error("an interface that is down was chosen")
	}
}
