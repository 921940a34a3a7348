package keys

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"howdah/internal/identity/certs"
)

// A member is moved to the gates before etcd only when one of them answers it: their port is
// new, and may be closed on the way.
func TestAMemberIsMovedOnlyToAGateThatAnswers(t *testing.T) {
	ca, err := certs.New("home")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(certs.Subject{CommonName: "member:db-A.m1", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	status := http.StatusOK
	gate := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	if gate.TLS, err = pair.ServerTLS(); err != nil {
		t.Fatal(err)
	}
	gate.StartTLS()
	t.Cleanup(gate.Close)
	closed := httptest.NewUnstartedServer(nil)
	nowhere := closed.Listener.Addr().String()
	closed.Listener.Close()
	open := gate.Listener.Addr().String()
	for _, c := range []struct {
		hosts  []string
		status int
		want   bool
	}{
		{[]string{open}, 200, true},
		{[]string{nowhere, open}, 200, true},
		{[]string{nowhere}, 200, false},
		{[]string{open}, 403, false},
		{nil, 200, false},
	} {
		status = c.status
		if err := reachGate(t.Context(), pair, c.hosts); (err == nil) != c.want {
			t.Errorf("%v, %d: %v", c.hosts, c.status, err)
		}
	}
}
