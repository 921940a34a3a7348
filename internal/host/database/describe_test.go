package database

import (
	"os"
	"path/filepath"
	"testing"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/host/database/aside"
	"howdah/internal/host/database/probe"
	"howdah/internal/model/member"
)

func TestAddProblem(t *testing.T) {
	t.Parallel()
	replica := member.Report{Ready: true, InRecovery: true, Streaming: true}
	limited := member.Assignment{Limits: member.Limits{StorageBytes: 1000}}
	guarded, own := limited, limited
	guarded.Cluster.Parameters = map[string]string{"shared_preload_libraries": "pg_stat_statements, howdah"}
	own.Parameters = map[string]string{"shared_preload_libraries": "howdah,auto_explain"}
	loaded := func(libraries string) probe.Sight { return probe.Sight{Facts: postgres.Facts{Libraries: libraries}} }
	cases := []struct {
		name   string
		want   member.Assignment
		report member.Report
		sight  probe.Sight
		is     member.Problem
		detail string
	}{
		{"nothing", limited, member.Report{Ready: true, StorageBytes: 899}, probe.Sight{}, member.None, ""},
		{"little storage left", limited, member.Report{StorageBytes: 900}, probe.Sight{}, member.StorageLow, ""},
		{"writes are refused still", limited, member.Report{Ready: true, StorageBytes: 985}, probe.Sight{Facts: postgres.Facts{StorageFull: "on"}}, member.StorageFull, ""},
		{"no storage left", limited, member.Report{StorageBytes: 1000}, probe.Sight{}, member.StorageFull, ""},
		{"PostgreSQL refuses to write", member.Assignment{Want: member.Running}, member.Report{Ready: true}, probe.Sight{NoRoom: true}, member.DiskFull, ""},
		{"the storage is low, to the byte", limited, member.Report{Ready: true, StorageBytes: 899}, probe.Sight{}, member.None, ""},
		{"no limit", member.Assignment{}, member.Report{StorageBytes: 1 << 50}, probe.Sight{}, member.None, ""},
		{"a replica without a stream", limited, member.Report{Ready: true, InRecovery: true}, probe.Sight{}, member.NotReplicating, ""},
		{"a replica with one", limited, replica, probe.Sight{}, member.None, ""},
		{
			"a lost slot", limited, member.Report{Ready: true},
			probe.Sight{Facts: postgres.Facts{LostSlots: []string{"a", "b"}}}, member.SlotLost, "a, b",
		},
		{
			"a lost slot of a user", limited, member.Report{Ready: true},
			probe.Sight{Facts: postgres.Facts{LostUserSlots: []string{"c"}}}, member.SlotLost, "c",
		},
		{
			"a lost slot of a user hides nothing", limited, member.Report{Ready: true, StorageBytes: 1000},
			probe.Sight{Facts: postgres.Facts{LostUserSlots: []string{"c"}}}, member.StorageFull, "",
		},
		{
			"a lost slot of a server that is gone", limited, member.Report{},
			probe.Sight{Facts: postgres.Facts{LostSlots: []string{"a"}}}, member.None, "",
		},
		{"without the module", guarded, member.Report{Ready: true}, loaded("pg_stat_statements"), member.NoModule, "it was started with shared_preload_libraries = 'pg_stat_statements'"},
		{"without the module that is in settings of its own", own, replica, loaded(""), member.NoModule, "it was started with shared_preload_libraries = ''"},
		{"with another module of a similar name", guarded, replica, loaded("howdah_too"), member.NoModule, "it was started with shared_preload_libraries = 'howdah_too'"},
		{"with the module, among others", guarded, replica, loaded(`auto_explain, "howdah", pg_prewarm`), member.None, ""},
		{"without a module that is not wanted", limited, replica, loaded(""), member.None, ""},
		{"it is not known what it has loaded", guarded, member.Report{}, loaded(""), member.None, ""},
		{"without the module, and full", guarded, member.Report{Ready: true, StorageBytes: 1000}, loaded(""), member.StorageFull, ""},
		{"no login", limited, member.Report{}, probe.Sight{Detail: "refused"}, member.None, "refused"},
		{
			"a problem of the processes comes first", limited,
			member.Report{Problem: member.PortTaken, Detail: "d", StorageBytes: 1000}, probe.Sight{Detail: "refused"}, member.PortTaken, "d",
		},
	}
	for _, c := range cases {
		r := runner{Member: &agent.Member{Want: c.want}, postmaster: &agent.Process{}, aside: &aside.Data{}}
		got := c.report
		r.addProblem(&got, c.sight)
		if got.Problem != c.is || got.Detail != c.detail {
			t.Errorf("%s: %q %q, want %q %q", c.name, got.Problem, got.Detail, c.is, c.detail)
		}
	}
}

func TestLastLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	long := ""
	for range 200 {
		long += "a line of a long traceback\n"
	}
	for text, want := range map[string]string{
		"": "", "\n\n": "", "one": "one", "one\ntwo\n": "two", "one\n  two \n\n": "two", long + "the reason\n": "the reason",
	} {
		path := filepath.Join(dir, "log")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := lastLine(nil, path); got != want {
			t.Errorf("%.20q: %q, want %q", text, got, want)
		}
	}
	if got := lastLine(nil, filepath.Join(dir, "none")); got != "" {
		t.Errorf("no file: %q", got)
	}
}
