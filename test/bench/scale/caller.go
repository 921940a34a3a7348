package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/identity/home"
)

// caller calls the API as an SDK does, but does not decode the answers. Decoding takes the client's
// time, not Howdah's.
type caller struct {
	home *home.Home
	key  sigv4.Credentials
	http *http.Client
}

func newCaller(h *home.Home) (*caller, error) {
	credentials, err := h.Credentials()
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(h.CAFile())
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &caller{
		home: h, key: sigv4.Credentials{AccessKeyID: credentials[0].AccessKey, SecretAccessKey: credentials[0].Secret},
		http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}, MaxIdleConnsPerHost: 64,
		}},
	}, nil
}

// call returns the text of an answer, and how long it took.
func (c *caller) call(ctx context.Context, action string, in any) (string, time.Duration, error) {
	body := []byte(wire.EncodeForm(action, rds.Service.Version, in).Encode())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+c.home.Listen+"/", bytes.NewReader(body))
	if err != nil {
		return "", 0, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	sigv4.Sign(request, body, c.key, c.home.Region, "rds", time.Now())
	began := time.Now()
	answer, err := c.http.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	took := time.Since(began)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", action, element(string(text), "Code"), element(string(text), "Message"))
	}
	return string(text), took, err
}

// element returns the text of the first element with a name.
func element(text, name string) string {
	_, rest, _ := strings.Cut(text, "<"+name+">")
	value, _, _ := strings.Cut(rest, "</"+name+">")
	return value
}
