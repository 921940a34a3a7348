package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	admin "howdah/internal/admin/server"
	"howdah/internal/aws/audit"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/control/plan"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

// marked is part of every password that these tests use: it must never be seen in
// the state or in the log.
const marked = "never-to-be-kept"

const password = "first." + marked

// testRegion is where scenarios play.
const testRegion = "us-east-1"

// world is the real server on an embedded etcd. What agents, Patroni and reconcile
// would write is written by the test.
type world struct {
	*testing.T
	server *Server
	admin  *admin.Server
	http   *httptest.Server
	log    *lockedBuffer

	mu      sync.Mutex
	shift   time.Duration // of the clock, unless it was set
	clock   time.Time     // guarded by mu; zero: the real time
	account int           // guarded by mu: of the newest user

	succeeded map[string]bool // guarded by mu: actions
}

func (w *world) answered(action string, status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if status == http.StatusOK {
		w.succeeded[action] = true
	}
}

// lockedBuffer may be written to and read at the same time.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// newWorld has a host in each of the zones a, b and c. When it ends it makes sure
// that no password was kept or told.
func newWorld(t *testing.T) *world {
	t.Helper()
	client := startEtcd(t)
	h, err := home.Ensure(filepath.Join(t.TempDir(), "home"), home.Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, log: &lockedBuffer{}, succeeded: map[string]bool{}}
	log := slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cache := state.NewCache(client, log, state.Root, patroni.Namespace)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { cache.Run(ctx) })
	t.Cleanup(func() { cancel(); done.Wait() })
	calls := audit.Open(h.AuditDir(), log)
	t.Cleanup(calls.Close)
	w.server, err = New(Config{
		Home: h, Store: &state.Store{Client: client}, Cache: cache, Policy: plan.Policy{Overcommit: true},
		Pool: "127.77.0.0/21", Log: log, Audit: calls,
		Logs: hostLogs{t.TempDir()}, Newest: newest(client),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.server.now = w.now
	w.admin = admin.New(admin.Config{
		Home: h, State: w.server.client, Front: w.server.front, Looks: w.server.looks, Records: w.server.Records(), Authorities: w.server.rds.Authorities,
		NoBackup: func() string { return "" }, NoRepository: func() string { return "" }, Away: func() map[string]string { return nil }, Version: "test", Log: log,
	})
	for _, zone := range []string{"a", "b", "c"} {
		w.host(zone)
	}
	w.catalogue()
	w.http = httptest.NewServer(w.server)
	t.Cleanup(w.http.Close)
	t.Cleanup(w.checkSecrecy)
	return w
}

func newest(client *clientv3.Client) func(context.Context) (int64, error) {
	return func(ctx context.Context) (int64, error) {
		answer, err := client.Get(ctx, "/")
		if err != nil {
			return 0, err
		}
		return answer.Header.Revision, nil
	}
}

func startEtcd(t *testing.T) *clientv3.Client {
	t.Helper()
	ca, err := certs.New("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(certs.Subject{CommonName: "s1", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := pair.Write(dir); err != nil {
		t.Fatal(err)
	}
	m, err := etcd.Start(t.Context(), etcd.Config{
		Name: "s1", Dir: t.TempDir(), CertDir: dir, ClientAddr: testkit.FreeAddr(t), PeerAddr: testkit.FreeAddr(t),
		Tick: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m.Client
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.clock.IsZero() {
		return time.Now().Add(w.shift)
	}
	return w.clock
}

// toAfternoon is how far it is to three o'clock of this day: no maintenance window is
// then that was not asked for.
func toAfternoon() time.Duration {
	return time.Until(time.Now().UTC().Truncate(24 * time.Hour).Add(15 * time.Hour))
}

// at sets the clock of the server and of its users.
func (w *world) at(t time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = t
}

// checkSecrecy looks for passwords in everything that is kept or told.
func (w *world) checkSecrecy() {
	ctx, cancel := context.WithTimeout(context.Background(), patience.For(10*time.Second))
	defer cancel()
	all, err := w.server.Store.Client.Get(ctx, "", clientv3.WithPrefix())
	if err != nil {
		w.Error(err)
		return
	}
	for _, kv := range all.Kvs {
		if strings.Contains(string(kv.Value)+string(kv.Key), marked) {
			w.Errorf("a password is kept in %s", kv.Key)
		}
	}
	if strings.Contains(w.log.String(), marked) {
		w.Error("a password is in the log")
	}
	err = audit.Read(w.server.Home.AuditDir(), time.Time{}, func(r audit.Record) error {
		if strings.Contains(fmt.Sprint(r), marked) {
			w.Errorf("a password is in the audit log: %+v", r)
		}
		return nil
	})
	if err != nil {
		w.Error(err)
	}
}

// put writes what someone else would write, and waits until the server sees it.
func (w *world) put(ops ...state.Op) {
	w.Helper()
	if err := w.server.client.Commit(w.Context(), ops...); err != nil {
		w.Fatal(err)
	}
}

// host makes a zone's only host, or brings it back to life.
func (w *world) host(zone string) {
	w.Helper()
	h := member.Host{Name: "host-" + zone, Zone: zone, Address: "127.0.0.1", CPUs: 2, Memory: 8 << 30, Majors: map[int]string{15: "15.18"}, Listen: agentOf("host-" + zone)}
	w.put(state.Put(state.Host(h.Name), h), state.Put(state.Live(h.Name), member.Liveness{Alive: true, Since: w.now()}))
}

// lose makes a host count as lost.
func (w *world) lose(zone string) {
	w.Helper()
	w.put(state.Put(state.Live("host-"+zone), member.Liveness{Since: w.now()}))
}

// user is a caller with an account of its own: users do not see each other's
// resources.
type user struct {
	*world
	*testing.T
	account string
	key     string
	secret  string
	region  string
}

func (w *world) user(t *testing.T) *user {
	t.Helper()
	w.mu.Lock()
	w.account++
	u := &user{world: w, T: t, account: fmt.Sprintf("%012d", w.account), key: fmt.Sprintf("KEY%d", w.account), secret: "secret", region: testRegion}
	w.mu.Unlock()
	c, err := home.ParseCredential(u.key + ":secret:" + u.account)
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := home.Ensure(w.server.Home.Dir, home.Options{Credential: &c}); err != nil {
		t.Fatal(err)
	}
	return u
}

func (u *user) scope() spec.Scope { return spec.Scope{Account: u.account, Region: u.region} }

// send posts a form, signed, and answers status and body.
func (u *user) send(form, service string, change func(*http.Request)) (int, []byte) {
	u.Helper()
	body := []byte(form)
	r, err := http.NewRequestWithContext(u.Context(), http.MethodPost, u.http.URL+"/", bytes.NewReader(body))
	if err != nil {
		u.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	sigv4.Sign(r, body, sigv4.Credentials{AccessKeyID: u.key, SecretAccessKey: u.secret}, u.region, service, u.now())
	if change != nil {
		change(r)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		u.Fatal(err)
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(answer.Body); err != nil {
		u.Fatal(err)
	}
	return answer.StatusCode, text.Bytes()
}

// patroniSync is the value of Patroni's sync key.
func patroniSync(leader string, standbys []string) json.RawMessage {
	text, err := json.Marshal(map[string]any{"leader": leader, "sync_standby": strings.Join(standbys, ","), "quorum": 0})
	if err != nil {
		panic(err)
	}
	return text
}

// routesOf are what reconcile writes for the custom endpoints of a cluster.
func routesOf(w *world, l *database.Sight, c spec.Cluster) []state.Op {
	var ops []state.Op
	for _, e := range l.EndpointsOf(c.ResourceID) {
		r := route.Route{ID: e.Value.ResourceID, Database: c.ResourceID, Kind: route.Seats}
		r.Seats, r.ReadersOnly = e.Value.Seats(l.InstancesOf(c.ResourceID))
		ops = append(ops, state.Put(state.Route(r.ID), r))
	}
	return ops
}

// unhost takes a zone's host out of the home.
func (w *world) unhost(zone string) {
	w.Helper()
	w.put(state.Delete(state.Host("host-"+zone)), state.Delete(state.Live("host-"+zone)))
}

func mustPool(t *testing.T, cidr string) netip.Prefix {
	t.Helper()
	pool, err := netip.ParsePrefix(cidr)
	if err != nil {
		t.Fatal(err)
	}
	return pool
}
