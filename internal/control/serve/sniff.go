package serve

import (
	"bufio"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// sniffTimeout is how long a client may take to send its first byte.
const sniffTimeout = 10 * time.Second

// sniffer accepts TLS, and plain HTTP from loopback, on one port. So clients that cannot be given a
// certificate bundle work on the machine itself, and no secret crosses a network in the clear.
type sniffer struct {
	net.Listener
	config *tls.Config
	conns  chan net.Conn
	done   chan struct{}
	once   sync.Once // closes done
}

func newSniffer(l net.Listener, config *tls.Config) *sniffer {
	config = config.Clone()
	// Heartbeats are small and many. HTTP/1.1 on a kept connection is enough for them.
	config.NextProtos = []string{"http/1.1"}
	s := &sniffer{Listener: l, config: config, conns: make(chan net.Conn), done: make(chan struct{})}
	go s.accept()
	return s
}

// Accept returns connections whose first byte has been seen.
func (s *sniffer) Accept() (net.Conn, error) {
	select {
	case conn := <-s.conns:
		return conn, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (s *sniffer) Close() error {
	s.once.Do(func() { close(s.done) })
	return s.Listener.Close()
}

// acceptPause is how long a listener that could not accept is left alone.
const acceptPause = 50 * time.Millisecond

// accept ends when the listener is closed. Any other error passes: there are too many open files,
// or a client left while it waited.
func (s *sniffer) accept() {
	for {
		conn, err := s.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			select {
			case <-s.done:
				return
			case <-time.After(acceptPause):
			}
		default:
			go s.sort(conn)
		}
	}
}

// sort finds out which protocol a client speaks.
func (s *sniffer) sort(conn net.Conn) {
	if conn.SetReadDeadline(time.Now().Add(sniffTimeout)) != nil {
		conn.Close()
		return
	}
	buffered := bufio.NewReader(conn)
	first, err := buffered.Peek(1)
	if err != nil || conn.SetReadDeadline(time.Time{}) != nil {
		conn.Close()
		return
	}
	peeked := net.Conn(&peekedConn{Conn: conn, reader: buffered})
	const handshake = 0x16 // first byte of a TLS record that opens a connection
	switch {
	case first[0] == handshake:
		peeked = tls.Server(peeked, s.config)
	case !fromLoopback(conn):
		conn.Close()
		return
	}
	select {
	case s.conns <- peeked:
	case <-s.done:
		conn.Close()
	}
}

func fromLoopback(conn net.Conn) bool {
	a, ok := conn.RemoteAddr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

// accepted returns the connection that the sniffer got from its listener.
func accepted(c net.Conn) net.Conn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if peeked, ok := c.(*peekedConn); ok {
		c = peeked.Conn
	}
	return c
}

// peekedConn first reads what was peeked at.
type peekedConn struct {
	net.Conn
	reader *bufio.Reader
}

func (c *peekedConn) Read(p []byte) (int, error) { return c.reader.Read(p) }
