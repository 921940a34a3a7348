package server

import (
	"context"
	"slices"
	"testing"

	"howdah/internal/admin"
	"howdah/internal/aws/front"
	"howdah/internal/state/etcd"
)

// scarceEtcd is one of which only the reserve is left.
type scarceEtcd struct{ scarce bool }

func (e *scarceEtcd) Scarce() bool { return e.scarce }

func (*scarceEtcd) Plan(context.Context) ([]etcd.Deed, error) {
	return []etcd.Deed{{Kind: etcd.Disarm, Why: "planned"}}, nil
}

func (*scarceEtcd) Mend(context.Context) ([]etcd.Deed, error) {
	return []etcd.Deed{{Kind: etcd.Disarm, Why: "done"}}, nil
}
func (*scarceEtcd) Compact(context.Context) (etcd.Deed, error) { return etcd.Deed{}, nil }
func (*scarceEtcd) Defrag(context.Context, string) (etcd.Deed, error) {
	return etcd.Deed{}, etcd.ErrNoMember
}
func (*scarceEtcd) Disarm(context.Context) (etcd.Deed, error) { return etcd.Deed{}, nil }

// With only the reserve left nothing is added to the state; what replaces, shows or
// deletes goes on.
func TestNothingIsCreatedOfTheReserve(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	store := &scarceEtcd{}
	w.server.Etcd = store
	u.do(newDB)
	store.scarce = true
	u.try(with(newDB, "DBInstanceIdentifier=two")).is("ServiceUnavailable", "run `howdah etcd mend`, and try again")
	u.do("DescribeDBInstances")
	u.do(dropDB)
	store.scarce = false
	u.do(with(newDB, "DBInstanceIdentifier=two"))
}

func TestProblemsOfEtcd(t *testing.T) {
	for _, c := range []struct {
		name  string
		etcd  []admin.EtcdMember
		texts []string
	}{
		{"well", []admin.EtcdMember{{Name: "s1", Healthy: true}}, nil},
		{
			"full",
			[]admin.EtcdMember{{Name: "s1", Healthy: true, Full: true, Scarce: true, Size: 8 << 30, Quota: 8 << 30}, {Name: "s2", Healthy: true, Full: true}},
			[]string{"etcd-full: etcd is full and takes no writes: no failover is possible, and no change (s1 has 8192 MiB of 8192 MiB)"},
		},
		{
			"scarce",
			[]admin.EtcdMember{{Name: "s1", Healthy: true, Scarce: true, Size: 5 << 30, Quota: 8 << 30}},
			[]string{"etcd-full: etcd is nearly full, and what is left is kept for failovers: nothing can be created (s1 has 5120 MiB of 8192 MiB)"},
		},
		{
			"away",
			[]admin.EtcdMember{{Name: "s1", Error: "no answer"}},
			[]string{"etcd-member-down: the control plane s1 does not answer (no answer): start it again on its machine"},
		},
	} {
		var texts []string
		for _, p := range homeProblems(admin.Status{Etcd: c.etcd, Edges: []admin.Edge{{Running: true}}, Hosts: []admin.Host{{}}}) {
			texts = append(texts, p.Code+": "+p.Text)
		}
		if !slices.Equal(texts, c.texts) {
			t.Errorf("%s: %q, want %q", c.name, texts, c.texts)
		}
	}
}

func TestUpkeepIsAsked(t *testing.T) {
	w := newWorld(t)
	w.server.Etcd = &scarceEtcd{}
	for _, c := range []struct {
		in   admin.EtcdRequest
		want string
	}{
		{admin.EtcdRequest{Do: admin.EtcdMend}, "disarm the alarm: done"},
		{admin.EtcdRequest{Do: admin.EtcdMend, DryRun: true}, "disarm the alarm: planned"},
		{admin.EtcdRequest{Do: admin.EtcdCompact, DryRun: true}, "InvalidRequest: Only mend has a dry run."},
		{admin.EtcdRequest{Do: admin.EtcdDefrag, Member: "s9"}, "InvalidRequest: etcd has no member s9."},
		{admin.EtcdRequest{Do: "melt"}, "InvalidRequest: There is nothing to do that is called melt."},
	} {
		out, err := ask[admin.EtcdAnswer](t, w, front.Call{}, admin.VerbEtcd, c.in)
		got := ""
		if err != nil {
			got = err.Error()
		} else if len(out.Deeds) == 1 && len(out.Members) == 1 && out.Members[0].Quota == etcd.DefaultQuota {
			got = out.Deeds[0]
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.in, got, c.want)
		}
	}
}
