package haproxy

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// abort shuts the proxy's own connections to target, which makes the proxy end their sessions. It
// is for sessions that `shutdown sessions` does not end. A session with data for a server that does
// not read waits until the server reads, which a frozen server never does. abort takes a copy of
// each of the proxy's sockets. The kernel allows that for processes of the same user, unless Yama
// forbids it.
func (p *process) abort(target netip.AddrPort) error {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.pid))
	if err != nil {
		return fmt.Errorf("list the sockets of a proxy: %w", err)
	}
	for _, e := range entries {
		number, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if err := p.abortOne(number, target); err != nil {
			return err
		}
	}
	return nil
}

func (p *process) abortOne(number int, target netip.AddrPort) error {
	fd, err := unix.PidfdGetfd(p.fd, number, 0)
	if errors.Is(err, unix.EBADF) {
		return nil // closed in between
	}
	if err != nil {
		return fmt.Errorf("copy a socket of a proxy: %w", err)
	}
	defer unix.Close(fd)
	peer, err := unix.Getpeername(fd)
	if v4, ok := peer.(*unix.SockaddrInet4); err != nil || !ok || netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), uint16(v4.Port)) != target {
		return nil
	}
	// What was not sent is thrown away when the proxy closes the socket.
	if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		return fmt.Errorf("abort a connection of a proxy: %w", err)
	}
	if err := unix.Shutdown(fd, unix.SHUT_RDWR); err != nil && !errors.Is(err, unix.ENOTCONN) {
		return fmt.Errorf("abort a connection of a proxy: %w", err)
	}
	return nil
}
