// Package announce tells the neighbours on a network that an address now lives on this machine, by
// gratuitous ARP. Otherwise they would go on sending to the machine that had it before.
package announce

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// frameSize is the size of an Ethernet header and an ARP packet for IPv4, in bytes.
const frameSize = 14 + 28

// Address sends gratuitous ARP for an address on every interface that is up and
// whose network the address belongs to. Addresses of other networks are reached
// through a router and need no announcement. It needs CAP_NET_RAW.
func Address(address netip.Addr) error {
	interfaces, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("list interfaces: %w", err)
	}
	var errs []error
	for _, i := range interfaces {
		if fits(i, address) {
			errs = append(errs, send(i, address))
		}
	}
	return errors.Join(errs...)
}

func fits(i net.Interface, address netip.Addr) bool {
	if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagBroadcast == 0 || len(i.HardwareAddr) != 6 {
		return false
	}
	addresses, err := i.Addrs()
	if err != nil {
		return false
	}
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.String())
		if err == nil && prefix.Contains(address) && prefix.Bits() < 32 {
			return true
		}
	}
	return false
}

// send sends both forms. Some machines learn the new place from a request, others only from a reply
// (RFC 5227, section 3, and RFC 826).
func send(i net.Interface, address netip.Addr) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(swap(unix.ETH_P_ARP)))
	if err != nil {
		return fmt.Errorf("announce %s: %w", address, err)
	}
	defer unix.Close(fd)
	to := &unix.SockaddrLinklayer{Ifindex: i.Index, Protocol: swap(unix.ETH_P_ARP), Halen: 6}
	copy(to.Addr[:], broadcast)
	const request, reply = 1, 2
	for _, operation := range []uint16{request, reply} {
		if err := unix.Sendto(fd, frame(i.HardwareAddr, address, operation), 0, to); err != nil {
			return fmt.Errorf("announce %s on %s: %w", address, i.Name, err)
		}
	}
	return nil
}

var broadcast = []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// frame returns an ARP packet whose sender and target are the announced address.
func frame(mac net.HardwareAddr, address netip.Addr, operation uint16) []byte {
	ip := address.As4()
	b := make([]byte, 0, frameSize)
	b = append(b, broadcast...)
	b = append(b, mac...)
	b = binary.BigEndian.AppendUint16(b, unix.ETH_P_ARP)
	b = binary.BigEndian.AppendUint16(b, 1) // Ethernet
	b = binary.BigEndian.AppendUint16(b, unix.ETH_P_IP)
	b = append(b, 6, 4) // lengths of a hardware and a protocol address
	b = binary.BigEndian.AppendUint16(b, operation)
	b = append(append(b, mac...), ip[:]...)
	return append(append(b, broadcast...), ip[:]...)
}

func swap(v uint16) uint16 { return v<<8 | v>>8 }
