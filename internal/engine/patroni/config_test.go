package patroni

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func exampleMember() Member {
	return Member{
		Scope: "db-TEST", Name: "m1", Dir: "/home/hosts/a/members/db-TEST.m1",
		Address: "127.93.1.1", Port: 15432, RESTPort: 18008,
		BinDir: "/usr/lib/postgresql/15/bin", Programs: map[string]string{"initdb": "/home/hosts/a/members/db-TEST.m1/initdb"},
		Gate: []string{"/home/hosts/a/gate", "gate"}, Modules: "/opt/howdah/lib/15", SocketDir: "/run/howdah/3f9a1c22/a", EtcdHosts: []string{"127.93.0.1:2379"},
		OSUsers: []string{"postgres", "root"}, RequireTLS: true,
		Parameters: map[string]string{"shared_buffers": "262144kB", "work_mem": "4MB"},
		Cluster: Cluster{
			Sync: SyncSingle, Parameters: map[string]string{"max_connections": "112", "wal_level": "replica"},
		},
		Tier: 1,
	}
}

func TestRenderMember(t *testing.T) {
	text, _, err := Render(exampleMember())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "member.json", text)
}

// A member with a key of its own shows it to etcd's gates, to other members and to their
// PostgreSQL, and takes theirs beside those of hosts.
func TestRenderMemberWithAKeyOfItsOwn(t *testing.T) {
	m := exampleMember()
	m.Keys, m.EtcdHosts = Keys{Admits: []string{"db-TEST", "db-FOLLOWER"}, Own: true, Only: true}, []string{"127.93.0.1:2378"}
	text, _, err := Render(m)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "own.json", text)
}

func TestRenderVariants(t *testing.T) {
	cases := map[string]struct {
		change   func(*Member)
		has, not string
	}{
		"never promoted":  {func(m *Member) { m.NoFailover = true }, `"nosync": true`, "failover_priority"},
		"confirms none":   {func(m *Member) { m.NoSync = true }, `"nosync": true`, "sync_priority"},
		"promoted last":   {func(m *Member) { m.NoSync = true }, `"failover_priority": 1`, "nofailover"},
		"neither nor":     {func(m *Member) { m.NoSync, m.NoFailover = true, true }, `"nofailover": true`, "failover_priority"},
		"boosted":         {func(m *Member) { m.Boost = true }, `"failover_priority": 100`, "nofailover"},
		"some networks":   {func(m *Member) { m.Allow = []string{"10.1.0.0/16"} }, "host    all         all                 10.1.0.0/16 scram-sha-256", "all     scram"},
		"a path to quote": {func(m *Member) { m.Gate = []string{"/it's here/gate"} }, `"pre_promote": "'/it'\"'\"'s here/gate' '/home/`, "nofailover"},
		"no gate":         {func(m *Member) { m.Gate = nil }, `"pgpass"`, "pre_promote"},
		"nobody":          {func(m *Member) { m.Allow = []string{} }, "rdsrepladmin        all     cert", "scram-sha-256"},
		"admits members":  {func(m *Member) { m.Keys.Admits = []string{"db-TEST"} }, `"platform /^agent:.*$ rdsrepladmin",`, "own/tls.crt"},
		"takes their CA":  {func(m *Member) { m.Keys.Admits = []string{"db-TEST"} }, `"ssl_ca_file": "/home/hosts/a/members/db-TEST.m1/tls/own/ca.crt"`, "own/tls.key"},
		"hosts no more":   {func(m *Member) { m.Keys = Keys{Admits: []string{"db-TEST"}, Only: true} }, `"platform /^(agent|edge|serve):.*$ rdsmon",`, "agent:.*$ rdsrepladmin"},
		"plain allowed":   {func(m *Member) { m.RequireTLS = false }, "scram-sha-256", "hostnossl"},
	}
	for name, c := range cases {
		m := exampleMember()
		c.change(&m)
		text, _, err := Render(m)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), c.has) || strings.Contains(string(text), c.not) {
			t.Errorf("%s: wants %q and not %q in\n%s", name, c.has, c.not, text)
		}
	}
}

func TestClusterDocument(t *testing.T) {
	cluster := Cluster{
		Sync: SyncQuorum, WaitForStandby: true, Parameters: map[string]string{"max_connections": "112"},
		Slots: []string{"db_child"}, Upstream: &Upstream{Host: "127.93.8.1", Port: 5432, Slot: "db_me", Origin: &Address{"127.93.8.2", 5433}},
	}
	text, err := cluster.Document()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "cluster.json", append(text, '\n'))
}

func TestParseSync(t *testing.T) {
	cases := []struct {
		name, in string
		want     Sync
		cuts     int
	}{
		{"no key", "", Sync{}, 0},
		{"alone", `{"leader":"m1","sync_standby":null}`, Sync{Leader: "m1"}, 0},
		{"one standby", `{"leader":"m1","sync_standby":"m2"}`, Sync{Leader: "m1", Standbys: []string{"m2"}}, 1},
		{"any one of two", `{"leader":"m1","quorum":1,"sync_standby":"m2,m3"}`,
			Sync{Leader: "m1", Standbys: []string{"m2", "m3"}, Quorum: 1}, 2},
		{"any one of three", `{"leader":"m1","quorum":2,"sync_standby":"m2,m3,m4"}`,
			Sync{Leader: "m1", Standbys: []string{"m2", "m3", "m4"}, Quorum: 2}, 3},
	}
	for _, c := range cases {
		got, err := ParseSync([]byte(c.in))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if got.CutsNeeded() != c.cuts {
			t.Errorf("%s: %d cuts needed, want %d", c.name, got.CutsNeeded(), c.cuts)
		}
	}
	if _, err := ParseSync([]byte("{")); err == nil {
		t.Error("half a value was read")
	}
}

// TestParseMember: a value as Patroni 4.1 writes it.
func TestParseMember(t *testing.T) {
	got, err := ParseMember([]byte(`{"conn_url":"postgres://127.9.1.1:15432/postgres","api_url":"https://127.9.1.1:25432/patroni","state":"running",` +
		`"role":"replica","version":"4.1.5","tags":{"generation":3},"xlog_location":50331648,"replication_state":"streaming","timeline":2,` +
		`"pending_restart":true,"pending_restart_reason":{"max_connections":{"old_value":"120","new_value":"140"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Difference{"max_connections": {Old: "120", New: "140"}}
	if diff := cmp.Diff(want, got.Differences); diff != "" || !got.PendingRestart || got.Generation() != 3 || got.Role != "replica" {
		t.Errorf("%+v %s", got, diff)
	}
	if _, err := ParseMember([]byte("{")); err == nil {
		t.Error("nonsense was read")
	}
}

// TestNames: a member is found, and read, by whichever of its names Patroni knows it.
func TestNames(t *testing.T) {
	own := OwnName("db-X", "m12")
	if own != "db-X.m12" || MemberName(own) != "m12" || MemberName("m12") != "m12" || MemberName("") != "" {
		t.Errorf("own name %q, of the member %q", own, MemberName(own))
	}
	s, err := ParseSync([]byte(`{"leader":"db-X.m1","sync_standby":"db-X.m2,m3","quorum":1}`))
	if err != nil || s.Leader != "m1" || !slices.Equal(s.Standbys, []string{"m2", "m3"}) {
		t.Errorf("sync %+v, %v", s, err)
	}
	keys := map[string]string{
		MemberKey("db-X", "m1"): `{"role":"replica"}`, MemberKey("db-X", "db-X.m2"): `{"role":"primary"}`,
		MemberKey("db-X", "m2"): `{"role":"replica"}`, MemberKey("db-X", "m3"): `{`,
	}
	raw := func(key string) ([]byte, int64, bool) { v, ok := keys[key]; return []byte(v), 1, ok }
	for name, role := range map[string]string{"m1": "replica", "m2": "primary", "m3": "", "m4": ""} {
		if m, ok := FindMember(raw, "db-X", name); m.Role != role || ok != (role != "") {
			t.Errorf("%s: %+v, %v", name, m, ok)
		}
	}
}

func TestSplitKey(t *testing.T) {
	scope, rest, ok := SplitKey(MemberKey("db-X", "m1"))
	if scope != "db-X" || rest != "members/m1" || !ok {
		t.Errorf("%q %q %v", scope, rest, ok)
	}
	if _, _, ok := SplitKey("/howdah/x"); ok {
		t.Error("a foreign key was split")
	}
}

// TestLogicalSlotsAreLeftAlone: Patroni drops slots that it does not know.
func TestLogicalSlotsAreLeftAlone(t *testing.T) {
	with, err := Cluster{LogicalSlots: true}.Document()
	if err != nil || !strings.Contains(string(with), `"ignore_slots":[{"type":"logical"}]`) {
		t.Errorf("%s, %v", with, err)
	}
	if without, err := (Cluster{}).Document(); err != nil || strings.Contains(string(without), "ignore_slots") {
		t.Errorf("%s, %v", without, err)
	}
}

// Users of rds_iam come before all others who log in by password: whichever they
// use, it is looked at as a token.
func TestTokensInHBA(t *testing.T) {
	m := exampleMember()
	if strings.Contains(strings.Join(m.hba(), "\n"), "rds_iam") {
		t.Error("rds_iam means something without tokens")
	}
	m.Tokens = &Tokens{Address: "127.93.1.1", Port: 7464, Prefix: "user=", Suffix: ",member=db-TEST.m1"}
	want := []string{
		"hostnossl all       +rds_iam            all     reject",
		`hostssl all         +rds_iam            all     ldap ldapserver=127.93.1.1 ldapport=7464 ldapscheme=ldaps ldapprefix="user=" ldapsuffix=",member=db-TEST.m1"`,
		"host    all         all                 all     scram-sha-256",
	}
	if diff := cmp.Diff(want, m.hba()[len(m.hba())-3:]); diff != "" {
		t.Error(diff)
	}
	m.Tokens.Port = 0
	if got := m.hba()[len(m.hba())-2]; !strings.HasSuffix(got, "+rds_iam            all     reject") {
		t.Errorf("where nobody checks tokens: %s", got)
	}
}
