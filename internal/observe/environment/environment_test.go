package environment

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"howdah/internal/host/proc/cgroup"
	"howdah/internal/observe/machine"
	"howdah/internal/testkit/pgtest"
	"howdah/internal/testkit/pgversion"
)

// fake writes the files of a machine.
func fake(t *testing.T, files map[string]string) machine.System {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return machine.System{Proc: filepath.Join(root, "proc"), Sys: filepath.Join(root, "sys")}
}

func TestHost(t *testing.T) {
	system := fake(t, map[string]string{
		"proc/cpuinfo":              "processor\t: 0\nmodel name\t: Example 9000 @ 2.50GHz\nflags\t\t: fpu hypervisor sse\n\nprocessor\t: 1\nmodel name\t: Example 9000\n",
		"proc/stat":                 "cpu  1 2 3 4 5 6 7 8\ncpu0 1\ncpu1 1\ncpu2 1\ncpu3 1\nbtime 1\n",
		"proc/meminfo":              "MemTotal: 1000 kB\nSwapTotal: 10 kB\nHugePages_Total: 4\nHugepagesize: 2048 kB\n",
		"proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
		"proc/sys/vm/swappiness":    "60\n",
		"sys/devices/system/cpu/cpu0/topology/thread_siblings_list":       "0,2\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":            "performance\n",
		"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
		"sys/kernel/mm/transparent_hugepage/enabled":                      "always [madvise] never\n",
		"sys/class/dmi/id/sys_vendor":                                     "QEMU\n",
		"sys/class/dmi/id/product_name":                                   "Standard PC\n",
	})
	got := ReadHost(system)
	got.System = "" // of the machine that the test runs on
	want := Host{
		CPUModel: "Example 9000 @ 2.50GHz", CPUs: 4, ThreadsPerCore: 2, Governor: "performance", MemoryBytes: 1000 * 1024, SwapBytes: 10 * 1024,
		HugePages: 4, HugePageBytes: 2048 * 1024, TransparentHP: "madvise", Kernel: "6.1.0-18-amd64", Virtualisation: "QEMU Standard PC",
		ClockSource: "tsc", Sysctl: map[string]string{"vm.swappiness": "60"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	nothing := ReadHost(fake(t, map[string]string{"proc/cpuinfo": ""}))
	nothing.System = ""
	if diff := cmp.Diff(Host{Sysctl: map[string]string{}}, nothing); diff != "" {
		t.Errorf("of a machine that tells nothing: %s", diff)
	}
}

func TestSmallFormsOfTheKernel(t *testing.T) {
	for list, want := range map[string]int{"": 0, "0": 1, "0,64": 2, "0-1": 2, "0-1,64-65": 4} {
		if got := threads(list); got != want {
			t.Errorf("%q has %d threads, want %d", list, got, want)
		}
	}
	for text, want := range map[string]string{"none [mq-deadline] kyber": "mq-deadline", "none": "none", "": "", "[none]": "none"} {
		if got := chosen(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	for flags, want := range map[string]string{"fpu": "", "fpu hypervisor": "a hypervisor"} {
		r := roots{fake(t, map[string]string{"proc/x": ""})}
		if got := r.virtualisation("flags : " + flags + "\n"); got != want {
			t.Errorf("%q: %q", flags, got)
		}
	}
}

func TestTheNearestMountCounts(t *testing.T) {
	mounts := []cgroup.Mount{{Point: "/", FSType: "ext4"}, {Point: "/data", FSType: "xfs"}, {Point: "/data", FSType: "btrfs"}, {Point: "/data/more", FSType: "tmpfs"}}
	for path, want := range map[string]string{"/": "ext4", "/data": "btrfs", "/data/pg": "btrfs", "/database": "ext4", "/data/more/x": "tmpfs"} {
		if got := nearest(mounts, path).FSType; got != want {
			t.Errorf("%s is on %s, want %s", path, got, want)
		}
	}
}

func TestHash(t *testing.T) {
	base := func() Environment {
		return Environment{
			At: time.Unix(1, 0), Database: Database{Version: "v", SizeBytes: 1, Started: time.Unix(1, 0), Standbys: []Standby{{Name: "s", State: "streaming"}}, Settings: map[string]Setting{"a": {Value: "1"}, "b": {Value: "2"}}},
			Storage: []Storage{{Part: "data", FreeBytes: 5, SizeBytes: 9}}, Host: &Host{CPUs: 2},
		}
	}
	first := base().Hash()
	for name, change := range map[string]func(*Environment){
		"time":       func(e *Environment) { e.At = time.Unix(2, 0) },
		"start":      func(e *Environment) { e.Database.Started = time.Unix(2, 0) },
		"size":       func(e *Environment) { e.Database.SizeBytes = 2 },
		"free space": func(e *Environment) { e.Storage[0].FreeBytes = 1 },
		"catch-up":   func(e *Environment) { e.Database.Standbys[0].State = "catchup" },
	} {
		e := base()
		change(&e)
		if e.Hash() != first {
			t.Errorf("the hash changes with the %s", name)
		}
	}
	for name, change := range map[string]func(*Environment){
		"a setting": func(e *Environment) { e.Database.Settings["a"] = Setting{Value: "2"} },
		"CPUs":      func(e *Environment) { e.Host.CPUs = 4 },
		"a standby": func(e *Environment) { e.Database.Standbys = nil },
		"a limit":   func(e *Environment) { e.Limits = &machine.Limits{CPUs: 1} },
		"the disk":  func(e *Environment) { e.Storage[0].Device = "vdb" },
	} {
		e := base()
		change(&e)
		if e.Hash() == first {
			t.Errorf("the hash does not change with %s", name)
		}
	}
	e := base()
	e.Hash()
	if e.Storage[0].FreeBytes != 5 {
		t.Error("Hash changed what it was asked of")
	}
}

// A server that says more than there can be fills no memory.
func TestAnswersAreBounded(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	conn, err := pgx.ConnectConfig(t.Context(), server.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for sql, most := range map[string]int{
		"SELECT 'x' FROM generate_series(1, 10000)":               mostRows,
		"SELECT 'x' FROM generate_series(1, 20000)":               mostRows,
		"SELECT repeat('x', 1048576) FROM generate_series(1, 10)": 4,
	} {
		a, rows := &asking{conn: conn}, 0
		a.each(t.Context(), "many", sql, 1, func([]string) { rows++ })
		bounded := len(a.missing) == 1 && strings.Contains(a.missing[0], errLong.Error())
		if rows != most || bounded != !strings.Contains(sql, "(1, 10000)") {
			t.Errorf("%s: %d rows, %v", sql, rows, a.missing)
		}
	}
}

func TestTheEnvironmentOfAServer(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{Settings: "archive_mode = on\narchive_command = 'AWS_SECRET_ACCESS_KEY=SECRET /bin/true'\nwork_mem = '5MB'\n"})
	standby := server.Follow("second", pgtest.Options{})
	e := readEnvironment(t, server)
	if len(e.Missing) != 0 {
		t.Errorf("missing: %v", e.Missing)
	}
	d := e.Database
	if d.Number/10000 != pgversion.Major() || d.SystemID == "" || d.InRecovery || d.Name != server.Database || d.Encoding != "UTF8" || d.SizeBytes == 0 || d.Build == "" {
		t.Errorf("%+v", d)
	}
	for name, want := range map[string]Setting{
		"work_mem":        {Value: "5120", Unit: "kB", Source: "configuration file"},
		"archive_command": {Value: "true " + masked, Source: "configuration file"},
		"fsync":           {Value: "off", Source: "configuration file"},
	} {
		if got := d.Settings[name]; got != want {
			t.Errorf("%s is %+v, want %+v", name, got, want)
		}
	}
	for _, name := range []string{"application_name", "statement_timeout", "max_files_per_process"} {
		if _, there := d.Settings[name]; there {
			t.Errorf("%s is told, which nobody set for the server", name)
		}
	}
	if d.Extensions["plpgsql"] == "" {
		t.Errorf("extensions: %v", d.Extensions)
	}
	if diff := cmp.Diff([]Standby{{Name: "second", State: "streaming", Sync: "async"}}, d.Standbys); diff != "" {
		t.Error(diff)
	}
	if e.Host == nil || e.Client != nil || e.Host.CPUs == 0 || e.Host.Kernel == "" || e.Limits == nil {
		t.Errorf("host %+v, client %+v, limits %+v", e.Host, e.Client, e.Limits)
	}
	if len(e.Storage) != 2 || e.Storage[0].Part != "data" || e.Storage[0].FileSystem == "" || e.Storage[0].SizeBytes == 0 {
		t.Errorf("storage: %+v", e.Storage)
	}
	there := readEnvironment(t, standby)
	if !there.Database.InRecovery || there.Database.SystemID != d.SystemID {
		t.Errorf("the standby: %+v", there.Database)
	}
	conninfo := there.Database.Settings["primary_conninfo"].Value
	if !strings.Contains(conninfo, "application_name=second") {
		t.Errorf("it follows %q", conninfo)
	}
	for _, each := range []Environment{e, there} {
		text, err := json.Marshal(each)
		if err != nil || strings.Contains(string(text), "SECRET") {
			t.Errorf("%v: a secret is in %s", err, text)
		}
	}
}

// A server that is not on this machine has no host. We are its client.
func TestTheEnvironmentOfAServerElsewhere(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	conn, err := pgx.ConnectConfig(t.Context(), server.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	e, err := Read(t.Context(), conn, fake(t, map[string]string{"proc/stat": "cpu  1 2 3 4 5 6 7 8\ncpu0 1\nbtime 1\n"}))
	if err != nil || e.Host != nil || e.Limits != nil || len(e.Storage) != 0 || e.Client == nil || e.Client.CPUs != 1 {
		t.Errorf("%v: %+v", err, e)
	}
}

func readEnvironment(t *testing.T, server *pgtest.Server) Environment {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), server.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	e, err := Read(t.Context(), conn, machine.System{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}
