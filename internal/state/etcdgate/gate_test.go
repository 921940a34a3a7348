package etcdgate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/state/etcd"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
)

// world is a real etcd with gates before it. A header says who calls.
type world struct {
	*testing.T
	home  *hometest.Home
	gates []*httptest.Server
	// clients are the gates' clients of etcd.
	clients []*clientv3.Client
}

const callerHeader = "X-Member"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, home: hometest.New(t)}
	pair := w.home.Issue(t, "serve:test")
	tls, err := pair.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		client, err := etcd.Dial(t.Context(), w.home.Etcd, pair)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		w.clients = append(w.clients, client)
		gate := New(Config{
			Etcd: w.home.Etcd[0], HTTP: &http.Client{Transport: &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true}},
			Member: func(r *http.Request) string { return r.Header.Get(callerHeader) },
			Gates:  func() []string { return []string{"https://one:1", "https://two:2"} },
			Client: client, Log: slog.New(slog.DiscardHandler),
		})
		server := httptest.NewServer(gate)
		t.Cleanup(server.Close)
		w.gates = append(w.gates, server)
	}
	return w
}

func (w *world) send(ctx context.Context, gate int, who, method, path, body string) *http.Response {
	w.Helper()
	r, err := http.NewRequestWithContext(ctx, method, w.gates[gate].URL+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set(callerHeader, who)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatalf("%s: %v", path, err)
	}
	w.Cleanup(func() { answer.Body.Close() })
	return answer
}

// ask returns the status and the whole body.
func (w *world) ask(gate int, who, path, body string) (int, map[string]any) {
	w.Helper()
	answer := w.send(w.Context(), gate, who, http.MethodPost, path, body)
	var text bytes.Buffer
	var values map[string]any
	if _, err := text.ReadFrom(answer.Body); err != nil {
		w.Fatal(err)
	}
	if err := json.Unmarshal(bytes.TrimSpace(text.Bytes()), &values); err != nil {
		w.Fatalf("%s %s: %v: %s", path, body, err, text.String())
	}
	return answer.StatusCode, values
}

func (w *world) works(who, path, body string) map[string]any {
	w.Helper()
	status, values := w.ask(0, who, path, body)
	if status != http.StatusOK {
		w.Fatalf("%s %s: %d %v", path, body, status, values)
	}
	return values
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func put(key, value, lease string) string {
	if lease != "" {
		lease = `,"lease":"` + lease + `"`
	}
	return fmt.Sprintf(`{"key":"%s","value":"%s"%s}`, b64(key), b64(value), lease)
}

func create(key, lease string) string {
	return fmt.Sprintf(`{"compare":[{"target":"CREATE","create_revision":"0","key":"%s"}],"success":[{"request_put":%s}]}`, b64(key), put(key, "v", lease))
}

func within(key, end string) string {
	return fmt.Sprintf(`{"key":"%s","range_end":"%s","serializable":false}`, b64(key), b64(end))
}

func TestAMemberWorksWithItsOwnKeys(t *testing.T) {
	w := newWorld(t)
	version := w.send(t.Context(), 0, "db-A.m1", http.MethodGet, "/version", "")
	if version.StatusCode != http.StatusOK {
		t.Errorf("version: %d", version.StatusCode)
	}
	lease := fmt.Sprint(w.works("db-A.m1", "/v3/lease/grant", `{"TTL":20}`)["ID"])
	if won := w.works("db-A.m1", "/v3/kv/txn", create("/service/db-A/leader", lease)); won["succeeded"] != true {
		t.Errorf("take the leader key: %v", won)
	}
	if lost := w.works("db-A.m1", "/v3/kv/txn", create("/service/db-A/leader", lease)); lost["succeeded"] == true {
		t.Errorf("take it twice: %v", lost)
	}
	w.works("db-A.m1", "/v3/kv/put", put("/service/db-A/members/m1", "{}", lease))
	if got := w.works("db-A.m1", "/v3/kv/range", within("/service/db-A/", "/service/db-A0")); fmt.Sprint(got["count"]) != "2" {
		t.Errorf("all keys: %v", got)
	}
	if alive := w.works("db-A.m1", "/v3/lease/keepalive", `{"ID":"`+lease+`"}`)["result"].(map[string]any); fmt.Sprint(alive["TTL"]) != "20" {
		t.Errorf("keep alive: %v", alive)
	}
	// A gate that was started anew learns by a lease's keys whose it is.
	if status, got := w.ask(1, "db-A.m1", "/v3/lease/keepalive", `{"ID":"`+lease+`"}`); status != http.StatusOK {
		t.Errorf("keep alive at another gate: %d %v", status, got)
	}
	// sitecustomize.py does this: it takes a leader key that is gone again in the same request.
	again := fmt.Sprintf(`{"compare":[{"target":"VALUE","value":"%s","key":"%s"}],"success":[],"failure":[{"request_txn":%s}]}`,
		b64("other"), b64("/service/db-A/leader"), create("/service/db-A/leader", lease))
	if got := w.works("db-A.m1", "/v3/kv/txn", again); got["responses"] == nil {
		t.Errorf("a transaction in another one: %v", got)
	}
	for _, key := range []string{"/howdah/passed/db-A", "/howdah/lead/db-A"} {
		w.works("db-A.m1", "/v3/kv/range", fmt.Sprintf(`{"key":"%s"}`, b64(key)))
	}
	w.works("db-A.m1", "/v3/kv/deleterange", fmt.Sprintf(`{"key":"%s"}`, b64("/service/db-A/members/m1")))
	list := w.works("db-A.m1", "/v3/cluster/member/list", `{}`)
	text, _ := json.Marshal(list["members"])
	if string(text) != `[{"clientURLs":["https://one:1"]},{"clientURLs":["https://two:2"]}]` || list["header"] == nil {
		t.Errorf("members: %v", list)
	}
}

func TestAWatchTellsOfItsOwnKeys(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	watch := fmt.Sprintf(`{"create_request":{"key":"%s","range_end":"%s","filters":[]}}`, b64("/service/db-A/"), b64("/service/db-A0"))
	answer := w.send(ctx, 0, "db-A.m1", http.MethodPost, "/v3/watch", watch)
	lines := bufio.NewScanner(answer.Body)
	if !lines.Scan() || !strings.Contains(lines.Text(), `"created":true`) {
		t.Fatalf("the watch begins with %s, %v", lines.Text(), lines.Err())
	}
	w.works("db-B.m1", "/v3/kv/put", put("/service/db-B/leader", "theirs", ""))
	w.works("db-A.m1", "/v3/kv/put", put("/service/db-A/leader", "mine", ""))
	if !lines.Scan() || !strings.Contains(lines.Text(), b64("mine")) || strings.Contains(lines.Text(), b64("theirs")) {
		t.Errorf("the watch tells %s, %v", lines.Text(), lines.Err())
	}
	if answer := w.send(ctx, 0, "db-B.m1", http.MethodPost, "/v3/watch", watch); answer.StatusCode != http.StatusForbidden {
		t.Errorf("a watch of another's keys: %d", answer.StatusCode)
	}
}

// With the key of one member nothing of another database is read, written, deleted, or kept alive.
func TestNothingOfAnotherDatabaseIsReached(t *testing.T) {
	w := newWorld(t)
	lease := fmt.Sprint(w.works("db-B.m1", "/v3/lease/grant", `{"TTL":20}`)["ID"])
	w.works("db-B.m1", "/v3/kv/txn", create("/service/db-B/leader", lease))
	idle := fmt.Sprint(w.works("db-B.m1", "/v3/lease/grant", `{"TTL":20}`)["ID"])
	for name, c := range map[string]struct {
		path, body string
		status     int
	}{
		"read a key":        {"/v3/kv/range", `{"key":"` + b64("/service/db-B/leader") + `"}`, 403},
		"read everything":   {"/v3/kv/range", within("\x00", "\x00"), 403},
		"read beyond":       {"/v3/kv/range", within("/service/db-A/", "/service/db-C"), 403},
		"read from its own": {"/v3/kv/range", within("/service/db-A/", "\x00"), 403},
		"read the state":    {"/v3/kv/range", within("/spec/", "/spec0"), 403},
		"write a key":       {"/v3/kv/put", put("/service/db-B/leader", "x", ""), 403},
		"delete a key":      {"/v3/kv/deleterange", `{"key":"` + b64("/service/db-B/leader") + `"}`, 403},
		"delete all":        {"/v3/kv/deleterange", `{"key":"AA==","range_end":"AA=="}`, 403},
		"another member's":  {"/v3/kv/put", put("/service/db-A/members/m2", "x", ""), 403},
		"a key of no use":   {"/v3/kv/put", put("/service/db-A/x", "x", ""), 403},
		"who served":        {"/v3/kv/put", put("/howdah/lead/db-A", "x", ""), 403},
		"who passed":        {"/v3/kv/range", `{"key":"` + b64("/howdah/passed/db-B") + `"}`, 403},
		"a nested txn":      {"/v3/kv/txn", `{"compare":[],"success":[{"request_txn":` + create("/service/db-B/sync", "") + `}]}`, 403},
		"too deep":          {"/v3/kv/txn", `{"compare":[],"success":[{"request_txn":{"compare":[],"success":[{"request_txn":{"compare":[],"success":[{"request_txn":{"compare":[],"success":[]}}]}}]}}]}`, 400},
		"a txn":             {"/v3/kv/txn", create("/service/db-B/sync", ""), 403},
		"a txn that asks":   {"/v3/kv/txn", `{"compare":[{"target":"CREATE","create_revision":"0","key":"` + b64("/service/db-B/leader") + `"}],"success":[]}`, 403},
		"a txn that fails":  {"/v3/kv/txn", `{"compare":[],"success":[],"failure":[{"request_range":{"key":"` + b64("/service/db-B/leader") + `"}}]}`, 403},
		"put under its":     {"/v3/kv/put", put("/service/db-A/leader", "x", lease), 404},
		"txn under its":     {"/v3/kv/txn", create("/service/db-A/leader", lease), 404},
		"revoke its lease":  {"/v3/lease/revoke", `{"ID":"` + lease + `"}`, 404},
		"look at its lease": {"/v3/kv/lease/timetolive", `{"ID":"` + lease + `","keys":true}`, 404},
		"all leases":        {"/v3/lease/leases", `{}`, 404},
		"compact":           {"/v3/kv/compaction", `{"revision":"1"}`, 404},
		"add a member":      {"/v3/cluster/member/add", `{"peerURLs":["https://x:1"]}`, 404},
		"a snapshot":        {"/v3/maintenance/snapshot", `{}`, 404},
		"users":             {"/v3/auth/user/add", `{"name":"x"}`, 404},
		"a path around":     {"/v3/kv/range/../put", put("/service/db-A/x", "x", ""), 404},
		"an older prefix":   {"/v3beta/kv/range", within("/service/db-A/", "/service/db-A0"), 404},
		"no request":        {"/v3/kv/range", `hello`, 400},
		"a long one":        {"/v3/kv/put", put("/service/db-A/x", strings.Repeat("x", mostBody), ""), 400},
	} {
		for gate := range w.gates {
			if status, got := w.ask(gate, "db-A.m1", c.path, c.body); status != c.status {
				t.Errorf("%s: %d %v", name, status, got)
			}
		}
	}
	// A lease of somebody else looks like one that has ended: Patroni asks for another.
	for name, id := range map[string]string{"its lease": lease, "a lease of no keys": idle, "a lease that never was": "77"} {
		for gate := range w.gates {
			status, got := w.ask(gate, "db-A.m1", "/v3/lease/keepalive", `{"ID":"`+id+`"}`)
			if result, _ := got["result"].(map[string]any); status != http.StatusOK || result["ID"] != id || result["TTL"] != nil {
				t.Errorf("%s: %d %v", name, status, got)
			}
		}
	}
	for _, who := range []string{"", "db-A", "db-A.", ".m1", "db-A/../db-B.m1", "/"} {
		if status, got := w.ask(0, who, "/v3/kv/range", `{"key":"`+b64("/service/db-A/x")+`"}`); status != http.StatusForbidden {
			t.Errorf("as %q: %d %v", who, status, got)
		}
	}
	if got := w.works("db-B.m1", "/v3/kv/range", `{"key":"`+b64("/service/db-B/leader")+`"}`); fmt.Sprint(got["count"]) != "1" {
		t.Errorf("it is gone: %v", got)
	}
	testkit.Eventually(t, time.Minute, func() error { // the gate is not worn out by it
		if status, got := w.ask(0, "db-B.m1", "/v3/lease/keepalive", `{"ID":"`+lease+`"}`); status != http.StatusOK {
			return fmt.Errorf("its own: %d %v", status, got)
		}
		return nil
	})
}
