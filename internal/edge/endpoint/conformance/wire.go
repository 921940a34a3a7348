package conformance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/testkit/patience"
)

// The protocol of the suite's servers, a line each way:
//
//	who   answered with the server's address and the client's as the server sees it
//	hang  never answered, as a query of a stopped PostgreSQL
const (
	who  = "who"
	hang = "hang"
)

// serve answers on l until it is closed. Sessions that are open then are still served.
func serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go answer(c)
	}
}

func answer(c net.Conn) {
	defer c.Close()
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		if lines.Text() == who {
			fmt.Fprintf(c, "%s %s\n", c.LocalAddr(), c.RemoteAddr())
		}
	}
}

// NewServer starts a server that plays a member of a database.
func NewServer(t testing.TB) netip.AddrPort {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", netip.AddrPortFrom(SomeAddr(), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go serve(l)
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// Session is a client's connection.
type Session struct {
	net.Conn
	reader *bufio.Reader
}

var answerTime = patience.For(3 * time.Second)

// Dial connects. It fails as it would for a client: refused, or no answer in time.
func Dial(to netip.AddrPort) (*Session, error) { return DialFrom(netip.Addr{}, to) }

// DialFrom is Dial from one of the machine's addresses. The zero address is any.
func DialFrom(from netip.Addr, to netip.AddrPort) (*Session, error) {
	dialer := net.Dialer{Timeout: answerTime}
	if from.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	c, err := dialer.DialContext(context.Background(), "tcp4", to.String())
	if err != nil {
		return nil, err
	}
	return &Session{c, bufio.NewReader(c)}, nil
}

// Who asks the server for its address, and for the client's address as it sees it.
func (s *Session) Who() (server, client netip.AddrPort, err error) {
	if err := s.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return server, client, err
	}
	if _, err := fmt.Fprintln(s, who); err != nil {
		return server, client, err
	}
	line, err := s.reader.ReadString('\n')
	if err != nil {
		return server, client, err
	}
	first, second, _ := strings.Cut(strings.TrimSpace(line), " ")
	if server, err = netip.ParseAddrPort(first); err != nil {
		return server, client, err
	}
	client, err = netip.ParseAddrPort(second)
	return server, client, err
}

// Ended waits until the session is over, and returns when that was. If the session is still open,
// it returns an error.
func (s *Session) Ended(within time.Duration) (time.Time, error) {
	if err := s.SetReadDeadline(time.Now().Add(within)); err != nil {
		return time.Time{}, err
	}
	_, err := s.reader.ReadByte()
	if err == nil {
		return time.Time{}, errors.New("the server answered")
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return time.Time{}, fmt.Errorf("still open after %s", within)
	}
	return time.Now(), nil
}

// Join opens a session through the endpoint and checks where it leads.
func Join(t testing.TB, listen, want netip.AddrPort) *Session {
	t.Helper()
	s := joinAny(t, listen)
	Check(t, s, want)
	return s
}

// Check asks an open session where it leads.
func Check(t testing.TB, s *Session, want netip.AddrPort) {
	t.Helper()
	got, _, err := s.Who()
	if err != nil {
		t.Fatalf("ask through the endpoint: %v", err)
	}
	if got != want {
		t.Fatalf("reached %s, want %s", got, want)
	}
}

func joinAny(t testing.TB, listen netip.AddrPort) *Session {
	t.Helper()
	s, err := Dial(listen)
	if err != nil {
		t.Fatalf("connect to %s: %v", listen, err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// JoinHalf opens n sessions. Every second one waits for an answer.
func JoinHalf(t testing.TB, listen, target netip.AddrPort, n int) []*Session {
	t.Helper()
	sessions := make([]*Session, n)
	for i := range sessions {
		sessions[i] = Join(t, listen, target)
		if i%2 == 1 {
			fmt.Fprintln(sessions[i], hang)
		}
	}
	return sessions
}

// AllEnded waits until all sessions have ended, and returns when the last one did.
func AllEnded(t testing.TB, sessions []*Session) time.Time {
	t.Helper()
	type end struct {
		at  time.Time
		err error
	}
	ends := make(chan end)
	for _, s := range sessions {
		go func() {
			at, err := s.Ended(answerTime)
			ends <- end{at, err}
		}()
	}
	var last time.Time
	for range sessions {
		e := <-ends
		if e.err != nil {
			t.Errorf("session after cut: %v", e.err)
		}
		if e.at.After(last) {
			last = e.at
		}
	}
	return last
}

// Refuses checks that clients are turned away at once.
func Refuses(t testing.TB, listen netip.AddrPort) {
	t.Helper()
	begin := time.Now()
	c, err := (&net.Dialer{Timeout: answerTime}).DialContext(t.Context(), "tcp4", listen.String())
	if err == nil {
		c.Close()
		t.Fatalf("%s took a connection, but leads nowhere", listen)
	}
	if took := time.Since(begin); took > CutTime || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("%s answered after %s: %v, want connection refused", listen, took, err)
	}
}

// Flood writes into the session until it is over, also if nobody reads any more. The channel gets
// the time of the end.
func (s *Session) Flood() <-chan time.Time {
	end := make(chan time.Time, 1)
	line := []byte(strings.Repeat("x", 1000) + "\n")
	go func() {
		for {
			if _, err := s.Write(line); err != nil {
				end <- time.Now()
				return
			}
		}
	}()
	return end
}
