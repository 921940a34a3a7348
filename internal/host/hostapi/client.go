package hostapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	keys "howdah/internal/model/kind"
	"howdah/internal/state/format"
)

// ErrRefused says that the control plane answered with a refusal, which trying
// again will not change.
var ErrRefused = errors.New("refused by the control plane")

// Client calls one control plane.
type Client struct {
	URL  string // https://host:port
	http *http.Client
}

// Credentials are what a client shows: a certs.Pair, or a certs.Identity if the client may outlive
// a pair.
type Credentials interface {
	ClientTLS() (*tls.Config, error)
}

// NewClient returns a client that shows these credentials.
func NewClient(url string, credentials Credentials) (*Client, error) {
	config, err := credentials.ClientTLS()
	if err != nil {
		return nil, err
	}
	return newClient(url, config), nil
}

func newClient(url string, config *tls.Config) *Client {
	return &Client{URL: url, http: &http.Client{Transport: &http.Transport{
		TLSClientConfig: config, MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second,
	}}}
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Join makes the first call of a host. The host knows only the token. The token names the authority
// that the answer must come from.
func Join(ctx context.Context, url, token string, kind Kind, name string) (JoinAnswer, certs.Pair, error) {
	client, err := pinned(url, token)
	if err != nil {
		return JoinAnswer{}, certs.Pair{}, err
	}
	defer client.Close()
	csr, key, err := certs.NewRequest(keys.EC256)
	if err != nil {
		return JoinAnswer{}, certs.Pair{}, err
	}
	var answer JoinAnswer
	request := JoinRequest{Token: token, Kind: kind, Name: name, CSR: csr}
	if err := client.call(ctx, "join", request, &answer); err != nil {
		return JoinAnswer{}, certs.Pair{}, err
	}
	return answer, certs.Pair{CertPEM: answer.Certificate, KeyPEM: key, CAPEM: answer.CA}, nil
}

// JoinServer makes the first call of a further control plane.
func JoinServer(ctx context.Context, url, token, name, peerAddr string) (ServerJoinAnswer, error) {
	client, err := pinned(url, token)
	if err != nil {
		return ServerJoinAnswer{}, err
	}
	defer client.Close()
	var answer ServerJoinAnswer
	request := ServerJoinRequest{Token: token, Name: name, PeerAddr: peerAddr, Reads: format.Newest}
	return answer, client.call(ctx, "join-server", request, &answer)
}

func pinned(url, token string) (*Client, error) {
	fingerprint, err := home.TokenFingerprint(token)
	if err != nil {
		return nil, err
	}
	return newClient(url, certs.PinnedTLS(fingerprint)), nil
}

// Certificate gets a certificate for the caller ("") or for one of its members, with a key of a
// kind. The pair names ca as the authority of its peers, and with ForClient also that of members,
// after it.
func (c *Client) Certificate(ctx context.Context, member string, use Use, key string, ca []byte) (certs.Pair, error) {
	csr, private, err := certs.NewRequest(key)
	if err != nil {
		return certs.Pair{}, err
	}
	var answer CertificateAnswer
	if err := c.call(ctx, "certificate", CertificateRequest{Member: member, For: use, CSR: csr}, &answer); err != nil {
		return certs.Pair{}, err
	}
	if use == ForClient && len(answer.Members) == 0 {
		return certs.Pair{}, fmt.Errorf("%w: this control plane gives members no keys of their own", ErrRefused)
	}
	return certs.Pair{CertPEM: answer.Certificate, KeyPEM: private, CAPEM: slices.Concat(ca, answer.Members)}, nil
}

// Heartbeat says that the caller's host is alive. It names the process of the host's agent as its
// reports do (member.Report).
func (c *Client) Heartbeat(ctx context.Context, agent string) error {
	return c.call(ctx, "heartbeat", heartbeat{Agent: agent}, nil)
}

func (c *Client) call(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("call %s: %w", path, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+Path+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("call %s: %w", path, err)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("call %s: %w", path, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("call %s: %w", path, err)
	}
	if answer.StatusCode/100 != 2 {
		return refusal(path, answer.StatusCode, text)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("call %s: %w", path, err)
	}
	return nil
}

func refusal(path string, status int, text []byte) error {
	var f failure
	if json.Unmarshal(text, &f) != nil || f.Error == "" {
		f.Error = http.StatusText(status)
	}
	if status/100 == 4 {
		return fmt.Errorf("call %s: %s: %w", path, f.Error, ErrRefused)
	}
	return fmt.Errorf("call %s: %s", path, f.Error)
}
