package stranger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"howdah/internal/testkit"
)

// site is a server with a room. Its handler reads bodies and then waits for the test.
type site struct {
	*httptest.Server
	room *Room
	// goOn lets all handlers end.
	goOn chan struct{}
}

func serve(t *testing.T, limits Limits, prove func(r *http.Request, body []byte)) *site {
	t.Helper()
	s := &site{room: New(limits), goOn: make(chan struct{})}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			if errors.Is(err, ErrFull) {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return
		}
		if prove != nil {
			prove(r, text)
		}
		if r.URL.Path == "/hold" {
			<-s.goOn
		}
		fmt.Fprintf(w, "%d", len(text))
	})
	s.Server = httptest.NewUnstartedServer(s.room.Handler(handler))
	s.Listener = s.room.Listen(s.Listener)
	s.Config.ConnContext = s.room.Context
	s.Config.MaxHeaderBytes = MaxHeader
	s.Start()
	t.Cleanup(func() {
		s.end()
		s.Close()
	})
	return s
}

func (s *site) end() {
	select {
	case <-s.goOn:
	default:
		close(s.goOn)
	}
}

// open opens a connection, and sends the beginning of a request whose body is not complete.
func (s *site) open(t *testing.T, text []byte) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		// The server may refuse to read on.
		_, _ = fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", len(text)+1)
		_, _ = c.Write(text)
	}()
	return c
}

// TestWhatStrangersHold opens many connections that each send much, and measures the memory that
// the process uses for them. Without limits that is 300 MiB.
func TestWhatStrangersHold(t *testing.T) {
	limits := Limits{Conns: 200, Bytes: 8 << 20, Patience: time.Minute}
	s := serve(t, limits, nil)
	text := bytes.Repeat([]byte("a"), 1<<20)
	before := inUse()
	for range 300 {
		s.open(t, text)
	}
	testkit.Eventually(t, 30*time.Second, func() error {
		conns, held := s.room.Held()
		if conns > limits.Conns || held > limits.Bytes {
			t.Fatalf("strangers hold %d connections and %d bytes", conns, held)
		}
		// One address may hold half. The last body did not fit, by less than one read.
		if conns < limits.Conns/2 || held < limits.Bytes/2-2<<20 {
			return fmt.Errorf("only %d connections and %d bytes yet", conns, held)
		}
		return nil
	})
	grown := inUse() - before
	t.Logf("300 connections with 1 MiB each: %d MiB in use", grown>>20)
	if grown > 64<<20 {
		t.Errorf("the process has %d MiB more in use", grown>>20)
	}
}

func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// TestWhoIsKnown checks that callers who proved who they are do not count, nor what they send.
func TestWhoIsKnown(t *testing.T) {
	s := serve(t, Limits{Conns: 4, Bytes: 8 << 20, Patience: time.Minute}, func(r *http.Request, _ []byte) { Known(r.Context()) })
	text := strings.Repeat("a", 1<<20)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	for range 3 { // more at once would not fit while they are read
		all.Go(func() { post(t, client, s.URL+"/hold", text, http.StatusOK) })
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if conns, held := s.room.Held(); conns != 0 || held != 0 {
			return fmt.Errorf("%d connections and %d bytes count as strangers'", conns, held)
		}
		return nil
	})
	s.end()
	all.Wait()
	for range 20 { // on connections that are known
		post(t, client, s.URL, text, http.StatusOK)
	}
}

func post(t *testing.T, client *http.Client, url, text string, want int) {
	t.Helper()
	answer, err := client.Post(url, "text/plain", strings.NewReader(text))
	if err != nil {
		t.Error(err)
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode != want {
		t.Errorf("status %d, want %d", answer.StatusCode, want)
	}
}

// TestRoomIsGivenBack checks that what was held is free again when requests end.
func TestRoomIsGivenBack(t *testing.T) {
	s := serve(t, Limits{Conns: 10, Bytes: 2 << 20, Patience: time.Minute}, nil)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for range 8 {
		post(t, client, s.URL, strings.Repeat("a", 1<<20), http.StatusOK)
		post(t, client, s.URL, strings.Repeat("a", 1<<20+1), http.StatusServiceUnavailable)
	}
	client.CloseIdleConnections()
	testkit.Eventually(t, 10*time.Second, func() error {
		if conns, held := s.room.Held(); conns != 0 || held != 0 {
			return fmt.Errorf("%d connections and %d bytes are still held", conns, held)
		}
		return nil
	})
}

// TestASlowBodyEnds checks that a caller who sends a body in drops does not hold its place for
// long.
func TestASlowBodyEnds(t *testing.T) {
	s := serve(t, Limits{Conns: 10, Bytes: 1 << 20, Patience: 100 * time.Millisecond}, nil)
	s.open(t, []byte("abc"))
	testkit.Eventually(t, 10*time.Second, func() error {
		if conns, held := s.room.Held(); conns != 0 || held != 0 {
			return fmt.Errorf("%d connections and %d bytes are still held", conns, held)
		}
		return nil
	})
}

// TestWhoLoses checks that the address which holds most loses its oldest connection, and that an
// address with only one loses none.
func TestWhoLoses(t *testing.T) {
	r := New(Limits{Conns: 4, Bytes: 100})
	at := func(from string) *conn {
		a, _ := net.Pipe()
		return &conn{Conn: a, room: r, from: source(from)}
	}
	one, many := at("192.0.2.1:1"), []*conn{at("192.0.2.2:1"), at("192.0.2.2:2"), at("[::ffff:192.0.2.2]:3")}
	for _, c := range append([]*conn{one}, many...) {
		if loser := r.enter(c); loser != nil {
			t.Fatal("somebody has to go too early")
		}
	}
	if loser := r.enter(at("192.0.2.3:1")); loser != many[0] {
		t.Error("another one than the oldest of the address with most has to go")
	}
	many[0].Close()
	many[0].Close() // a second time changes nothing
	if conns, _ := r.Held(); conns != 4 {
		t.Errorf("%d connections", conns)
	}
	six := New(Limits{Conns: 1})
	first := &conn{room: six, from: source("[2001:db8::1]:1")}
	six.enter(first)
	if loser := six.enter(&conn{room: six, from: source("[2001:db8::2]:1")}); loser != first {
		t.Error("two addresses of one network are two callers")
	}
	alone := New(Limits{Conns: 1})
	alone.enter(&conn{room: alone, from: source("192.0.2.1:1")})
	late := &conn{room: alone, from: source("192.0.2.2:1")}
	if alone.enter(late) != late {
		t.Error("who was there first has to go for one from elsewhere")
	}
}

// TestOneAddressHoldsHalf checks that there is room for others while one address sends all it can.
func TestOneAddressHoldsHalf(t *testing.T) {
	r := New(Limits{Bytes: 100})
	a, b := source("192.0.2.1:1"), source("192.0.2.2:1")
	for _, test := range []struct {
		from string
		n    int64
		want bool
	}{{"a", 50, true}, {"a", 1, false}, {"b", 50, true}, {"b", 1, false}} {
		if got := r.take(map[string]netip.Addr{"a": a, "b": b}[test.from], test.n); got != test.want {
			t.Errorf("%s takes %d: %v", test.from, test.n, got)
		}
	}
	r.give(a, 50)
	if !r.take(a, 10) {
		t.Error("what was given back cannot be taken")
	}
}
