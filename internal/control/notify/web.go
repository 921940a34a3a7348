package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/model/topic"
)

const (
	// maxAnswer is how much of an answer is read, in bytes. Nothing in it counts.
	maxAnswer = 64 << 10
	// agent is the name of our requests. It begins as SNS's does, because receivers look for that,
	// and ends in our own name.
	agent = "Amazon Simple Notification Service Agent (Howdah)"
)

var (
	errForbidden = errors.New("deliveries to link-local, multicast and unspecified addresses, and to metadata services, are not allowed")
	errOwn       = errors.New("deliveries to addresses of this home are not allowed")
	errRedirect  = errors.New("the endpoint redirects: subscribe the URL that it redirects to")
)

// web posts messages to HTTP and HTTPS endpoints.
type web struct{ client *http.Client }

// newWeb returns a client that trusts the authorities of the system and the home's own. own is
// Config.Own.
func newWeb(ca *certs.CA, own func(netip.AddrPort) bool) *web {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	roots.AddCert(ca.Cert)
	dialer := &net.Dialer{Timeout: 5 * time.Second, Control: func(_, address string, _ syscall.RawConn) error { return allowed(address, own) }}
	return &web{client: &http.Client{
		Transport: &http.Transport{
			Proxy: nil, DialContext: dialer.DialContext, TLSHandshakeTimeout: 5 * time.Second,
			TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			MaxResponseHeaderBytes: maxAnswer, MaxIdleConns: maxFlying, MaxIdleConnsPerHost: maxPerReceiver, IdleConnTimeout: 30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// allowed gets the address itself, after names were resolved. So a name that leads to the metadata
// service of a cloud is refused like its address.
func allowed(address string, own func(netip.AddrPort) bool) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", address, errForbidden)
	}
	ip := at.Addr().Unmap()
	for _, ip := range append(carried(ip), ip) {
		if forbidden(ip) {
			return fmt.Errorf("connect to %s: %w", address, errForbidden)
		}
		if own != nil && own(netip.AddrPortFrom(ip, at.Port())) {
			return fmt.Errorf("connect to %s: %w", address, errOwn)
		}
	}
	return nil
}

// post delivers a message. Only an answer of 2xx means that it was taken.
func (w *web) post(ctx context.Context, e topic.Envelope, sub topic.Subscription) error {
	raw := sub.Raw() && e.Type == topic.Notification
	body := []byte(e.Message)
	if !raw {
		var err error
		if body, err = e.JSON(); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, sub.Endpoint, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("prepare request: %w", plain(err))
	}
	if scheme := strings.ToLower(r.URL.Scheme); scheme != sub.Protocol {
		return fmt.Errorf("deliver by %s to a URL of the scheme %s: %w", sub.Protocol, scheme, errForbidden)
	}
	r.Header.Set("Content-Type", "text/plain; charset=UTF-8")
	r.Header.Set("User-Agent", agent)
	r.Header.Set("X-Amz-Sns-Message-Type", e.Type)
	r.Header.Set("X-Amz-Sns-Message-Id", e.MessageID)
	r.Header.Set("X-Amz-Sns-Topic-Arn", e.TopicARN)
	if e.Type != topic.SubscriptionConfirmation {
		r.Header.Set("X-Amz-Sns-Subscription-Arn", sub.ARN())
	}
	if raw {
		r.Header.Set("X-Amz-Sns-Rawdelivery", "true")
	}
	answer, err := w.client.Do(r)
	if err != nil {
		return plain(err)
	}
	defer answer.Body.Close()
	// After a short answer, which is read, the connection can be used again. A longer answer ends
	// it.
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	switch {
	case answer.StatusCode >= 300 && answer.StatusCode < 400:
		return fmt.Errorf("%s: %w", answer.Status, errRedirect)
	case answer.StatusCode < 200 || answer.StatusCode > 299:
		return fmt.Errorf("the endpoint answered %s", limited(answer.Status, 100))
	}
	return nil
}

// plain removes the URL from an error, because a URL may hold a password.
func plain(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
