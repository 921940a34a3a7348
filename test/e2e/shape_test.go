package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"howdah/internal/aws/wire/shape"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
)

// checked leads the journeys through a proxy that compares every answer of the API with the
// service's model. SDKs silently drop what they do not know, so nobody else would notice a wrong
// name. The proxy has a certificate of the home's authority, so clients verify it as they verify
// Howdah's own.
func (h *howdah) checked(t *testing.T) {
	t.Helper()
	to, err := url.Parse(h.env["AWS_ENDPOINT_URL"])
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority(t, h.env)}}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			// The host is part of what is signed.
			r.Out.Host = r.In.Host
		},
		Transport:      transport,
		ModifyResponse: func(r *http.Response) error { return checkAnswer(t, r) },
	}
	server := httptest.NewUnstartedServer(withAction(proxy))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{h.certificate(t)}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
	})
	h.env["AWS_ENDPOINT_URL"] = server.URL
}

// certificate returns a certificate for loopback, by the home's authority.
func (h *howdah) certificate(t *testing.T) tls.Certificate {
	t.Helper()
	opened, err := home.Open(h.home)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := opened.CA()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(certs.Subject{CommonName: "howdah-checked", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// actionKey is the key of the action in a request's context.
type actionKey struct{}

// withAction reads which action a request asks for. It reads "" from what is no call of the API.
func withAction(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		action := ""
		if form, err := url.ParseQuery(string(body)); err == nil {
			action = form.Get("Action")
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), actionKey{}, action)))
	})
}

// checkAnswer fails the test if an answer has a fault. It lets the answer pass.
func checkAnswer(t *testing.T, r *http.Response) error {
	action, ok := r.Request.Context().Value(actionKey{}).(string)
	if !ok || action == "" {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err := fault(action, r.StatusCode, body); err != nil {
		t.Errorf("%s answers with %s: %v\n%s", action, r.Status, err, body)
	}
	return nil
}

func fault(action string, status int, body []byte) error {
	switch status {
	case http.StatusOK:
		return shape.Check(action, body)
	case http.StatusInternalServerError:
		return errors.New("nothing that a client does may be an internal error")
	}
	return shape.CheckError(body)
}

// The check must be able to fail.
func TestFaultsOfAnswersAreFound(t *testing.T) {
	const good = `<CreateDBParameterGroupResponse xmlns="http://rds.amazonaws.com/doc/2014-10-31/"><CreateDBParameterGroupResult><DBParameterGroup>` +
		`<DBParameterGroupName>a</DBParameterGroupName></DBParameterGroup></CreateDBParameterGroupResult>` +
		`<ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></CreateDBParameterGroupResponse>`
	for _, tt := range []struct {
		name, body string
		status     int
		good       bool
	}{
		{"an answer", good, http.StatusOK, true},
		{"a member that the model does not have", strings.ReplaceAll(good, "DBParameterGroupName", "GroupName"), http.StatusOK, false},
		{"an answer in place of an error", good, http.StatusBadRequest, false},
		{"an internal error", good, http.StatusInternalServerError, false},
	} {
		if err := fault("CreateDBParameterGroup", tt.status, []byte(tt.body)); (err == nil) != tt.good {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
