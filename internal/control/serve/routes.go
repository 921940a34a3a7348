package serve

import (
	"net/http"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/control/notify"
	"howdah/internal/host/hostapi"
)

// These paths serve the certificates of the home's authorities: one is our own, and the other is
// that of RDS's bundle on its download site.
const (
	caPath     = "/howdah/ca.pem"
	bundlePath = "/global/global-bundle.pem"
)

// routes sends hosts' calls and those of the admin API to handlers of their own, and everything
// else to the API. The authorities' certificates are for everyone, because clients need them before
// they can check anything else.
func routes(api, admins, hosts, signers http.Handler, trusted func() []byte) http.Handler {
	bundle := serveBundle(trusted)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == caPath || r.URL.Path == bundlePath:
			bundle.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, hostapi.Path):
			hosts.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, admin.Path):
			admins.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, notify.CertPath):
			signers.ServeHTTP(w, r)
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// serveBundle answers GET and HEAD with the certificates, in PEM.
func serveBundle(trusted func() []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "use the method GET", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/x-pem-file")
		w.Write(trusted())
	})
}
