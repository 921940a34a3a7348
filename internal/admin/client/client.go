// Package client calls a Howdah over its API, as any client does: RDS actions, and the verbs of
// package admin, signed with SigV4. It knows only the API. It finds the API through a home on this
// machine, or through the environment.
//
// Invariants: every call has a deadline. A call that changes something is sent again only if it
// cannot have arrived. No secret appears in an error.
package client

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
	"net/url"
	"strings"
	"time"

	"howdah/internal/aws/wire/sigv4"
)

const (
	// callTimeout bounds one attempt. The server gives up a little earlier.
	callTimeout = 20 * time.Second
	// dialTimeout bounds the connection of one attempt.
	dialTimeout = 5 * time.Second
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 64 << 20
)

// DefaultPatience is what a Config.Patience of 0 means.
const DefaultPatience = 2 * time.Second

// ErrUnreachable says that nobody answers at the endpoint.
var ErrUnreachable = errors.New("the API does not answer")

// Config is what a client needs to know.
type Config struct {
	Endpoint    string // URL of the API
	Region      string
	Credentials sigv4.Credentials
	// CA is the authority of the endpoint, as PEM. If it is empty, the system's authorities count.
	CA []byte
	// Patience is how long a call is tried again, if it may be sent again.
	Patience time.Duration
	// Source says where all this comes from, for errors: "home /var/lib/howdah".
	Source string
}

// Client is safe for concurrent use.
type Client struct {
	Config
	http *http.Client
	now  func() time.Time
}

// New returns a client. It makes no connection.
func New(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("%q of %s is no URL of an API", cfg.Endpoint, cfg.Source)
	}
	roots, err := authorities(cfg.CA)
	if err != nil {
		return nil, err
	}
	if cfg.Patience == 0 {
		cfg.Patience = DefaultPatience
	}
	cfg.Endpoint = strings.TrimRight(cfg.Endpoint, "/")
	return &Client{Config: cfg, now: time.Now, http: &http.Client{Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     30 * time.Second,
	}}}, nil
}

func authorities(pem []byte) (*x509.CertPool, error) {
	if len(pem) == 0 {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("the CA bundle holds no certificate")
	}
	return pool, nil
}

// request is one call, ready to be signed and sent any number of times.
type request struct {
	name    string // of the action or verb, for errors
	path    string
	service string
	media   string
	body    []byte
	// again says that the call may be sent again although it may have arrived.
	again   bool
	timeout time.Duration // of one attempt, if longer than usual
}

// answer is what came back.
type answer struct {
	status int
	body   []byte
}

func (a answer) transient() bool {
	return a.status == http.StatusServiceUnavailable || a.status == http.StatusBadGateway || a.status == http.StatusGatewayTimeout
}

// send sends a call until there is an answer. If it is safe, it sends the call again, until
// patience ends.
func (c *Client) send(ctx context.Context, r request) (answer, error) {
	deadline := c.now().Add(c.Patience)
	pause := 50 * time.Millisecond
	for {
		a, err := c.once(ctx, r)
		again := err != nil && (r.again || unsent(err)) || err == nil && r.again && a.transient()
		if !again || ctx.Err() != nil || c.now().Add(pause).After(deadline) {
			return a, c.explain(r, err)
		}
		select {
		case <-ctx.Done():
			return a, c.explain(r, ctx.Err())
		case <-time.After(pause):
		}
		pause = min(2*pause, time.Second)
	}
}

// unsent reports whether no connection came about, so that nothing can have arrived.
func unsent(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial"
}

func (c *Client) once(ctx context.Context, r request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, max(r.timeout, callTimeout))
	defer cancel()
	got, err := c.do(ctx, r)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(io.LimitReader(got.Body, maxAnswer))
	return answer{got.StatusCode, body}, err
}

// do signs a call and sends it. The caller closes the body of the answer.
func (c *Client) do(ctx context.Context, r request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Endpoint+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", r.media)
	sigv4.Sign(req, r.body, c.Credentials, c.Region, r.service, c.now())
	return c.http.Do(req)
}

// explain returns a transport's error as one short line.
func (c *Client) explain(r request, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", r.name, context.Canceled)
	}
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return fmt.Errorf("%s: the certificate of %s is of an authority that is not known here (%s): set AWS_CA_BUNDLE", r.name, c.Endpoint, c.Source)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return fmt.Errorf("%s: %w at %s (%s): %w", r.name, ErrUnreachable, c.Endpoint, c.Source, err)
}
