package serve

import (
	"net/http"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/hostapi"
)

// Where the certificate of the home's authority can be had: one path of our own,
// and the one that RDS's bundle has on its download site.
const (
	caPath     = "/howdah/ca.pem"
	bundlePath = "/global/global-bundle.pem"
)

// routes sends hosts' calls and those of the admin API to handlers of their own,
// and everything else to the API. The authority's certificate is for everyone:
// clients need it before they can check anything else.
func routes(api, admins, hosts http.Handler, ca []byte) http.Handler {
	bundle := serveBundle(ca)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == caPath || r.URL.Path == bundlePath:
			bundle.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, hostapi.Path):
			hosts.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, admin.Path):
			admins.ServeHTTP(w, r)
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// serveBundle answers the certificate, in PEM, to GET and HEAD.
func serveBundle(pem []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "use the method GET", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/x-pem-file")
		w.Write(pem)
	})
}
