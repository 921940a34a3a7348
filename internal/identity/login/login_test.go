package login

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/testkit/patience"
)

// world is a server whose Check knows one good token.
type world struct {
	address string
	roots   *tls.Config
	log     *buffer
}

type buffer struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

const token = "a-good-token"

// odd is a user whose name looks like the end of a bind's name.
const odd = `o'dd,member=db-2.m2 "é`

func newWorld(t *testing.T) *world {
	t.Helper()
	ca, err := certs.New("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(certs.Subject{CommonName: "agent:a", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	server, errServer := pair.ServerTLS()
	client, errClient := pair.ClientTLS()
	l, errListen := net.Listen("tcp", "127.0.0.1:0")
	if err := errors.Join(errServer, errClient, errListen); err != nil {
		t.Fatal(err)
	}
	client.Certificates = nil
	w := &world{address: l.Addr().String(), roots: client, log: &buffer{}}
	s := &Server{Log: slog.New(slog.NewTextHandler(w.log, nil)), Check: func(_ context.Context, member, user, got string) error {
		switch {
		case user == "nobody-knows":
			return errors.New("no control plane answers")
		case member == "db-1.m1" && (user == "jane" || user == odd) && strings.TrimRight(got, ".") == token:
			return nil
		}
		return fmt.Errorf("%w: of %s", ErrRefused, user)
	}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l, server) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if strings.Contains(w.log.String(), token) {
			t.Error("a token was logged")
		}
	})
	return w
}

// say sends a message over TLS. It returns what comes back: one message, or everything until the
// server ends the connection.
func (w *world) say(t *testing.T, message []byte) []byte {
	t.Helper()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: patience.For(5 * time.Second)}, "tcp", w.address, w.roots)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience.For(5 * time.Second)))
	// If the server ends the connection before it has read all, it resets the connection.
	if _, err := conn.Write(message); err != nil && !ended(err) {
		t.Fatal(err)
	}
	// Nothing more will come. A server that waits for the rest sees the end.
	if err := conn.CloseWrite(); err != nil && !ended(err) {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil && !ended(err) {
		t.Fatal(err)
	}
	return answer
}

func ended(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// bind returns the message of a simple bind.
func bind(name string, kind byte, password string) []byte {
	var request []byte
	request = encode(request, tagInteger, []byte{3})
	request = encode(request, tagOctets, []byte(name))
	request = encode(request, kind, []byte(password))
	return encode(nil, tagSequence, append(encode(nil, tagInteger, []byte{7}), encode(nil, tagBind, request)...))
}

// answered returns a whole answer with a result code.
func answered(code byte) []byte {
	return []byte{0x30, 0x0c, 0x02, 0x01, 7, 0x61, 0x07, 0x0a, 0x01, code, 0x04, 0x00, 0x04, 0x00}
}

func nameOf(user, member string) string {
	prefix, suffix := Affixes(member)
	return prefix + user + suffix
}

func TestBinds(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		message []byte
		want    byte
	}{
		"a good token":                {bind(nameOf("jane", "db-1.m1"), tagSimple, token), resultSuccess},
		"a user with an odd name":     {bind(nameOf(odd, "db-1.m1"), tagSimple, token), resultSuccess},
		"a long token":                {bind(nameOf("jane", "db-1.m1"), tagSimple, token+strings.Repeat(".", 9000)), resultSuccess},
		"another token":               {bind(nameOf("jane", "db-1.m1"), tagSimple, "other"), resultCredentials},
		"another user":                {bind(nameOf("joe", "db-1.m1"), tagSimple, token), resultCredentials},
		"another member":              {bind(nameOf("jane", "db-1.m2"), tagSimple, token), resultCredentials},
		"no token":                    {bind(nameOf("jane", "db-1.m1"), tagSimple, ""), resultCredentials},
		"nobody":                      {bind("", tagSimple, ""), resultCredentials},
		"a name of another form":      {bind("cn=jane,dc=example", tagSimple, token), resultCredentials},
		"no user":                     {bind(nameOf("", "db-1.m1"), tagSimple, token), resultCredentials},
		"a bind that is not simple":   {bind(nameOf("jane", "db-1.m1"), 0xa3, token), resultAuthMethod},
		"a bind that is not whole":    {encode(nil, tagSequence, append(encode(nil, tagInteger, []byte{7}), encode(nil, tagBind, []byte{2, 1, 3})...)), resultProtocol},
		"when nobody can tell":        {bind(nameOf("nobody-knows", "db-1.m1"), tagSimple, token), resultUnavailable},
		"lengths of more than needed": {wordy(bind(nameOf("jane", "db-1.m1"), tagSimple, token)), resultSuccess},
	} {
		if got := w.say(t, c.message); string(got) != string(answered(c.want)) {
			t.Errorf("%s: %x, want the code %d", name, got, c.want)
		}
	}
}

// wordy writes the length of a message in four bytes, as some libraries do.
func wordy(message []byte) []byte {
	body := message[2:]
	if message[1] == 0x81 {
		body = message[3:]
	}
	return append([]byte{message[0], 0x84, 0, 0, 0, byte(len(body))}, body...)
}

func TestWhatIsNoBindEndsTheConnection(t *testing.T) {
	w := newWorld(t)
	for name, message := range map[string][]byte{
		"an unbind":              encode(nil, tagSequence, []byte{2, 1, 8, tagUnbind, 0}),
		"a search":               encode(nil, tagSequence, []byte{2, 1, 8, 0x63, 0}),
		"HTTP":                   []byte("GET / HTTP/1.0\r\n\r\n"),
		"half a message":         bind(nameOf("jane", "db-1.m1"), tagSimple, token)[:20],
		"a length without end":   {0x30, 0x80, 2, 1, 7},
		"a length of many bytes": {0x30, 0x89, 1, 1, 1, 1, 1, 1, 1, 1, 1},
		"too long a message":     {0x30, 0x84, 0x7f, 0xff, 0xff, 0xff, 2, 1, 7},
		"more inside than is":    {0x30, 5, 2, 9, 7, 0x60, 0},
		"nothing":                nil,
	} {
		if got := w.say(t, message); len(got) > 0 {
			t.Errorf("%s: %x", name, got)
		}
	}
}

func TestWithoutTLSNothingIsAnswered(t *testing.T) {
	w := newWorld(t)
	conn, err := net.DialTimeout("tcp", w.address, patience.For(5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience.For(5 * time.Second)))
	if _, err := conn.Write(bind(nameOf("jane", "db-1.m1"), tagSimple, token)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err == nil && len(answer) > 0 && answer[0] == tagSequence {
		t.Errorf("answered %x", answer)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(bind(nameOf("jane", "db-1.m1"), tagSimple, token))
	f.Add([]byte{2, 1, 7, 0x60, 5, 2, 1, 3, 4, 0})
	s := &Server{Log: slog.New(slog.DiscardHandler), Check: func(context.Context, string, string, string) error { return ErrRefused }}
	f.Fuzz(func(t *testing.T, message []byte) {
		if answer := s.answer(t.Context(), message); len(answer) > 0 && answer[0] != tagSequence {
			t.Errorf("%x", answer)
		}
	})
}
