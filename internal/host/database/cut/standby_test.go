package cut

import (
	"os"
	"path/filepath"
	"testing"

	"howdah/internal/failover/fence"
	"howdah/internal/host/agent"
	"howdah/internal/host/agent/agenttest"
	"howdah/internal/model/patroni"
)

// standby is a member without data that nobody looks after.
func standby(t *testing.T, id string) *Standby {
	t.Helper()
	m := agent.NewMember(agenttest.Lonely(t), id)
	return &Standby{Member: m, DataDir: filepath.Join(m.Dir(), "data")}
}

func TestNamesUpstream(t *testing.T) {
	const conf = `include 'postgresql.base.conf'
primary_conninfo = 'user=rdsrepladmin host=10.0.0.9 port=5432'
work_mem = '4MB'
primary_conninfo = 'user=rdsrepladmin sslmode=verify-ca host=10.0.0.1 port=5432 application_name=m2'
primary_slot_name = 'm2'
`
	cases := []struct {
		name, conf, host, port string
		want                   bool
	}{
		{"it does", conf, "10.0.0.1", "5432", true},
		{"another port", conf, "10.0.0.1", "54321", false},
		{"an address that begins so", conf, "10.0.0.11", "5432", false},
		{"an earlier line", conf, "10.0.0.9", "5432", false},
		{"nobody", "work_mem = '4MB'\n", "10.0.0.1", "5432", false},
		{"at the end", "primary_conninfo = 'port=5432 host=10.0.0.1'", "10.0.0.1", "5432", true},
	}
	for _, c := range cases {
		if got := namesUpstream(c.conf, c.host, c.port); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestMustBeCut(t *testing.T) {
	s := standby(t, "db-1.m2")
	if err := os.MkdirAll(s.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(s.DataDir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := fence.Case{
		Postgres:   "10.0.0.1:5432",
		Leadership: fence.Leadership{Database: "db-1", Leader: "m1", Sync: patroni.Sync{Leader: "m1", Standbys: []string{"m2", "m3"}}},
	}
	expect := func(phase fence.Phase, want bool, when string) {
		t.Helper()
		c.Phase = phase
		if got := s.mustBeCut(c); got != want {
			t.Errorf("%s, %s: %v, want %v", phase, when, got, want)
		}
	}
	write("standby.signal", "")
	expect(fence.Revoked, true, "nothing is known of its upstream")
	write("postgresql.conf", "primary_conninfo = 'host=10.0.0.1 port=5432'\n")
	expect(fence.Cutting, true, "it receives from the lost one")
	expect(fence.Revoked, true, "it would receive from the lost one")
	write("postgresql.conf", "primary_conninfo = 'host=10.0.0.3 port=5432'\n")
	expect(fence.Cutting, true, "it follows another one, so far")
	expect(fence.Revoked, false, "it follows another one")
	write("postgresql.conf", "primary_conninfo = 'host=10.0.0.1 port=5432'\n")
	if err := os.Remove(filepath.Join(s.DataDir, "standby.signal")); err != nil {
		t.Fatal(err)
	}
	expect(fence.Revoked, false, "it was promoted")
	s.ID = "db-1.m4"
	expect(fence.Cutting, false, "it cannot confirm anything")
	s.ID = "db-2.m2"
	expect(fence.Cutting, false, "another database")
}
