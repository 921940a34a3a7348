package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

func newIdentity(t *testing.T, ca *CA, subject Subject) *Identity {
	t.Helper()
	pair, err := ca.Issue(subject)
	if err != nil {
		t.Fatal(err)
	}
	i, err := NewIdentity(pair)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func renewalBy(ca *CA, subject Subject) Renewal {
	return Renewal{
		Subject: subject, Log: slog.New(slog.DiscardHandler),
		Get: func(context.Context) (Pair, error) { return ca.Issue(subject) },
	}
}

// Years pass: the pair is replaced at two thirds of each life, and never expires.
func TestKeepRenewsAtTwoThirdsOfTheLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, subject := newCATest(t), loopback("x")
		i := newIdentity(t, ca, subject)
		r, renewed := renewalBy(ca, subject), 0
		r.Get = func(context.Context) (Pair, error) {
			left := time.Until(i.notAfter())
			if left < leafLifetime/4 || left > leafLifetime*2/5 {
				t.Errorf("renewed with %s left", left)
			}
			renewed++
			return ca.Issue(subject)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*leafLifetime)
		defer cancel()
		if err := i.Keep(ctx, r); err != nil {
			t.Fatal(err)
		}
		if renewed != 4 {
			t.Errorf("renewed %d times in three years, want 4", renewed)
		}
	})
}

// The control plane is gone for a third of the last third. Then it signs for somebody else. Neither
// leads to an identity that cannot be used.
func TestKeepTriesAgainUntilItHasAUsablePair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, subject := newCATest(t), loopback("x")
		i := newIdentity(t, ca, subject)
		r, tries := renewalBy(ca, subject), 0
		r.Get = func(context.Context) (Pair, error) {
			tries++
			switch {
			case tries <= 30:
				return Pair{}, errors.New("no control plane")
			case tries == 31:
				return ca.Issue(loopback("y"))
			}
			return ca.Issue(subject)
		}
		ctx, cancel := context.WithTimeout(t.Context(), leafLifetime)
		defer cancel()
		i.Keep(ctx, r)
		if tries != 32 || !i.Pair().Fresh(subject, time.Now()) {
			t.Errorf("after %d tries the pair is fresh: %v", tries, i.Pair().Fresh(subject, time.Now()))
		}
	})
}

func TestReplaceRefusesAnotherAuthority(t *testing.T) {
	subject := loopback("x")
	i := newIdentity(t, newCATest(t), subject)
	before := string(i.Pair().CertPEM)
	stranger, err := newCATest(t).Issue(subject)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Replace(stranger); !errors.Is(err, ErrNotOurs) {
		t.Errorf("another authority: %v, want ErrNotOurs", err)
	}
	half, err := newCATest(t).Issue(subject)
	if err != nil {
		t.Fatal(err)
	}
	half.KeyPEM = stranger.KeyPEM
	if err := i.Replace(half); err == nil {
		t.Error("took a key that does not fit")
	}
	if string(i.Pair().CertPEM) != before {
		t.Error("a refused pair is held")
	}
}

// Both sides of a connection live through three certificates of two seconds each, by patience.For.
// No call fails, and the first connection is still the same at the end.
func TestNothingIsDroppedByARenewal(t *testing.T) {
	ca := newCATest(t)
	ca.Lifetime = patience.For(2 * time.Second)
	serverName, clientName := loopback("server"), Subject{CommonName: "agent:a"}
	server, client := newIdentity(t, ca, serverName), newIdentity(t, ca, clientName)
	for _, k := range []struct {
		i *Identity
		r Renewal
	}{{server, renewalBy(ca, serverName)}, {client, renewalBy(ca, clientName)}} {
		go k.i.Keep(t.Context(), k.r)
	}
	url, config := startIdentity(t, server), clientConfig(t, client)
	kept := &http.Client{Transport: &http.Transport{TLSClientConfig: config.Clone()}}
	t.Cleanup(kept.CloseIdleConnections)
	shown := map[string]bool{}
	var first string
	testkit.Eventually(t, 20*time.Second, func() error {
		response, err := kept.Get(url)
		if err != nil {
			t.Fatalf("the connection that is kept: %v", err)
		}
		defer response.Body.Close()
		from, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(from)
		}
		if string(from) != first {
			t.Fatalf("connection of %s became one of %s", first, from)
		}
		serial, err := fresh(config, url)
		if err != nil {
			t.Fatalf("a new connection: %v", err)
		}
		shown[serial] = true
		if len(shown) < 4 {
			return errors.New("still few certificates")
		}
		return nil
	})
}

// startIdentity serves the caller's address back. The caller must have a certificate.
func startIdentity(t *testing.T, i *Identity) string {
	t.Helper()
	config, err := i.ServerTLS()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if Caller(r.TLS) != "agent:a" {
			w.WriteHeader(http.StatusForbidden)
		}
		io.WriteString(w, r.RemoteAddr)
	}))
	// StartTLS of httptest would add a certificate of its own.
	server.Listener = tls.NewListener(server.Listener, config)
	server.Start()
	t.Cleanup(server.Close)
	return "https://" + server.Listener.Addr().String()
}

func clientConfig(t *testing.T, i *Identity) *tls.Config {
	t.Helper()
	config, err := i.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// fresh makes a connection without a session to resume, and returns the serial number of the
// server's certificate.
func fresh(config *tls.Config, url string) (string, error) {
	config = config.Clone()
	config.ClientSessionCache = nil
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: patience.For(5 * time.Second)}
	defer client.CloseIdleConnections()
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", errors.New(response.Status)
	}
	return response.TLS.PeerCertificates[0].SerialNumber.String(), nil
}
