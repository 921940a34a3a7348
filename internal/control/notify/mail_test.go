package notify

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"howdah/internal/identity/home"
	"howdah/internal/model/topic"
	"howdah/internal/testkit"
)

// postman is an SMTP server that keeps what it is given.
type postman struct {
	net.Listener
	auth   bool // asks for a password
	refuse int  // so many mails first; guarded by mu
	mu     sync.Mutex
	mails  []letterIn // guarded by mu
}

type letterIn struct{ from, to, text, auth string }

func newPostman(t *testing.T) *postman {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &postman{Listener: l}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			done.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() { l.Close(); done.Wait() })
	return p
}

func (p *postman) serve(conn net.Conn) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	in := bufio.NewReader(conn)
	say := func(text string) { fmt.Fprint(conn, text+"\r\n") }
	say("220 postman")
	var l letterIn
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		verb, rest, _ := strings.Cut(line, " ")
		switch verb {
		case "EHLO":
			if p.auth {
				say("250-postman\r\n250 AUTH PLAIN")
			} else {
				say("250 postman")
			}
		case "AUTH":
			text, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(rest, "PLAIN "))
			l.auth = string(text)
			say("235 welcome")
		case "MAIL":
			l.from = rest
			say("250 go on")
		case "RCPT":
			l.to = rest
			say("250 go on")
		case "DATA":
			if p.busy() {
				say("451 later")
				continue
			}
			say("354 go on")
			l.text = dotted(in)
			p.keep(l)
			say("250 taken")
		default:
			say("221 bye")
			return
		}
	}
}

func dotted(in *bufio.Reader) string {
	var text strings.Builder
	for {
		line, err := in.ReadString('\n')
		if err != nil || line == ".\r\n" {
			return text.String()
		}
		text.WriteString(strings.TrimPrefix(line, "."))
	}
}

func (p *postman) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse--
	return p.refuse >= 0
}

func (p *postman) keep(l letterIn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mails = append(p.mails, l)
}

func (p *postman) gets(t *testing.T, n int) []letterIn {
	t.Helper()
	var all []letterIn
	testkit.Eventually(t, 10*time.Second, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if all = append([]letterIn(nil), p.mails...); len(all) < n {
			return fmt.Errorf("%d mails", len(all))
		}
		return nil
	})
	return all
}

// read takes a mail apart.
func (l letterIn) read(t *testing.T) (mail.Header, string) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(l.text))
	if err != nil {
		t.Fatalf("%v: %s", err, l.text)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil {
		t.Fatal(err)
	}
	return m.Header, strings.ReplaceAll(string(body), "\r\n", "\n")
}

func TestMail(t *testing.T) {
	w, p := newWorld(t), newPostman(t)
	p.refuse = 2
	w.cfg.SMTP = relayOf(p.Addr().String())
	sub := w.subscribe("mail", topic.Email, "ops@example.org", nil)
	w.events(topic.EventSubscription{Name: "watch", Enabled: true})
	n, _ := w.lead()
	w.raise("0005", "db")
	l := p.gets(t, 1)[0]
	header, body := l.read(t)
	if l.from != "FROM:<howdah@example.org>" && !strings.HasPrefix(l.from, "FROM:<howdah@example.org> ") || l.to != "TO:<ops@example.org>" {
		t.Errorf("from %s to %s", l.from, l.to)
	}
	if header.Get("Subject") != "RDS Notification Message" || header.Get("To") != "<ops@example.org>" || header.Get("From") != `"Howdah" <howdah@example.org>` {
		t.Errorf("header %v", header)
	}
	if !strings.Contains(body, "DB instance created") || !strings.Contains(body, topic.UnsubscribeURL(base, sub)) {
		t.Errorf("body %s", body)
	}
	w.idle()

	w.subscribe("json", topic.EmailJSON, "robot@example.org", nil)
	w.publish("two", "héllo\n.\n.dots", func(m *topic.Message) { m.Subject = "Grüße" })
	for _, l := range p.gets(t, 3)[1:] {
		header, body := l.read(t)
		subject, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))
		if err != nil || subject != "Grüße" {
			t.Errorf("subject %q, %v", subject, err)
		}
		if l.to == "TO:<robot@example.org>" {
			e := opened(t, request{body: body})
			w.verify(n, e)
			if e.Message != "héllo\n.\n.dots" {
				t.Errorf("message %q", e.Message)
			}
		} else if !strings.HasPrefix(body, "héllo\n.\n.dots\n") {
			t.Errorf("body %q", body)
		}
	}
}

func TestMailWithAPassword(t *testing.T) {
	p := newPostman(t)
	p.auth = true
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	relay := &home.SMTP{Relay: p.Addr().String(), From: "a@example.org", User: "me", PasswordFile: file}
	e := topic.Envelope{Type: topic.SubscriptionConfirmation, Message: "m", SubscribeURL: "https://x/"}
	sub := topic.Subscription{Protocol: topic.Email, Endpoint: "b@example.org"}
	if err := mailTo(t.Context(), relay, e, sub, "Alarms"); err != nil {
		t.Fatal(err)
	}
	l := p.gets(t, 1)[0]
	header, body := l.read(t)
	if l.auth != "\x00me\x00secret" || header.Get("From") != `"Alarms" <a@example.org>` || !strings.Contains(body, "https://x/") || !strings.Contains(header.Get("Subject"), "Subscription Confirmation") {
		t.Errorf("%+v %v %s", l, header, body)
	}
	relay.PasswordFile = file + "x"
	if err := mailTo(t.Context(), relay, e, sub, ""); err == nil || !strings.Contains(err.Error(), "password") {
		t.Errorf("no password: %v", err)
	}
}

func TestMailThatCannotGo(t *testing.T) {
	endless, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endless.Close() })
	go func() {
		conn, err := endless.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for err == nil {
			_, err = fmt.Fprintf(conn, "220-%s\r\n", strings.Repeat("x", 1000))
		}
	}()
	e, sub := topic.Envelope{Type: topic.Notification}, topic.Subscription{Protocol: topic.Email, Endpoint: "b@example.org"}
	for name, relay := range map[string]*home.SMTP{
		"no relay": nil, "nobody there": relayOf("127.0.0.1:1"), "one that talks without end": relayOf(endless.Addr().String()),
		"no port": relayOf("127.0.0.1"), "no sender": {Relay: "127.0.0.1:1"},
	} {
		if err := mailTo(t.Context(), relay, e, sub, ""); err == nil {
			t.Errorf("%s: sent", name)
		}
	}
}
