package config

import (
	"strings"
	"testing"
)

// asksAsSomebody is a program with the modules of the real Patroni: its REST API is asked by
// holders of certificates. It prints who is let in.
const asksAsSomebody = `
import io
from types import SimpleNamespace
from patroni import api

for name in ('agent:a', 'edge:a', 'howdah-serve', 'member:db-A.m1', 'member:db-A.m12', 'member:db-B.m1', 'member:db-AB.m1', 'member:db-A', None):
    h = api.RestApiHandler.__new__(api.RestApiHandler)
    h.server = SimpleNamespace(server_header='', http_extra_headers={}, patroni=SimpleNamespace(config={'scope': 'db-A'}))
    h.connection = SimpleNamespace(getpeercert=lambda: {'subject': ((('organizationName', 'Howdah'),), (('commonName', name),))} if name else None)
    h.raw_requestline, h.rfile, h.wfile = b'GET /patroni HTTP/1.0\r\n', io.BytesIO(b'\r\n'), io.BytesIO()
    h.client_address, h.log_message = ('127.0.0.1', 1), lambda *a: None
    h.requestline, h.request_version, h.command = '', 'HTTP/1.0', ''
    print(name, 'in' if h.parse_request() else h.wfile.getvalue().split(b'\r\n')[0].decode())
`

// Members of other databases ask Patroni for nothing: it would restart and end its PostgreSQL
// for whoever asks.
func TestPatroniAnswersNoOtherDatabasesMembers(t *testing.T) {
	out, err := inPatroni(t, asksAsSomebody)
	want := strings.TrimPrefix(`
agent:a in
edge:a in
howdah-serve in
member:db-A.m1 in
member:db-A.m12 in
member:db-B.m1 HTTP/1.0 403 Forbidden
member:db-AB.m1 HTTP/1.0 403 Forbidden
member:db-A HTTP/1.0 403 Forbidden
None in
`, "\n")
	if err != nil || out != want {
		t.Errorf("%v; got\n%s\nwant\n%s", err, out, want)
	}
}
