package fault

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/api/rds"
	"howdah/internal/control/plan"
	"howdah/internal/host/hostapi"
	"howdah/internal/identity/certs"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/rig"
)

// Somebody has all keys of one database's member. They open that database, and nothing else of the
// home: neither etcd, nor another database's PostgreSQL or Patroni, nor the control plane.
func TestAMembersKeysOpenItsOwnDatabaseOnly(t *testing.T) {
	s := begin(t, nil)
	own, other := s.leader(s.given("orders", true)), s.leader(s.given("billing", false))
	thief := s.steal(own)
	control, gate := s.control()

	ownKeys, theirs := patroni.Namespace+own.Database+"/", patroni.Namespace+other.Database+"/"
	for key, want := range map[string]int{ownKeys: 200, theirs: 403, patroni.Namespace: 403, state.Root: 403, "\x00": 403} {
		if status, answer := thief.reads(gate, key); status != want {
			t.Errorf("keys from %q on: %d %.200s", key, status, answer)
		}
	}
	client, err := etcd.Dial(t.Context(), []string{gate}, thief.client)
	s.must(err, "make a client of etcd")
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := client.Get(ctx, ownKeys+"leader"); err != nil {
		t.Errorf("its own leader key: %v", err)
	}
	if _, err := client.Put(ctx, theirs+"leader", "x"); err == nil || ctx.Err() != nil {
		t.Errorf("another's leader key: %v", err)
	}

	for name, pair := range map[string]certs.Pair{"the member's": thief.client, "its server's": thief.server} {
		for what, url := range s.servers(other) {
			if err := s.knock(url, pair); err == nil {
				t.Errorf("%s key opens %s at %s", name, what, url)
			}
		}
		hosts, err := hostapi.NewClient(control, pair)
		s.must(err, "make a client of the control plane")
		defer hosts.Close()
		if err := hosts.Heartbeat(t.Context(), ""); err == nil {
			t.Errorf("%s key beats for a host", name)
		}
		for _, user := range []string{"rdsrepladmin", "rdsmon", "rdsadmin", "app"} {
			if err := thief.login(pair, other, user); !refusedLogin(err) {
				t.Errorf("%s key logs in as %s at another database: %v", name, user, err)
			}
		}
	}
	if err := s.knock(restOf(own)+"/patroni", thief.client); err != nil {
		t.Errorf("its own Patroni: %v", err)
	}
	for _, user := range []string{"rdsrepladmin", "rdsmon"} {
		if err := thief.login(thief.client, own, user); err != nil {
			t.Errorf("its own database as %s: %v", user, err)
		}
	}
	// A host's key copies no database.
	host := s.pair(filepath.Join(s.rig.HostDir(own.ZoneLetter()), "tls"))
	if err := thief.login(host, other, "rdsrepladmin"); !refusedLogin(err) {
		t.Errorf("a host's key copies a database: %v", err)
	}
	s.must(s.exec("billing", "CREATE TABLE untouched ()"), "write in the other database")
}

// Somebody has the key of a host. It opens what the host needs of etcd, and neither secrets, nor
// another host's members, nor what makes a control plane. (Each key that is refused here has a part
// by which refusedNobody knows it.)
func TestAHostsKeyReachesWhatItsHostNeeds(t *testing.T) {
	s := begin(t, nil)
	own := s.leader(s.given("orders", false))
	host := "zone-" + own.ZoneLetter()
	pair := s.pair(filepath.Join(s.rig.HostDir(own.ZoneLetter()), "tls"))
	client, err := etcd.Dial(t.Context(), []string{"https://" + net.JoinHostPort(s.rig.Home.Address(0, 1), "2379")}, pair)
	s.must(err, "make a client of etcd")
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	assigned, err := client.Get(ctx, state.AssignPrefix(host), clientv3.WithPrefix())
	s.must(err, "read what it runs")
	if len(assigned.Kvs) == 0 {
		t.Errorf("%s runs nothing", host)
	}
	if _, err := client.Get(ctx, patroni.LeaderKey(own.Database)); err != nil {
		t.Errorf("who leads: %v", err)
	}
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, rpctypes.ErrPermissionDenied) {
			t.Errorf("%s: %v", what, err)
		}
	}
	put := func(key string) error { _, err := client.Put(ctx, key, "{}"); return err }
	get := func(key string) error { _, err := client.Get(ctx, key); return err }
	refused("a secret", get(state.Secret(thiefsName)))
	refused("a sealed key", get(state.StorageKey(thiefsName)))
	refused("an access key", get(state.Key(thiefsName)))
	refused("an assignment", put(state.Assign(host, thiefsName+".m1")))
	refused("another host", put(state.Host(thiefsName)))
	refused("another leader", put(patroni.LeaderKey(thiefsName)))
	refused("a fence", put(state.Fence(own.Database, thiefsName)))
	refused("a life", put(state.Live(thiefsName)))
	refused("an order", put(state.Instance("1", "r", thiefsName)))
	_, err = client.MemberAdd(ctx, []string{"https://127.0.0.1:1"})
	refused("a member of etcd", err)
	_, err = client.AuthEnable(ctx)
	refused("authentication", err)
	_, err = client.Compact(ctx, 1)
	if err == nil {
		t.Error("it compacts")
	}
	s.must(s.exec("orders", "CREATE TABLE untouched ()"), "write")
}

// A read replica's members copy the source for as long as the replica follows it.
func TestAReplicasKeyOpensItsSourceWhileItFollows(t *testing.T) {
	s := begin(t, nil)
	source := s.leader(s.given("orders", false))
	s.must(s.rig.Replica(s.Context(), "orders-read", "orders", false), "make a read replica")
	id, err := s.rig.Database(s.Context(), "orders-read")
	s.must(err, "find the replica")
	thief := s.steal(s.leader(id))
	s.follows("orders", "orders-read")
	if err := thief.login(thief.client, source, "rdsrepladmin"); err != nil {
		t.Errorf("it follows, and may not copy: %v", err)
	}
	if err := thief.login(thief.client, source, "rdsmon"); !refusedLogin(err) {
		t.Errorf("it watches its source as the platform: %v", err)
	}
	s.must(s.rig.Call(s.Context(), "PromoteReadReplica", &rds.PromoteReadReplicaMessage{DBInstanceIdentifier: new("orders-read")}, &rds.PromoteReadReplicaResult{}), "promote it")
	s.eventually(time.Minute, func() error {
		if err := thief.login(thief.client, source, "rdsrepladmin"); !refusedLogin(err) {
			return fmt.Errorf("it is promoted, and copies: %w", err)
		}
		return nil
	})
}

// A home of an older release, whose members show their hosts' keys, is moved over. Nobody is
// replaced for that, and nobody's writes end.
func TestMembersAreMovedToTheirOwnKeys(t *testing.T) {
	depth.Deep(t)
	s := begin(t, nil)
	id := s.given("orders", true)
	s.must(s.rig.Replica(s.Context(), "orders-read", "orders", false), "make a read replica")
	replica, err := s.rig.Database(s.Context(), "orders-read")
	s.must(err, "find the replica")
	// An older release left this, for as long as one of its hosts is there.
	old := state.Host("old")
	_, err = s.rig.Store.Commit(s.Context(), state.Put(old, member.Host{Name: "old", OwnNames: true}))
	s.must(err, "have a host of an older release")
	for _, database := range []string{id, replica} {
		s.eventually(10*time.Second, func() error { return s.forgetKeys(database) })
	}
	for _, database := range []string{id, replica} {
		s.eventually(time.Minute, func() error { return s.showOwn(database, false) })
	}
	s.eventually(30*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	s.follows("orders", "orders-read")
	w, leader := s.writing("orders"), s.leader(id).Name

	_, err = s.rig.Store.Commit(s.Context(), state.Delete(old))
	s.must(err, "upgrade the last host")
	for _, database := range []string{id, replica} {
		s.eventually(2*time.Minute, func() error { return s.showOwn(database, true) })
	}
	w.works(10 * time.Second)
	s.follows("orders", "orders-read")
	if now := s.leader(id).Name; now != leader {
		t.Errorf("%s took over from %s", now, leader)
	}
	if errs := w.load.Errors(); len(errs) > 0 {
		t.Errorf("writes failed: %v", errs)
	}
	w.nothingLost()
}

// forgetKeys makes the layout of a database be that of an older release.
func (s *story) forgetKeys(database string) error {
	layout, err := state.Get[plan.Layout](s.Context(), s.rig.Store, state.Layout(database))
	if err != nil {
		return err
	}
	layout.Value.KeyAuthority, layout.Value.OnlyOwnKeys = "", false
	for i := range layout.Value.Members {
		layout.Value.Members[i].OwnKey = false
	}
	_, err = s.rig.Store.Commit(s.Context(), state.Swap(layout.Key, layout.Revision, layout.Value))
	return err
}

// showOwn returns nil if all members show keys of their own, and let nobody else in; or, if want is
// false, if none does.
func (s *story) showOwn(database string, want bool) error {
	all, err := s.rig.Members(s.Context(), database)
	if err != nil {
		return err
	}
	for _, m := range all {
		report, err := state.Get[member.Report](s.Context(), s.rig.Store, state.Report(m.Host, member.ID(database, m.Name)))
		if err != nil {
			return err
		}
		ident, err := os.ReadFile(filepath.Join(m.DataDir(), "pg_ident.conf"))
		if err != nil {
			return err
		}
		only := !strings.Contains(string(ident), "agent:.*$ rdsrepladmin")
		if report.Value.OwnKey != want || only != want || !report.Value.Ready {
			return fmt.Errorf("%s: own key %t, lets only such in %t, ready %t", m.Name, report.Value.OwnKey, only, report.Value.Ready)
		}
	}
	return nil
}

// thief has the two pairs of a member.
type thief struct {
	*story
	client, server certs.Pair
}

func (s *story) steal(m rig.Member) thief {
	s.Helper()
	dir := filepath.Dir(m.DataDir())
	t := thief{story: s, client: s.pair(filepath.Join(dir, patroni.OwnDir)), server: s.pair(filepath.Join(dir, patroni.CertDir))}
	leaf, err := t.server.Leaf()
	s.must(err, "read the server's certificate")
	if len(leaf.ExtKeyUsage) != 1 || leaf.ExtKeyUsage[0] != x509.ExtKeyUsageServerAuth {
		s.Errorf("the server's certificate is good for %v", leaf.ExtKeyUsage)
	}
	return t
}

func (s *story) pair(dir string) certs.Pair {
	s.Helper()
	pair, err := certs.Load(dir)
	s.must(err, "load keys")
	return pair
}

// control returns the URLs of the control plane: for hosts, and for members that ask for etcd.
func (s *story) control() (hosts, gate string) {
	s.Helper()
	all, err := state.List[hostapi.ControlMember](s.Context(), s.rig.Store, state.ControlRoot)
	s.must(err, "find the control plane")
	return all[0].Value.URL, "https://" + all[0].Value.Gate
}

// reads asks for all keys that begin with a key.
func (t thief) reads(gate, key string) (int, string) {
	t.Helper()
	config, err := t.client.ClientTLS()
	t.must(err, "use the key")
	http1 := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: 20 * time.Second}
	end := []byte(key)
	end[len(end)-1]++
	body := fmt.Sprintf(`{"key":"%s","range_end":"%s"}`, base64.StdEncoding.EncodeToString([]byte(key)), base64.StdEncoding.EncodeToString(end))
	answer, err := http1.Post(gate+"/v3/kv/range", "application/json", strings.NewReader(body))
	t.must(err, "ask the gate")
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

func restOf(m rig.Member) string { return fmt.Sprintf("https://%s:%d", m.Address, m.RESTPort) }

// servers has what a tenant must not reach.
func (s *story) servers(other rig.Member) map[string]string {
	s.Helper()
	all := map[string]string{"another Patroni": restOf(other) + "/patroni", "Patroni's restart": restOf(other) + "/restart"}
	for n, url := range s.rig.Store.Client.Endpoints() {
		all[fmt.Sprintf("etcd %d", n)] = url + "/version"
	}
	return all
}

var errStatus = errors.New("refused")

// knock asks with a key. It returns nil if it was let in.
func (s *story) knock(url string, pair certs.Pair) error {
	config, err := pair.ClientTLS()
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: 20 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized {
		return errStatus
	}
	return nil
}

// login shows a key to a member's PostgreSQL.
func (t thief) login(pair certs.Pair, m rig.Member, user string) error {
	t.Helper()
	config, err := pgx.ParseConfig("sslmode=disable database=rdsadmin")
	t.must(err, "configure a login")
	key, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	t.must(err, "use the key")
	config.Host, config.Port, config.User = m.Address, uint16(m.Port), user
	config.TLSConfig = &tls.Config{Certificates: []tls.Certificate{key}, InsecureSkipVerify: true}
	if user == "rdsrepladmin" {
		config.RuntimeParams["replication"] = "true"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, &config.Config)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// refusedLogin reports whether PostgreSQL refused. If it did not accept the key at all, it hangs
// up, and that may arrive before the reason.
func refusedLogin(err error) bool {
	var said *pgconn.PgError
	switch {
	case err == nil:
		return false
	case errors.As(err, &said):
		return strings.HasPrefix(said.Code, "28")
	}
	return strings.Contains(err.Error(), "tls:") || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF)
}
