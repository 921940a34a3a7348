package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"howdah/internal/host/proc/table"
)

// fake is a machine made of files.
type fake struct {
	t    *testing.T
	root string
}

// newFake has a process of ours in the groups at the top of each hierarchy.
func newFake(t *testing.T, mounts string) fake {
	t.Helper()
	f := fake{t: t, root: t.TempDir()}
	f.put("proc/self/mountinfo", fmt.Sprintf(mounts, f.root))
	f.put("proc/self/cgroup", "2:cpu:/\n3:cpuacct:/\n4:memory:/us\n5:blkio:/\n0::/us\n")
	f.put("proc/stat", testdata(t, "stat"))
	f.put("proc/meminfo", "MemTotal: 2000 kB\nMemAvailable: 1000 kB\n")
	f.put("proc/diskstats", testdata(t, "diskstats"))
	f.put("proc/pressure/io", "some avg10=0 avg60=0 avg300=0 total=2000000\nfull avg10=0 avg60=0 avg300=0 total=1000000\n")
	f.put("proc/pressure/cpu", "some avg10=0 avg60=0 avg300=0 total=3000000\n")
	return f
}

// Mounts of both versions; %[1]s is where the fake is.
const (
	mountV1 = `30 20 0:25 / %[1]s/cg/cpu rw - cgroup cgroup rw,cpu
31 20 0:26 / %[1]s/cg/cpuacct rw - cgroup cgroup rw,cpuacct
32 20 0:27 / %[1]s/cg/memory rw - cgroup cgroup rw,memory
33 20 0:28 / %[1]s/cg/blkio rw - cgroup cgroup rw,blkio
`
	mountV2 = "40 20 0:30 / %[1]s/cg/unified rw - cgroup2 cgroup2 rw\n"
)

func (f fake) system() System {
	return System{Proc: filepath.Join(f.root, "proc"), Sys: filepath.Join(f.root, "sys")}
}

func (f fake) put(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// process adds a process that has used so many ticks itself, and its children that ended others.
func (f fake) process(pid, parent int, name string, own, ended int, groups string, children ...int) {
	f.t.Helper()
	f.put(fmt.Sprintf("proc/%d/stat", pid), fmt.Sprintf("%d (%s) S %d 1 1 0 -1 4194304 0 0 0 0 %d 0 %d 0 20 0 1 0 5000 1000000 100 18446744073709551615\n", pid, name, parent, own, ended))
	f.put(fmt.Sprintf("proc/%d/statm", pid), "1000 300 200 1 0 100 0\n")
	f.put(fmt.Sprintf("proc/%d/cgroup", pid), groups)
	text := ""
	for _, child := range children {
		text += fmt.Sprintf("%d ", child)
	}
	f.put(fmt.Sprintf("proc/%d/task/%d/children", pid, pid), text)
}

// server finds out about the postmaster 100.
func (f fake) server() *Server {
	f.t.Helper()
	server, err := f.system().Server(table.ID{PID: 100, Start: 5000})
	if err != nil {
		f.t.Fatal(err)
	}
	return server
}
