package database

import (
	"slices"
	"testing"

	"howdah/internal/admin"
	"howdah/internal/control/plan"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
)

// A cluster is asked for by its own name and by those of its instances. A policy may mean either.
func TestNamesOfADatabase(t *testing.T) {
	scope := spec.Scope{Account: "000000000001", Region: "us-east-1"}
	instance := spec.Instance{Common: spec.Common{Scope: scope, Name: "db"}}
	member := spec.Instance{Common: spec.Common{Scope: scope, Name: "aura-1", ResourceID: "db-1"}}
	cluster := spec.Cluster{Common: spec.Common{Scope: scope, Name: "aura"}}
	one := Subject{Common: instance.Common, Instance: &instance}
	several := Subject{Common: cluster.Common, Cluster: &cluster, Own: []spec.Instance{member}}
	const arn = "arn:aws:rds:us-east-1:000000000001:"
	for _, c := range []struct {
		d    Subject
		name string
		has  bool
		arns []string
	}{
		{one, "db", true, []string{arn + "db:db"}},
		{one, "other", false, []string{arn + "db:db"}},
		{several, "aura", true, []string{arn + "cluster:aura"}},
		{several, "aura-1", true, []string{arn + "cluster:aura", arn + "db:aura-1"}},
		{several, "db", false, []string{arn + "cluster:aura"}},
	} {
		if got := c.d.Named(c.name); c.d.Has(c.name) != c.has || !slices.Equal(got, c.arns) {
			t.Errorf("%s of %s: %v, %q", c.name, c.d.Title(), c.d.Has(c.name), got)
		}
	}
	if got := several.SeatName("db-1"); got != "aura-1" {
		t.Errorf("the seat is %q's", got)
	}
}

// Of a database that follows another one nobody is primary.
func TestRoles(t *testing.T) {
	d := Subject{Facts: plan.Facts{Leader: "m1"}}
	d.Layout.Members = []plan.Placed{{Name: "m1", Host: "a"}, {Name: "m2", Host: "b"}}
	roles := func() []string { return []string{d.Role(d.Layout.Members[0]), d.Role(d.Layout.Members[1])} }
	if got := roles(); !slices.Equal(got, []string{admin.RolePrimary, admin.RoleStandby}) {
		t.Errorf("%q", got)
	}
	d.Want.Upstream = &patroni.Upstream{}
	if got := roles(); !slices.Equal(got, []string{admin.RoleReplica, admin.RoleStandby}) {
		t.Errorf("a replica: %q", got)
	}
	if d.HostOf("m2") != "b" || d.HostOf("m3") != "no host" {
		t.Errorf("m2 is on %s, m3 on %s", d.HostOf("m2"), d.HostOf("m3"))
	}
}
