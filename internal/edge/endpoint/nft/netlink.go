package nft

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// requestTime bounds one exchange with the kernel.
const requestTime = 2 * time.Second

// socket talks to netfilter. The netlink library lacks the requests here: a conntrack dump that the
// kernel filters, elements of sets, a table with an owner, the generation of the rules. A Forwarder
// keeps its sockets open. To close one waits until the kernel has freed what the last transactions
// removed, which takes 10 ms and sometimes much more.
type socket struct {
	file *os.File

	mu       sync.Mutex // one call at a time
	sequence uint32     // of the last call: tells its answers from those of a call that was given up
	buffer   []byte     // of the last datagram
}

// dial opens a socket that also hears the given multicast groups.
func dial(groups ...int) (*socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	s := &socket{file: os.NewFile(uintptr(fd), "netlink"), buffer: make([]byte, 64<<10)}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		s.close()
		return nil, fmt.Errorf("bind a netlink socket: %w", err)
	}
	for _, g := range groups {
		if err := unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, g); err != nil {
			s.close()
			return nil, fmt.Errorf("join netlink group %d: %w", g, err)
		}
	}
	return s, nil
}

func (s *socket) close() { s.file.Close() }

// call sends messages as one, and hands every answer to each. each must not keep an answer. If it
// is nil, there are no answers. call returns once the kernel has ended a dump, acknowledged, or
// reported an error.
func (s *socket) call(ctx context.Context, each func(message), messages ...[]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sequence++
	for _, m := range messages {
		binary.NativeEndian.PutUint32(m[8:], s.sequence)
	}
	if err := s.file.SetDeadline(deadline(ctx, requestTime)); err != nil {
		return fmt.Errorf("set the deadline of a netlink socket: %w", err)
	}
	if _, err := s.file.Write(bytes.Join(messages, nil)); err != nil {
		return fmt.Errorf("send to netfilter: %w", err)
	}
	for {
		answers, err := s.read()
		if err != nil {
			return err
		}
		for _, m := range answers {
			switch {
			case m.sequence != s.sequence:
			case m.kind == unix.NLMSG_DONE:
				return nil
			case m.kind == unix.NLMSG_ERROR:
				return m.failure()
			case each != nil:
				each(m)
			}
		}
	}
}

// read waits for one datagram, until the deadline of the socket. The result is valid until the next
// read.
func (s *socket) read() ([]message, error) {
	n, err := s.file.Read(s.buffer)
	if err != nil {
		return nil, fmt.Errorf("read from netfilter: %w", err)
	}
	return parseMessages(s.buffer[:n]), nil
}

func deadline(ctx context.Context, most time.Duration) time.Time {
	at := time.Now().Add(most)
	if d, ok := ctx.Deadline(); ok && d.Before(at) {
		return d
	}
	return at
}

// message is one netlink message of netfilter.
type message struct {
	kind     uint16
	sequence uint32
	body     []byte // what follows the netlink header
}

// errShort says that the kernel cut an answer off, or that an answer does not have the right form.
var errShort = errors.New("netlink message too short")

// failure returns the error of an NLMSG_ERROR, or nil for an acknowledgement.
func (m message) failure() error {
	if len(m.body) < 4 {
		return errShort
	}
	if code := int32(binary.NativeEndian.Uint32(m.body)); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}

// attributes returns the attributes of a netfilter message, which begins with a header of four
// bytes.
func (m message) attributes() map[uint16][]byte {
	if len(m.body) < 4 {
		return nil
	}
	return parseAttributes(m.body[4:])
}

const headerSize = 16

func parseMessages(b []byte) []message {
	var all []message
	for len(b) >= headerSize {
		size := int(binary.NativeEndian.Uint32(b))
		if size < headerSize || size > len(b) {
			return all
		}
		all = append(all, message{
			kind:     binary.NativeEndian.Uint16(b[4:]),
			sequence: binary.NativeEndian.Uint32(b[8:]),
			body:     b[headerSize:size],
		})
		b = b[min(aligned(size), len(b)):]
	}
	return all
}

// parseAttributes keeps the last of each type.
func parseAttributes(b []byte) map[uint16][]byte {
	all := map[uint16][]byte{}
	for kind, value := range attributesOf(b) {
		all[kind] = value
	}
	return all
}

// attributesOf goes through all attributes. Lists have the same type many times.
func attributesOf(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= 4 {
			size := int(binary.NativeEndian.Uint16(b))
			kind := binary.NativeEndian.Uint16(b[2:]) &^ uint16(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER)
			if size < 4 || size > len(b) || !yield(kind, b[4:size]) {
				return
			}
			b = b[min(aligned(size), len(b)):]
		}
	}
}

// encode makes a message for a subsystem of netfilter, IPv4.
func encode(subsystem, kind, flags int, attributes ...[]byte) []byte {
	return encodeFor(subsystem<<8|kind, flags, unix.AF_INET, 0, attributes...)
}

// encodeFor also sets the two fields of netfilter's header, which batches use otherwise.
func encodeFor(kind, flags int, family uint8, resource uint16, attributes ...[]byte) []byte {
	b := make([]byte, headerSize+4)
	binary.NativeEndian.PutUint16(b[4:], uint16(kind))
	binary.NativeEndian.PutUint16(b[6:], uint16(flags|unix.NLM_F_REQUEST))
	b[headerSize] = family
	binary.BigEndian.PutUint16(b[headerSize+2:], resource)
	for _, a := range attributes {
		b = append(b, a...)
	}
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	return b
}

// attribute is one value, or several attributes nested in one.
func attribute(kind int, values ...[]byte) []byte {
	b := make([]byte, 4)
	binary.NativeEndian.PutUint16(b[2:], uint16(kind))
	for _, v := range values {
		b = append(b, v...)
	}
	binary.NativeEndian.PutUint16(b, uint16(len(b)))
	return append(b, make([]byte, aligned(len(b))-len(b))...)
}

func nested(kind int, attributes ...[]byte) []byte {
	return attribute(kind|unix.NLA_F_NESTED, attributes...)
}

func aligned(n int) int { return (n + 3) &^ 3 }

// zeroEnded returns a name in the kernel's form.
func zeroEnded(s string) []byte { return append([]byte(s), 0) }

func big16(v uint16) []byte { return binary.BigEndian.AppendUint16(nil, v) }

func big32(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }
