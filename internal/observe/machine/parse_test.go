package machine

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/host/proc/cgroup"
)

// testdata returns what a kernel wrote.
func testdata(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func near(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 }

func TestParseStat(t *testing.T) {
	got, err := ParseStat(testdata(t, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	want := CPUTimes{
		User: 29038.21, Nice: 3336.17, System: 22149.95, Idle: 26034.85, IOWait: 488.15, IRQ: 0.07, SoftIRQ: 1279.33, Steal: 26.34,
		CPUs: 2, Boot: 1764590000,
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(near)); diff != "" {
		t.Error(diff)
	}
	if !near(got.Tasks(), 54524.33) || !near(got.Busy(), 55803.73) {
		t.Errorf("tasks %v, busy %v", got.Tasks(), got.Busy())
	}
	for _, text := range []string{"", "cpu 1 2 3\ncpu0 1 2 3\n", "cpu 1 2 x 4 5 6 7 8\ncpu0 1\n", "cpu 1 2 3 4 5 6 7 8\n", "btime 1\n"} {
		if _, err := ParseStat(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

func TestParseDiskstats(t *testing.T) {
	got := ParseDiskstats(testdata(t, "diskstats"))
	ms := time.Millisecond
	want := map[cgroup.Device]Disk{
		{Major: 7, Minor: 0}: {
			Name: "loop0", ReadOps: 106168, ReadBytes: 25036962 * 512, ReadTime: 213366 * ms, WriteOps: 1533436, WriteBytes: 361023579 * 512,
			WriteTime: 5272256 * ms, FlushOps: 699580, FlushTime: 212786 * ms, Busy: 575580 * ms, Flushes: true,
		},
		{Major: 254, Minor: 0}: {
			Name: "vda", ReadOps: 7601886, ReadBytes: 202378746 * 512, ReadTime: 1811174 * ms, WriteOps: 15637377, WriteBytes: 1902757640 * 512,
			WriteTime: 5371993 * ms, FlushOps: 4359858, FlushTime: 294752 * ms, Busy: 1298712 * ms, InFlight: 3, Flushes: true,
		},
		{Major: 259, Minor: 1}: { // a kernel that does not count flushes
			Name: "nvme0n1p1", ReadOps: 10, ReadBytes: 80 * 512, ReadTime: 4 * ms, WriteOps: 20, WriteBytes: 160 * 512, WriteTime: 8 * ms, Busy: 12 * ms,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParsePressure(t *testing.T) {
	got, err := ParsePressure("some avg10=98.80 avg60=89.02 avg300=44.61 total=22911544874\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=294105100\n")
	want := Pressure{Some: 22911544874 * time.Microsecond, Full: 294105100 * time.Microsecond}
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = ParsePressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n") // CPU of older kernels
	if err != nil || got.Some != 5*time.Microsecond || got.Full != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"", "some total=x", "full total=1"} {
		if _, err := ParsePressure(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

func TestParseKeyed(t *testing.T) {
	got := ParseKeyed("usage_usec 55\nnr_throttled 7\nMemTotal:       24684092 kB\nHugePages_Total:       0\nname only\n\nalone\n")
	want := map[string]float64{"usage_usec": 55, "nr_throttled": 7, "MemTotal": 24684092 * 1024, "HugePages_Total": 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestIOOfGroups(t *testing.T) {
	want2 := map[string]IO{"254:0": {ReadOps: 1, WriteOps: 2, ReadBytes: 4096, WriteBytes: 8192}, "7:3": {ReadOps: 16, ReadBytes: 1048576}}
	if diff := cmp.Diff(want2, ParseIOStat(testdata(t, "io.stat"))); diff != "" {
		t.Errorf("version 2: %s", diff)
	}
	want1 := map[string]IO{"254:0": {ReadOps: 12, WriteOps: 34, ReadBytes: 49152, WriteBytes: 139264}}
	if diff := cmp.Diff(want1, ParseThrottle(testdata(t, "io_serviced"), testdata(t, "io_service_bytes"))); diff != "" {
		t.Errorf("version 1: %s", diff)
	}
	if got := ParseThrottle("Total 0\n", "Total 0\n"); len(got) != 0 {
		t.Errorf("a group that counts no device: %v", got)
	}
}

func TestLimitsAreRead(t *testing.T) {
	for text, want := range map[string]float64{"max 100000\n": 0, "50000 100000\n": 0.5, "200000 100000": 2, "": 0, "x y": 0, "1 0": 0} {
		if got := ParseCPUMax(text); got != want {
			t.Errorf("cpu.max %q: %v", text, got)
		}
	}
	if got := quota("-1\n", "100000\n"); got != 0 {
		t.Errorf("no quota of version 1: %v", got)
	}
	for text, want := range map[string]float64{"max\n": 0, "9223372036854771712\n": 0, "1073741824\n": 1 << 30, "": 0} {
		if got := parseMemoryLimit(text); got != want {
			t.Errorf("memory limit %q: %v", text, got)
		}
	}
	const text = "254:0 rbps=max wbps=1000 riops=100 wiops=max\n7:3 rbps=max wbps=max riops=9 wiops=max\n"
	for name, want := range map[string]float64{"rbps": 0, "wbps": 1000, "riops": 100, "wiops": 0} {
		if got := parseIOMax(text, cgroup.Device{Major: 254}, name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := parseIOMax(text, cgroup.Device{Major: 8}, "riops"); got != 0 {
		t.Errorf("of a device without limits: %v", got)
	}
}

func TestParseGroups(t *testing.T) {
	got := ParseGroups("4:memory:/a/b\n2:cpu,cpuacct:/c:d\n9:name=systemd:/\n0::/e\nrubbish\n")
	want := map[string]string{"memory": "/a/b", "cpu": "/c:d", "cpuacct": "/c:d", "name=systemd": "/", "": "/e"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzParsers(f *testing.F) {
	for _, name := range []string{"stat", "diskstats", "io.stat", "io_serviced"} {
		text, _ := os.ReadFile(filepath.Join("testdata", name))
		f.Add(string(text))
	}
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = ParseStat(text)
		_, _ = ParsePressure(text)
		_ = ParseDiskstats(text)
		_ = ParseIOStat(text)
		_ = ParseThrottle(text, text)
		_ = ParseKeyed(text)
		_ = ParseGroups(text)
		_ = ParseCPUMax(text)
		_ = parseMemoryLimit(text)
		_ = parseIOMax(text, cgroup.Device{Major: 7}, "riops")
	})
}
