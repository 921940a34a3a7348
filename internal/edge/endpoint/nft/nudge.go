package nft

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"golang.org/x/sys/unix"
)

const packetSize = 40 // IPv4 and TCP headers without options

// nudge makes each client speak. It sends a SYN-ACK that seems to come from the server, with
// numbers that fit nothing. TCP answers any SYN inside a connection with an acknowledgement that
// carries its true numbers (RFC 5961, 4.2), and our rules turn that into a reset. It is not a plain
// SYN, because a firewall at the client takes a SYN in that direction for invalid.
func nudge(sessions []pair) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return fmt.Errorf("open a raw socket: %w", err)
	}
	defer unix.Close(fd)
	for _, s := range sessions {
		packet := synAck(s.listen, s.client, rand.Uint32(), rand.Uint32())
		// A client that cannot be reached does not answer either.
		_ = unix.Sendto(fd, packet, 0, &unix.SockaddrInet4{Addr: s.client.Addr().As4()})
	}
	return nil
}

// synAck returns the packet. The kernel fills in the checksum of the IP header.
func synAck(from, to netip.AddrPort, sequence, acknowledged uint32) []byte {
	p := make([]byte, packetSize)
	p[0] = 0x45 // version 4, header of five words
	binary.BigEndian.PutUint16(p[2:], packetSize)
	p[8] = 64 // time to live
	p[9] = unix.IPPROTO_TCP
	source, destination := from.Addr().As4(), to.Addr().As4()
	copy(p[12:], source[:])
	copy(p[16:], destination[:])
	tcp := p[20:]
	binary.BigEndian.PutUint16(tcp, from.Port())
	binary.BigEndian.PutUint16(tcp[2:], to.Port())
	binary.BigEndian.PutUint32(tcp[4:], sequence)
	binary.BigEndian.PutUint32(tcp[8:], acknowledged)
	tcp[12] = 5 << 4 // header of five words
	tcp[13] = 0x12   // SYN and ACK
	binary.BigEndian.PutUint16(tcp[16:], checksum(p[12:20], tcp))
	return p
}

// checksum returns TCP's checksum over the addresses and the segment (RFC 9293, 3.1).
func checksum(addresses, segment []byte) uint16 {
	sum := uint32(unix.IPPROTO_TCP) + uint32(len(segment))
	for _, part := range [][]byte{addresses, segment} {
		for i := 0; i+1 < len(part); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(part[i:]))
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
