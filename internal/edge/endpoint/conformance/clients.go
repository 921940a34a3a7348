package conformance

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// playClients opens sessions through an endpoint. Half of them wait for an answer. It says under
// which address the server sees them, and when the last of them ended.
func playClients(args string) error {
	var listen string
	var n int
	if _, err := fmt.Sscan(args, &listen, &n); err != nil {
		return err
	}
	to, err := netip.ParseAddrPort(listen)
	if err != nil {
		return err
	}
	ends := make(chan error)
	var seen netip.AddrPort
	for i := range n {
		s, err := Dial(to)
		if err != nil {
			return err
		}
		if _, seen, err = s.Who(); err != nil {
			return err
		}
		if i%2 == 1 {
			fmt.Fprintln(s, hang)
		}
		go func() {
			_, err := s.Ended(time.Minute)
			ends <- err
		}()
	}
	fmt.Println(seen.Addr())
	for range n {
		if err := <-ends; err != nil {
			return err
		}
	}
	fmt.Println(now())
	return nil
}

// now returns the time, in nanoseconds, of a clock that all processes of the machine share.
func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // only an unknown clock fails
	}
	return t.Nano()
}

// Clients are sessions of another process, perhaps in another namespace.
type Clients struct {
	Child  *Child
	SeenAs string // the address that the server sees
}

// ClientsPart names the part of a child that opens n sessions to listen.
func ClientsPart(listen netip.AddrPort, n int) string { return fmt.Sprintf("clients %s %d", listen, n) }

// ServerPart names the part of a child that serves on addr.
func ServerPart(addr netip.AddrPort) string { return "server " + addr.String() }

// Connect lets a prepared child open its sessions.
func Connect(t testing.TB, c *Child) Clients {
	t.Helper()
	c.Go(t)
	return Clients{c, c.Line(t)}
}

// Measure runs cut and returns how long it took until the last client noticed.
func (c Clients) Measure(t testing.TB, cut func()) time.Duration {
	t.Helper()
	begin := now()
	cut()
	var end int64
	line := c.Child.Line(t)
	if _, err := fmt.Sscan(line, &end); err != nil {
		t.Fatalf("clients: %s", line)
	}
	return time.Duration(end - begin)
}
