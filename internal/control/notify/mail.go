package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"os"
	"strings"
	"time"

	"howdah/internal/identity/home"
	"howdah/internal/model/topic"
)

// errNoRelay says that mail was subscribed while there was a relay.
var errNoRelay = errors.New("this home has no relay for mail any more: start it with --smtp HOST:PORT --smtp-from ADDRESS")

// maxDialogue bounds, in bytes, what a relay may say in one delivery.
const maxDialogue = 64 << 10

// mailTo sends a message by mail. If the relay offers TLS, its certificate is verified. A password
// is only given to a relay with TLS, or to one on this machine.
func mailTo(ctx context.Context, relay *home.SMTP, e topic.Envelope, sub topic.Subscription, from string) error {
	if relay == nil {
		return errNoRelay
	}
	text, err := letter(relay.From, from, e, sub)
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(relay.Relay)
	if err != nil {
		return fmt.Errorf("SMTP relay: %w", err)
	}
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", relay.Relay)
	if err != nil {
		return fmt.Errorf("SMTP relay: %w", err)
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return fmt.Errorf("SMTP relay: %w", err)
		}
	}
	end := context.AfterFunc(ctx, func() { conn.Close() })
	defer end()
	if err := talk(&shortSpoken{Conn: conn, left: maxDialogue}, host, relay, sub.Endpoint, text); err != nil {
		return fmt.Errorf("SMTP relay: %w", err)
	}
	return nil
}

// shortSpoken ends a connection on which too much was said.
type shortSpoken struct {
	net.Conn
	left int
}

func (s *shortSpoken) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := s.Conn.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// talk is the dialogue with a relay.
func talk(conn net.Conn, host string, relay *home.SMTP, to string, text []byte) error {
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		return err
	}
	if ok, _ := c.Extension("STARTTLS"); ok {
		if err := c.StartTLS(&tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}); err != nil {
			return err
		}
	}
	if relay.User != "" {
		password, err := os.ReadFile(relay.PasswordFile)
		if err != nil {
			return fmt.Errorf("read password: %w", err)
		}
		if err := c.Auth(smtp.PlainAuth("", relay.User, strings.TrimRight(string(password), "\r\n"), host)); err != nil {
			return err
		}
	}
	from, err := mail.ParseAddress(relay.From)
	if err != nil {
		return err
	}
	if err := errors.Join(c.Mail(from.Address), c.Rcpt(to)); err != nil {
		return err
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	// The relay has taken the mail once it confirms the end of the mail. What comes after does not
	// count.
	if err := w.Close(); err != nil {
		return err
	}
	_ = c.Quit()
	return nil
}

// letter returns a message as mail. name is what the topic shows as the sender.
func letter(from, name string, e topic.Envelope, sub topic.Subscription) ([]byte, error) {
	address, err := mail.ParseAddress(from)
	if err != nil {
		return nil, fmt.Errorf("sender %q: %w", from, err)
	}
	if name != "" {
		address.Name = name
	}
	body, kind := letterBody(e), "text/plain"
	if sub.Protocol == topic.EmailJSON {
		text, err := e.JSON()
		if err != nil {
			return nil, err
		}
		body, kind = string(text)+"\n", "application/json"
	}
	var b bytes.Buffer
	header := func(name, value string) { b.WriteString(name + ": " + value + "\r\n") }
	header("From", address.String())
	header("To", (&mail.Address{Address: sub.Endpoint}).String())
	header("Subject", mime.QEncoding.Encode("utf-8", letterSubject(e)))
	header("Date", time.Now().UTC().Format(time.RFC1123Z))
	header("Message-ID", "<"+e.MessageID+"@sns.howdah>")
	header("X-Amz-Sns-Message-Id", e.MessageID)
	header("X-Amz-Sns-Subscription-Arn", sub.ARN())
	header("Auto-Submitted", "auto-generated")
	header("MIME-Version", "1.0")
	header("Content-Type", kind+"; charset=utf-8")
	header("Content-Transfer-Encoding", "quoted-printable")
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	if _, err := io.WriteString(w, body); err != nil {
		return nil, err
	}
	return b.Bytes(), w.Close()
}

func letterSubject(e topic.Envelope) string {
	switch {
	case e.Type == topic.SubscriptionConfirmation:
		return "AWS Notification - Subscription Confirmation"
	case e.Type == topic.UnsubscribeConfirmation:
		return "AWS Notification - Unsubscribe Confirmation"
	case e.Subject != "":
		return e.Subject
	}
	return "AWS Notification Message"
}

// letterBody returns a message for people, with the link that they need.
func letterBody(e topic.Envelope) string {
	if e.Type == topic.Notification {
		return e.Message + "\n\n--\nTo stop receiving the notifications of " + e.TopicARN + ", visit:\n" + e.UnsubscribeURL + "\n"
	}
	return e.Message + "\n\n" + e.SubscribeURL + "\n"
}
