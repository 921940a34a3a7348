package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/model/patroni"
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
		Cluster: patroni.Cluster{
			Sync: patroni.SyncSingle, Parameters: map[string]string{"max_connections": "112", "wal_level": "replica"},
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
