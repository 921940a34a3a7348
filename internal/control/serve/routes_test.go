package serve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"howdah/internal/admin"
	"howdah/internal/host/hostapi"
	"howdah/internal/identity/certs"
)

func named(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, name) })
}

func TestRoutes(t *testing.T) {
	ca, err := certs.New("test")
	if err != nil {
		t.Fatal(err)
	}
	handler := routes(named("api"), named("admin"), named("hosts"), named("signers"), func() []byte { return ca.CertPEM })
	cases := []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/howdah/ca.pem", 200, string(ca.CertPEM)},
		{"GET", "/global/global-bundle.pem", 200, string(ca.CertPEM)},
		{"POST", "/howdah/ca.pem", 405, "use the method GET\n"},
		{"POST", hostapi.Path + "heartbeat", 200, "hosts"},
		{"GET", admin.Path + "status", 200, "admin"},
		{"GET", "/SimpleNotificationService-abc.pem", 200, "signers"},
		{"POST", "/", 200, "api"},
		{"GET", "/howdah/ca.pem/", 200, "api"},
		{"GET", "/global/", 200, "api"},
	}
	for _, c := range cases {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(c.method, c.path, nil))
		if answer.Code != c.status || answer.Body.String() != c.want {
			t.Errorf("%s %s: %d %q, want %d %q", c.method, c.path, answer.Code, answer.Body, c.status, c.want)
		}
	}
}

// TestBundleHasNoKey checks the one answer that everyone gets for what must never leave the control
// plane.
func TestBundleHasNoKey(t *testing.T) {
	ca, err := certs.New("test")
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	routes(nil, nil, nil, nil, func() []byte { return ca.CertPEM }).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, caPath, nil))
	if body := answer.Body.String(); strings.Contains(body, "KEY") || strings.Count(body, "BEGIN CERTIFICATE") != 1 {
		t.Errorf("the bundle is %s", body)
	}
}
