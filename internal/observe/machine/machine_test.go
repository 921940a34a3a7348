package machine

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/host/proc/cgroup"
	"howdah/internal/host/proc/table"
	"howdah/internal/observe/series"
	"howdah/internal/testkit"
)

const elsewhere = "2:cpu:/pg\n3:cpuacct:/pg\n4:memory:/pg\n5:blkio:/pg\n0::/pg\n"

// values returns all that a reading has, whether it grows or not.
func values(r series.Reading) map[string]float64 {
	all := map[string]float64{}
	for name, value := range r.Gauges {
		all[name] = value
	}
	for _, family := range r.Families {
		for name, value := range family.Counters {
			all[name] = value
		}
	}
	return all
}

func read(t *testing.T, s *Server) map[string]float64 {
	t.Helper()
	r, err := s.Read()
	if err != nil {
		t.Fatal(err)
	}
	all := values(r)
	delete(all, series.DeviceFreeShare) // of the test's own disk
	for name := range all {
		if _, known := series.Explain(name); !known {
			t.Errorf("%s is not explained", name)
		}
	}
	return all
}

func TestAServerInGroupsOfVersion1(t *testing.T) {
	f := newFake(t, mountV1)
	f.process(100, 1, "postgres", 50, 0, elsewhere, 101)
	f.process(101, 100, "postgres", 25, 0, elsewhere)
	f.put("cg/cpuacct/pg/cpuacct.usage", "12500000000\n")
	f.put("cg/cpu/pg/cpu.cfs_quota_us", "50000\n")
	f.put("cg/cpu/pg/cpu.cfs_period_us", "100000\n")
	f.put("cg/cpu/pg/cpu.stat", "nr_periods 100\nnr_throttled 40\nthrottled_time 2500000000\n")
	f.put("cg/memory/pg/memory.usage_in_bytes", "9000\n")
	f.put("cg/memory/pg/memory.limit_in_bytes", "10000\n")
	f.put("cg/memory/pg/memory.stat", "cache 1\ninactive_file 7\ntotal_inactive_file 4000\n")
	f.put("cg/blkio/pg/blkio.throttle.io_serviced", testdata(t, "io_serviced"))
	f.put("cg/blkio/pg/blkio.throttle.io_service_bytes", testdata(t, "io_service_bytes"))
	f.put("cg/blkio/pg/blkio.throttle.read_iops_device", "254:0 200\n")
	s := f.server()
	s.Devices = []cgroup.Device{{Major: 254}}
	got := read(t, s)
	want := map[string]float64{
		series.ServerCPU: 12.5, series.ServerCPULimit: 0.5, series.ServerThrottled: 40, "server.throttled_seconds": 2.5,
		series.ServerMemory: 5000, series.ServerMemoryLimit: 10000,
		series.ServerReadOps: 12, series.ServerWriteOps: 34, series.ServerReadBytes: 49152, series.ServerWriteBytes: 139264,
		series.ServerReadLimit: 200,
	}
	for name, value := range got {
		if strings.HasPrefix(name, "device.") {
			delete(got, name)
			_ = value
		}
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(near)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Limits{CPUs: 0.5, MemoryBytes: 10000, ReadIOPS: 200}, s.Limits()); diff != "" {
		t.Error(diff)
	}
	// The kernel does not count a device without a limit. That is not nothing.
	s.Devices = []cgroup.Device{{Major: 254}, {Major: 7}}
	if _, known := read(t, s)[series.ServerReadOps]; known {
		t.Error("I/O of a device that is not counted is known")
	}
}

func TestAServerInGroupsOfVersion2(t *testing.T) {
	f := newFake(t, mountV2)
	f.process(100, 1, "postgres", 50, 0, "0::/class/member/db\n")
	f.put("cg/unified/class/member/db/cpu.stat", "usage_usec 3500000\nuser_usec 1\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n")
	f.put("cg/unified/class/member/db/cpu.max", "max 100000\n")
	f.put("cg/unified/class/member/db/memory.current", "8000\n")
	f.put("cg/unified/class/member/db/memory.stat", "anon 1\ninactive_file 3000\n")
	f.put("cg/unified/class/member/db/memory.max", "max\n")
	f.put("cg/unified/class/member/db/io.stat", testdata(t, "io.stat"))
	f.put("cg/unified/class/member/db/io.pressure", "some avg10=0 avg60=0 avg300=0 total=500000\nfull avg10=0 avg60=0 avg300=0 total=250000\n")
	f.put("cg/unified/class/member/cpu.max", "150000 100000\n")
	f.put("cg/unified/class/member/cpu.stat", "usage_usec 4000000\nnr_periods 10\nnr_throttled 4\nthrottled_usec 1250000\n")
	f.put("cg/unified/class/cpu.max", "300000 100000\n")
	f.put("cg/unified/class/memory.max", "20000\n")
	f.put("cg/unified/class/io.max", "254:0 rbps=max wbps=max riops=max wiops=75\n")
	s := f.server()
	s.Devices = []cgroup.Device{{Major: 254}, {Major: 9}}
	got := read(t, s)
	for name, want := range map[string]float64{
		series.ServerCPU: 3.5, series.ServerCPULimit: 1.5, series.ServerThrottled: 4, "server.throttled_seconds": 1.25,
		series.ServerMemory: 5000, series.ServerMemoryLimit: 20000, series.ServerReadOps: 1, series.ServerWriteBytes: 8192,
		series.ServerPSIIO: 0.5, "server.psi.io_full": 0.25,
	} {
		if value, known := got[name]; !known || !near(value, want) {
			t.Errorf("%s is %v (%t), want %v", name, value, known, want)
		}
	}
	if diff := cmp.Diff(Limits{CPUs: 1.5, MemoryBytes: 20000, WriteIOPS: 75}, s.Limits()); diff != "" {
		t.Error(diff)
	}
}

// The CPU is counted by version 2, and limited by version 1: such a hybrid is what this project
// often runs on.
func TestAServerInGroupsOfBothVersions(t *testing.T) {
	f := newFake(t, mountV1+mountV2)
	f.process(100, 1, "postgres", 50, 0, elsewhere)
	f.put("cg/unified/pg/cpu.stat", "usage_usec 7000000\n")
	f.put("cg/cpu/pg/cpu.cfs_quota_us", "200000\n")
	f.put("cg/cpu/pg/cpu.cfs_period_us", "100000\n")
	f.put("cg/cpu/pg/cpu.stat", "nr_periods 1\nnr_throttled 0\nthrottled_time 0\n")
	got := read(t, f.server())
	if got[series.ServerCPU] != 7 || got[series.ServerCPULimit] != 2 {
		t.Errorf("CPU %v, limit %v", got[series.ServerCPU], got[series.ServerCPULimit])
	}
}

// A group that holds us, too, or all of the machine, says nothing of the server alone.
func TestAServerWithoutAGroupOfItsOwn(t *testing.T) {
	f := newFake(t, mountV1+mountV2)
	const ours = "2:cpu:/\n3:cpuacct:/\n4:memory:/us\n5:blkio:/\n0::/us\n"
	f.process(100, 1, "postgres", 50, 30, ours, 101, 102)
	f.process(101, 100, "postgres", 25, 0, ours, 103)
	f.process(102, 100, "postgres", 5, 0, ours)
	f.process(103, 101, "archive", 10, 0, ours)
	f.put("cg/unified/us/cpu.stat", "usage_usec 7000000\n")
	f.put("cg/cpuacct/cpuacct.usage", "12500000000\n")
	f.put("cg/memory/us/memory.usage_in_bytes", "9000\n")
	f.put("cg/memory/us/memory.stat", "total_inactive_file 4000\n")
	s := f.server()
	got := read(t, s)
	page := float64(os.Getpagesize())
	want := map[string]float64{series.ServerCPU: 1.2, series.ServerMemory: (4*100 + 200) * page}
	for name := range got {
		if strings.HasPrefix(name, "device.") {
			delete(got, name)
		}
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(near)); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(strings.Join(s.Missing, "; "), "no control group") {
		t.Errorf("missing: %v", s.Missing)
	}
}

func TestAServerThatWasStopped(t *testing.T) {
	f := newFake(t, mountV1)
	f.process(100, 1, "postgres", 50, 0, elsewhere)
	s := f.server()
	f.put("proc/100/stat", "100 (postgres) S 1 1 1 0 -1 4194304 0 0 0 0 1 0 0 0 20 0 1 0 6000 1000000 100 0\n") // another one
	if _, err := s.Read(); !errors.Is(err, table.ErrGone) {
		t.Errorf("%v", err)
	}
	if _, err := f.system().Server(table.ID{PID: 4711, Start: 1}); !errors.Is(err, table.ErrGone) {
		t.Errorf("%v", err)
	}
}

func TestTheMachine(t *testing.T) {
	f := newFake(t, mountV1)
	f.put("proc/2/stat", "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 10 0 0 20 0 1 0 1 0 0 0\n")
	f.put("proc/2/task/2/children", "3 ")
	f.put("proc/3/stat", "3 (kworker/0:1) S 2 0 0 0 -1 2129984 0 0 0 0 0 90 0 0 20 0 1 0 1 0 0 0\n")
	want := map[string]float64{
		series.MachineCPU: 55803.73, series.MachineTasks: 54524.33, series.MachineSteal: 26.34, "machine.iowait": 488.15, series.MachineCPUs: 2,
		series.MachineKernelThreads: 1, "machine.memory_available_bytes": 1000 * 1024,
		series.MachinePSIIO: 2, "machine.psi.io_full": 1, "machine.psi.cpu": 3,
	}
	got := values(f.system().Machine())
	if diff := cmp.Diff(want, got, cmp.Comparer(near)); diff != "" {
		t.Error(diff)
	}
	for name := range got {
		if _, known := series.Explain(name); !known {
			t.Errorf("%s is not explained", name)
		}
	}
	if got := values(System{Proc: t.TempDir()}.Machine()); len(got) != 0 {
		t.Errorf("of a machine that tells nothing: %v", got)
	}
}

func TestDisksAreAddedUp(t *testing.T) {
	disks := ParseDiskstats(testdata(t, "diskstats"))
	got, inFlight := sumDisks(disks, []cgroup.Device{{Major: 254}, {Major: 7}})
	if got[series.DeviceReadOps] != 7601886+106168 || got[series.DeviceFlushTime] != 294752+212786 || inFlight != 3 {
		t.Errorf("%v, %v in flight", got, inFlight)
	}
	if got["device.busy.vda"] != 1298.712 || got["device.busy.loop0"] != 575.58 {
		t.Errorf("busy: %v", got)
	}
	got, _ = sumDisks(disks, []cgroup.Device{{Major: 259, Minor: 1}})
	if _, known := got[series.DeviceFlushOps]; known {
		t.Error("flushes that the kernel does not count are known")
	}
	for _, devices := range [][]cgroup.Device{nil, {{Major: 254}, {Major: 99}}} {
		if got, _ := sumDisks(disks, devices); got != nil {
			t.Errorf("%v: %v", devices, got)
		}
	}
}

func TestFindPostmaster(t *testing.T) {
	f := newFake(t, mountV1)
	f.process(100, 1, "postgres", 1, 0, elsewhere, 101)
	f.process(101, 100, "postgres", 1, 0, elsewhere)
	f.process(102, 103, "postgres", 1, 0, elsewhere)
	f.process(103, 1, "bash", 1, 0, elsewhere)
	boot := time.Unix(1764590000, 0)
	began := boot.Add(5000 * time.Second / ticksPerSecond)
	for _, c := range []struct {
		name  string
		pid   int
		began time.Time
		want  bool
	}{
		{"it is here", 101, began, true},
		{"the clocks differ a little", 101, began.Add(1500 * time.Millisecond), true},
		{"another backend on another machine", 101, began.Add(time.Minute), false},
		{"no such process", 4711, began, false},
		{"no PostgreSQL", 103, began, false},
		{"not a child of PostgreSQL", 102, began, false},
	} {
		id, found := f.system().FindPostmaster(c.pid, c.began)
		if found != c.want || found && id.PID != 100 {
			t.Errorf("%s: %v, %t", c.name, id, found)
		}
	}
}

func TestTrees(t *testing.T) {
	f := newFake(t, mountV1)
	f.process(10, 1, "pgbench", 100, 20, elsewhere, 11)
	f.process(11, 10, "helper", 30, 0, elsewhere)
	f.process(12, 1, "other", 50, 0, elsewhere)
	system := f.system()
	seconds := func(tree Tree) float64 {
		t.Helper()
		family, ok := system.CPU("x", tree)
		if !ok {
			return -1
		}
		return family.Counters["x"]
	}
	alone := system.TreeOf(10)
	alone.Alone = true
	for _, c := range []struct {
		name string
		tree Tree
		want float64
	}{
		{"one with its children", system.TreeOf(10), 1.5},
		{"one that is below another counts once", system.TreeOf(10, 11), 1.5},
		{"two", system.TreeOf(10, 12), 2},
		{"without its children", alone, 1.2},
		{"one that does not run is left out", system.TreeOf(12, 4711), 0.5},
		{"none", system.TreeOf(), -1},
		{"one that ended", Tree{Roots: []table.ID{{PID: 10, Start: 1}}}, -1},
	} {
		if got := seconds(c.tree); !near(got, c.want) {
			t.Errorf("%s: %v s, want %v", c.name, got, c.want)
		}
	}
	if a, b := system.TreeOf(10).String(), system.TreeOf(12).String(); a == b {
		t.Errorf("two trees are both called %s", a)
	}
	if !system.TreeOf(10).Has(10) || system.TreeOf(10).Has(11) {
		t.Error("Has")
	}
}

// The real kernel's files can be read, and count what we do.
func TestThisMachine(t *testing.T) {
	var system System
	tree := system.TreeOf(os.Getpid())
	before, ok := system.CPU("x", tree)
	if !ok {
		t.Fatal("our own CPU time cannot be read")
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		for i := range 1 << 22 {
			_ = i * i
		}
		after, _ := system.CPU("x", tree)
		if after.Counters["x"] <= before.Counters["x"] {
			return errors.New("no time has passed")
		}
		return nil
	})
	got := values(system.Machine())
	for _, name := range []string{series.MachineCPU, series.MachineCPUs, "machine.memory_available_bytes"} {
		if got[name] <= 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
}

func BenchmarkMachine(b *testing.B) {
	for b.Loop() {
		System{}.Machine()
	}
}

// A file system of which much is kept for root is not full because of that.
func TestFreeShare(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		blocks, free, available uint64
		want                    float64
		ok                      bool
	}{
		"half":              {100, 50, 50, 0.5, true},
		"much for root":     {100, 80, 20, 0.5, true},
		"full but for root": {100, 20, 0, 0, true},
		"none":              {0, 0, 0, 0, false},
		"nonsense":          {10, 20, 5, 0, false},
	} {
		if got, ok := freeShare(c.blocks, c.free, c.available); got != c.want || ok != c.ok {
			t.Errorf("%s: %v, %v", name, got, ok)
		}
	}
}
