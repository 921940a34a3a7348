package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

// site is a control plane's listener with a handler of the test behind it.
type site struct {
	addr   string
	cfg    Config
	ca     *certs.CA
	client *tls.Config
	id     *certs.Identity
	stop   func() error
}

func start(t *testing.T, handler http.Handler) *site {
	t.Helper()
	h, err := home.Ensure(t.TempDir()+"/home", home.Options{Listen: testkit.FreeAddr(t)})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{addr: h.Listen, cfg: Config{Home: h, Address: "127.0.0.1", Log: slog.New(slog.DiscardHandler)}}
	if s.ca, s.id, err = s.cfg.identity(); err != nil {
		t.Fatal(err)
	}
	if s.client, err = s.id.ClientTLS(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.cfg.listen(ctx, s.id, handler) }()
	s.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { s.stop() })
	testkit.Eventually(t, 5*time.Second, func() error {
		conn, err := net.Dial("tcp", s.addr)
		if err == nil {
			conn.Close()
		}
		return err
	})
	return s
}

// get asks with TLS or without.
func (s *site) get(secure bool, path string) (string, error) {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: s.client.Clone()}, Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()
	answer, err := client.Get(scheme + "://" + s.addr + path)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// whom tells who the caller is by its certificate, if the call came by TLS.
var whom = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "tls=%v caller=%q", r.TLS != nil, certs.Caller(r.TLS))
})

func TestTLSAndPlainOnOnePort(t *testing.T) {
	s := start(t, whom)
	for secure, want := range map[bool]string{true: `tls=true caller="howdah-serve"`, false: `tls=false caller=""`} {
		if got, err := s.get(secure, "/"); err != nil || got != want {
			t.Errorf("with TLS %v: %q, %v, want %q", secure, got, err, want)
		}
	}
}

// away is a connection that says it comes from another machine.
type away struct{ net.Conn }

func (away) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 7} }

// No secret crosses a network in the clear. If a call comes from elsewhere without TLS, the
// listener hangs up before anything is answered.
func TestPlainFromElsewhereIsHungUpOn(t *testing.T) {
	s := &sniffer{conns: make(chan net.Conn), done: make(chan struct{}), config: &tls.Config{}}
	for first, served := range map[string]bool{"GET / HTTP/1.1\r\n": false, "\x16\x03\x01": true} {
		client, server := net.Pipe()
		sorted := make(chan struct{})
		go func() { defer close(sorted); s.sort(away{server}) }()
		if _, err := client.Write([]byte(first)); err != nil {
			t.Fatal(err)
		}
		select {
		case conn := <-s.conns:
			if _, secure := conn.(*tls.Conn); !served || !secure {
				t.Errorf("%q is served, by TLS: %v", first, secure)
			}
		case <-sorted: // and handed to nobody
			client.SetReadDeadline(time.Now().Add(patience.For(time.Second)))
			if _, err := client.Read(make([]byte, 1)); served || !errors.Is(err, io.EOF) {
				t.Errorf("%q is not served: %v, want the end of what is not, and only of that", first, err)
			}
		case <-time.After(patience.For(5 * time.Second)):
			t.Errorf("%q is neither served nor hung up on", first)
		}
		client.Close()
		server.Close()
	}
}

func TestGarbage(t *testing.T) {
	s := start(t, whom)
	cases := map[string]string{
		"no request":             "\x00\x01\x02\x03\r\n\r\n",
		"half a TLS hello":       "\x16\x03\x01\x00\x05hello",
		"a startup packet":       "\x00\x00\x00\x08\x04\xd2\x16\x2f",
		"a header without colon": "GET / HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n",
		"two lengths":            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
	}
	for name, text := range cases {
		conn := dial(t, s.addr)
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			tcp.CloseWrite()
		}
		conn.SetReadDeadline(time.Now().Add(patience.For(5 * time.Second)))
		answer, err := io.ReadAll(conn)
		if err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: %v", name, err)
		}
		if bytes.Contains(answer, []byte("tls=")) {
			t.Errorf("%s reached the handler: %s", name, answer)
		}
	}
	if _, err := s.get(true, "/"); err != nil {
		t.Errorf("after all of it: %v", err)
	}
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestHeadersThatAreTooLarge(t *testing.T) {
	s := start(t, whom)
	conn := dial(t, s.addr)
	go fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nX-Much: %s\r\n\r\n", strings.Repeat("x", 2<<20))
	conn.SetReadDeadline(time.Now().Add(patience.For(10 * time.Second)))
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%s, want 431", answer.Status)
	}
}

// A client that begins and does not go on holds nothing for long, however far it came.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	s := start(t, whom)
	var all sync.WaitGroup
	for name, text := range map[string]string{
		"nothing": "", "one letter": "G", "half a header": "GET / HTTP/1.1\r\nHost:", "a byte of TLS": "\x16", "half a TLS hello": "\x16\x03\x01\x02\x00\x01",
	} {
		conn := dial(t, s.addr)
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			conn.SetReadDeadline(time.Now().Add(2 * sniffTimeout))
			if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s: %v: not hung up on", name, err)
			}
		})
	}
	// Meanwhile others are served.
	if got, err := s.get(true, "/"); err != nil || !strings.HasPrefix(got, "tls=true") {
		t.Errorf("%q, %v", got, err)
	}
	all.Wait()
}

// A stop lets requests end that are under way, and takes no new ones.
func TestGracefulStop(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-finish
		io.WriteString(w, "done")
	}))
	type result struct {
		text string
		err  error
	}
	got := make(chan result, 1)
	go func() {
		text, err := s.get(true, "/")
		got <- result{text, err}
	}()
	<-began
	ended := make(chan error, 1)
	go func() { ended <- s.stop() }()
	testkit.Eventually(t, 2*time.Second, func() error {
		conn, err := net.Dial("tcp", s.addr)
		if err == nil {
			conn.Close()
			return errors.New("still listens")
		}
		return nil
	})
	close(finish)
	if r := <-got; r.err != nil || r.text != "done" {
		t.Errorf("the request that was under way: %q, %v", r.text, r.err)
	}
	if err := <-ended; err != nil {
		t.Errorf("listen: %v", err)
	}
}

// A request that never ends does not keep the process.
func TestStopIsBounded(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	s := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
	}))
	got := make(chan error, 1)
	go func() {
		_, err := s.get(true, "/")
		got <- err
	}()
	<-began
	begin := time.Now()
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
	if err := <-got; err == nil {
		t.Error("the client was not told")
	}
}

// stutter fails to accept now and then, as happens with too many open files.
type stutter struct {
	net.Listener
	failures int
}

func (s *stutter) Accept() (net.Conn, error) {
	if s.failures > 0 {
		s.failures--
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return s.Listener.Accept()
}

func TestAcceptGoesOnAfterAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newSniffer(&stutter{l, 3}, &tls.Config{})
	t.Cleanup(func() { s.Close() })
	conn := dial(t, l.Addr().String())
	if _, err := io.WriteString(conn, "G"); err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() {
		conn, err := s.Accept()
		if err == nil {
			conn.Close()
		}
		accepted <- err
	}()
	select {
	case err := <-accepted:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience.For(5 * time.Second)):
		t.Error("nothing is accepted any more")
	}
	if s.Close() != nil || s.Close() == nil {
		t.Error("the first close works, a second one finds it closed")
	}
	if _, err := s.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// A control plane whose certificates live two seconds runs through four of them. No call fails, and
// the files hold the certificate that is shown. On a busy machine certificates live longer, because
// a renewal may take only a third of a life, with what it writes to the disk.
func TestTheOwnCertificateIsRenewed(t *testing.T) {
	t.Parallel()
	s := start(t, whom)
	s.ca.Lifetime = patience.For(2 * time.Second)
	renewal := s.cfg.renewal(s.ca)
	short, err := renewal.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.id.Replace(short); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { s.id.Keep(ctx, renewal) })
	shown := map[string]bool{}
	testkit.Eventually(t, 20*time.Second, func() error {
		conn, err := tls.Dial("tcp", s.addr, s.client.Clone())
		if err != nil {
			t.Fatalf("with certificate %d: %v", len(shown), err)
		}
		defer conn.Close()
		shown[conn.ConnectionState().PeerCertificates[0].SerialNumber.String()] = true
		if len(shown) < 4 {
			return errors.New("few certificates yet")
		}
		return nil
	})
	cancel()
	done.Wait()
	kept, err := certs.Load(s.cfg.Home.CertDir())
	if err != nil || !bytes.Equal(kept.CertPEM, s.id.Pair().CertPEM) {
		t.Errorf("on disk is another certificate than in use: %v", err)
	}
}
