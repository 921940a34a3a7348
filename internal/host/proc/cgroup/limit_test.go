package cgroup

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var disk = Device{Major: 254, Minor: 0}

// These are the texts that a change of one limit writes, by file. Plain files keep the last write.
func TestLimitText(t *testing.T) {
	cases := []struct {
		name string
		set  func(dir string) error
		want map[string]string
	}{
		{"v1 cpu", func(d string) error { return SetCPU(V1, d, 0.5) },
			map[string]string{"cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "100000"}},
		{"v1 cpu, several", func(d string) error { return SetCPU(V1, d, 2.25) },
			map[string]string{"cpu.cfs_quota_us": "225000"}},
		{"v1 cpu, too little", func(d string) error { return SetCPU(V1, d, 0.0001) },
			map[string]string{"cpu.cfs_quota_us": "1000"}},
		{"v1 cpu, none", func(d string) error { return SetCPU(V1, d, 0) },
			map[string]string{"cpu.cfs_quota_us": "-1"}},
		{"v2 cpu", func(d string) error { return SetCPU(V2, d, 0.5) }, map[string]string{"cpu.max": "50000 100000"}},
		{"v2 cpu, none", func(d string) error { return SetCPU(V2, d, 0) }, map[string]string{"cpu.max": "max 100000"}},
		{"v1 memory", func(d string) error { return SetMemory(V1, d, 1<<30) },
			map[string]string{"memory.limit_in_bytes": "1073741824"}},
		{"v1 memory, none", func(d string) error { return SetMemory(V1, d, 0) },
			map[string]string{"memory.limit_in_bytes": "-1"}},
		{"v2 memory", func(d string) error { return SetMemory(V2, d, 1<<30) },
			map[string]string{"memory.max": "1073741824"}},
		{"v2 memory, none", func(d string) error { return SetMemory(V2, d, 0) }, map[string]string{"memory.max": "max"}},
		{"v1 iops", func(d string) error { return SetIOPS(V1, d, disk, 3000) },
			map[string]string{"blkio.throttle.read_iops_device": "254:0 3000", "blkio.throttle.write_iops_device": "254:0 3000"}},
		{"v1 iops, none", func(d string) error { return SetIOPS(V1, d, disk, 0) },
			map[string]string{"blkio.throttle.read_iops_device": "254:0 0", "blkio.throttle.write_iops_device": "254:0 0"}},
		{"v2 iops", func(d string) error { return SetIOPS(V2, d, disk, 3000) },
			map[string]string{"io.max": "254:0 riops=3000 wiops=3000"}},
		{"v2 iops, none", func(d string) error { return SetIOPS(V2, d, disk, 0) },
			map[string]string{"io.max": "254:0 riops=max wiops=max"}},
		{"v1 cpu that yields", func(d string) error { return YieldCPU(V1, d) }, map[string]string{"cpu.shares": "102"}},
		{"v2 cpu that yields", func(d string) error { return YieldCPU(V2, d) }, map[string]string{"cpu.weight": "10"}},
		{"v1 io that yields", func(d string) error { return YieldIO(V1, d) }, map[string]string{"blkio.weight": "50"}},
		{"v2 io that yields", func(d string) error { return YieldIO(V2, d) }, map[string]string{"io.weight": "10", "io.bfq.weight": "10"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			f.group("g", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.max", "memory.limit_in_bytes", "memory.max=max\n",
				"memory.current=900000\n", "memory.stat=anon 900000\n", "io.max",
				"blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device",
				"cpu.shares", "cpu.weight", "blkio.weight", "io.weight", "io.bfq.weight")
			if err := c.set(f.path("g")); err != nil {
				t.Fatal(err)
			}
			for name, want := range c.want {
				if got := f.text("g/" + name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestIOPSOfAnotherDeviceAreTakenAway(t *testing.T) {
	f := newFake(t)
	f.group("g", "io.max=259:1 rbps=max wbps=max riops=50 wiops=50\n")
	if err := SetIOPS(V2, f.path("g"), Device{}, 0); err != nil {
		t.Fatal(err)
	}
	if got := f.text("g/io.max"); got != "259:1 riops=max wiops=max" {
		t.Errorf("wrote %q", got)
	}
}

func TestMemoryLimitBelowUseIsRefusedInVersion2(t *testing.T) {
	f := newFake(t)
	f.group("g", "memory.max=max\n", "memory.current=1000000\n",
		"memory.stat=anon 600000\nfile 400000\ninactive_file 200000\nactive_file 100000\nslab_reclaimable 50000\n")
	if err := SetMemory(V2, f.path("g"), 649999); !errors.Is(err, ErrInUse) {
		t.Errorf("a limit below what can be given back: %v", err)
	}
	if got := f.text("g/memory.max"); got != "max\n" {
		t.Errorf("the old limit became %q", got)
	}
	if err := SetMemory(V2, f.path("g"), 650000); err != nil {
		t.Error(err)
	}
	if got := f.text("g/memory.max"); got != "650000" {
		t.Errorf("the limit is %q", got)
	}
}

func TestNobodyWeighsOperations(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(YieldIO(V1, dir), YieldIO(V2, dir)); !errors.Is(err, ErrNoWeight) {
		t.Error(err)
	}
}

func TestLimitWithoutFilesIsAnError(t *testing.T) {
	dir := t.TempDir()
	for name, err := range map[string]error{
		"v1 yield": YieldCPU(V1, dir), "v2 yield": YieldCPU(V2, dir),
		"v1 cpu": SetCPU(V1, dir, 1), "v2 cpu": SetCPU(V2, dir, 1),
		"v1 memory": SetMemory(V1, dir, 1), "v2 memory": SetMemory(V2, dir, 1),
		"v1 io": SetIOPS(V1, dir, disk, 1), "v2 io": SetIOPS(V2, dir, disk, 1),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestLiftAndRestore(t *testing.T) {
	f := newFake(t)
	f.group("cpu1", "cpu.cfs_quota_us=50000\n")
	f.group("io1", "blkio.throttle.read_iops_device=254:0 10\n", "blkio.throttle.write_iops_device=254:0 20\n")
	f.group("v2", "cpu.max=50000 100000\n", "io.max=254:0 rbps=max wbps=max riops=5 wiops=max\n")
	check := func(want map[string]string) {
		t.Helper()
		for name, text := range want {
			if got := f.text(name); got != text {
				t.Errorf("%s: got %q, want %q", name, got, text)
			}
		}
	}
	restore1 := Lift(V1, f.path("cpu1"), V1, f.path("io1"))
	restore2 := Lift(V2, f.path("v2"), V2, f.path("v2"))
	check(map[string]string{
		"cpu1/cpu.cfs_quota_us": "-1", "io1/blkio.throttle.read_iops_device": "254:0 0",
		"io1/blkio.throttle.write_iops_device": "254:0 0", "v2/cpu.max": "max", "v2/io.max": "254:0 riops=max wiops=max",
	})
	if err := errors.Join(restore1(), restore2()); err != nil {
		t.Fatal(err)
	}
	check(map[string]string{
		"cpu1/cpu.cfs_quota_us": "50000", "io1/blkio.throttle.read_iops_device": "254:0 10",
		"io1/blkio.throttle.write_iops_device": "254:0 20", "v2/cpu.max": "50000 100000",
		"v2/io.max": "254:0 rbps=max wbps=max riops=5 wiops=max",
	})
}

func TestLiftOfNothing(t *testing.T) {
	if err := Lift(None, "", None, "")(); err != nil {
		t.Error(err)
	}
	if err := Lift(V1, t.TempDir(), V2, t.TempDir())(); err != nil {
		t.Error(err)
	}
}

func TestUsageText(t *testing.T) {
	f := newFake(t)
	f.group("v2", "cpu.stat=usage_usec 1500000\nuser_usec 1\n", "memory.current=4096\n",
		"io.stat=254:0 rbytes=8192 wbytes=16384 rios=1 wios=2 dbytes=0 dios=0\n253:0 rbytes=1 wbytes=1 rios=1 wios=1\n7:0 \n")
	f.group("v1", "cpuacct.usage=2500000000\n", "memory.usage_in_bytes=8192\n",
		"blkio.throttle.io_serviced=254:0 Read 3\n254:0 Write 4\n254:0 Total 7\n7:0 Read 9\nTotal 16\n",
		"blkio.throttle.io_service_bytes=254:0 Read 30\n254:0 Write 40\nTotal 70\n")
	for _, c := range []struct {
		version Version
		device  Device
		cpu     time.Duration
		memory  int64
		io      IO
	}{
		{V2, disk, 1500 * time.Millisecond, 4096, IO{ReadOps: 1, WriteOps: 2, ReadBytes: 8192, WriteBytes: 16384}},
		{V2, Device{}, 1500 * time.Millisecond, 4096, IO{ReadOps: 2, WriteOps: 3, ReadBytes: 8193, WriteBytes: 16385}},
		{V1, disk, 2500 * time.Millisecond, 8192, IO{ReadOps: 3, WriteOps: 4, ReadBytes: 30, WriteBytes: 40}},
		{V1, Device{}, 2500 * time.Millisecond, 8192, IO{ReadOps: 12, WriteOps: 4, ReadBytes: 30, WriteBytes: 40}},
	} {
		dir := f.path(string(c.version))
		cpu, err1 := CPU(c.version, dir)
		memory, err2 := Memory(c.version, dir)
		io, err3 := ReadIO(c.version, dir, c.device)
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		if cpu != c.cpu || memory != c.memory {
			t.Errorf("%s: cpu %s, memory %d", c.version, cpu, memory)
		}
		if diff := cmp.Diff(c.io, io); diff != "" {
			t.Errorf("%s: %s", c.version, diff)
		}
	}
}

func TestUsageOfNothingIsAnError(t *testing.T) {
	for _, version := range []Version{V1, V2} {
		if _, err := CPU(version, t.TempDir()); err == nil {
			t.Errorf("%s cpu: no error", version)
		}
		if _, err := Memory(version, t.TempDir()); err == nil {
			t.Errorf("%s memory: no error", version)
		}
		if _, err := ReadIO(version, t.TempDir(), disk); err == nil {
			t.Errorf("%s io: no error", version)
		}
	}
}
