package status

import (
	"slices"
	"testing"

	"howdah/internal/admin"
)

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
