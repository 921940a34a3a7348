package cgroup

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	v2Files      = []string{"cgroup.procs", "cgroup.freeze", "cgroup.kill"}
	freezerFiles = []string{"cgroup.procs", "tasks", "freezer.state"}
	cpuFiles     = []string{"cgroup.procs", "cpu.cfs_quota_us", "cpu.cfs_period_us"}
	memoryFiles  = []string{"cgroup.procs", "memory.limit_in_bytes"}
	blkioFiles   = []string{"cgroup.procs", "blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device"}
)

func TestDetectPureVersion2(t *testing.T) {
	f := newFake(t)
	f.mounts("0::/system.slice/ssh.service\n", "cgroup2 cg / nsdelegate")
	f.group("cg", "cgroup.controllers=cpuset cpu io memory pids\n", "cgroup.subtree_control=cpu memory pids\n")
	f.group("cg/"+parent, "cgroup.controllers=cpu io memory\n", "cgroup.subtree_control=cpu io\n")
	f.probed("cg", append(v2Files, "cgroup.controllers=cpu io memory\n")...)
	top := f.path("cg/" + parent)
	got := f.detect()
	want := Layout{
		Unified: top, FreezerReason: "cgroup version 1 freezer is not mounted",
		CPU: Controller{Version: V2, Top: top}, Memory: Controller{Version: V2, Top: top}, IO: Controller{Version: V2, Top: top},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if text := f.text("cg/cgroup.subtree_control"); text != "+io" {
		t.Errorf("asked the top of the hierarchy for %q, where only io was missing", text)
	}
	if text := f.text("cg/" + parent + "/cgroup.subtree_control"); text != "+memory" {
		t.Errorf("asked our top group for %q, where only memory was missing", text)
	}
}

func TestDetectVersion2WithoutIO(t *testing.T) {
	f := newFake(t)
	f.mounts("0::/\n", "cgroup2 cg / x")
	f.group("cg", "cgroup.controllers=cpu memory\n", "cgroup.subtree_control=cpu memory\n")
	f.group("cg/"+parent, "cgroup.controllers=cpu memory\n", "cgroup.subtree_control=cpu memory\n")
	f.probed("cg", append(v2Files, "cgroup.controllers=cpu memory\n")...)
	got := f.detect()
	want := Controller{Version: None, Reason: "cgroup version 2 does not offer io here, and cgroup version 1 blkio is not mounted"}
	if diff := cmp.Diff(want, got.IO); diff != "" {
		t.Error(diff)
	}
	if got.CPU.Version != V2 || got.Memory.Version != V2 {
		t.Errorf("cpu %+v, memory %+v", got.CPU, got.Memory)
	}
}

func TestDetectVersion1Only(t *testing.T) {
	f := newFake(t)
	f.mounts("9:freezer:/\n4:cpu,cpuacct:/\n2:memory:/\n1:blkio:/\n",
		"cgroup cg/freezer / freezer", "cgroup cg/cpu,cpuacct / cpu,cpuacct",
		"cgroup cg/memory / memory", "cgroup cg/blkio / blkio", "cgroup cg/systemd / name=systemd")
	f.probed("cg/freezer", freezerFiles...)
	f.probed("cg/cpu,cpuacct", append(cpuFiles, "cpuacct.usage")...)
	f.probed("cg/memory", memoryFiles...)
	f.probed("cg/blkio", blkioFiles...)
	got := f.detect()
	want := Layout{
		UnifiedReason: "cgroup version 2 is not mounted",
		Freezer:       f.path("cg/freezer/" + parent),
		Accounting:    f.path("cg/cpu,cpuacct/" + parent),
		CPU:           Controller{Version: V1, Top: f.path("cg/cpu,cpuacct/" + parent)},
		Memory:        Controller{Version: V1, Top: f.path("cg/memory/" + parent)},
		IO:            Controller{Version: V1, Top: f.path("cg/blkio/" + parent)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDetectHybrid(t *testing.T) {
	f := newFake(t)
	f.mounts("1:cpu:/\n0::/\n", "cgroup cg/cpu / cpu", "cgroup2 cg/unified / rw")
	f.probed("cg/cpu", cpuFiles...)
	f.group("cg/unified", "cgroup.controllers=hugetlb\n")
	f.probed("cg/unified", append(v2Files, "cgroup.controllers=\n")...)
	got := f.detect()
	if got.Unified != f.path("cg/unified/"+parent) || got.CPU.Version != V1 || got.Memory.Version != None {
		t.Errorf("%+v", got)
	}
	if want := "memory here, and cgroup version 1 memory is not mounted"; !strings.Contains(got.Memory.Reason, want) {
		t.Errorf("memory reason %q lacks %q", got.Memory.Reason, want)
	}
}

func TestDetectNothing(t *testing.T) {
	f := newFake(t)
	f.mounts("")
	got := f.detect()
	if got.Unified != "" || got.Freezer != "" || got.CPU.Version != None || got.Memory.Version != None || got.IO.Version != None {
		t.Errorf("%+v", got)
	}
	for _, reason := range []string{got.UnifiedReason, got.FreezerReason, got.CPU.Reason, got.Memory.Reason, got.IO.Reason} {
		if !strings.Contains(reason, "is not mounted") {
			t.Errorf("reason %q", reason)
		}
	}
}

func TestDetectControllerWithoutItsFile(t *testing.T) {
	f := newFake(t)
	f.mounts("", "cgroup cg/blkio / blkio")
	f.probed("cg/blkio", "cgroup.procs")
	if got := f.detect().IO; got.Version != None || !strings.Contains(got.Reason, "built or started without it") {
		t.Errorf("%+v", got)
	}
}

// A service manager delegates the group above ours; the top of the hierarchy is not ours to write.
func TestDetectDelegated(t *testing.T) {
	for name, inside := range map[string]string{"above ours": "svc", "ours": "svc/main"} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.mounts("0::/svc/main\n", "cgroup2 cg / rw")
			f.file("cg/"+parent, "a file where the group should be, so that it cannot be made")
			if inside == "svc/main" {
				f.file("cg/svc/"+parent, "the same")
			}
			f.group("cg/"+inside, "cgroup.controllers=cpu memory io\n", "cgroup.subtree_control=cpu memory io\n")
			f.probed("cg/"+inside, append(v2Files, "cgroup.controllers=\n")...)
			if got := f.detect(); got.Unified != f.path("cg/"+inside+"/"+parent) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestDetectWithoutProc(t *testing.T) {
	if _, err := Detect(t.TempDir(), parent); err == nil {
		t.Error("no error")
	}
}

func TestParseMounts(t *testing.T) {
	got := ParseMounts(`31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
41 31 0:38 /a\040b /mnt/with\040space\134x rw,nosuid shared:9 master:1 - cgroup2 cgroup2 rw,nsdelegate
short line
42 31 0:39 / /x rw
`)
	want := []Mount{
		{Point: "/sys/fs/cgroup", Root: "/", FSType: "tmpfs", Source: "tmpfs", Options: []string{"rw", "mode=755"}},
		{Point: `/mnt/with space\x`, Root: "/a b", FSType: "cgroup2", Source: "cgroup2", Options: []string{"rw", "nsdelegate"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseMounts(f *testing.F) {
	f.Add("41 31 0:38 /a\\040b /mnt\\13 rw - cgroup2 cgroup2 rw\n")
	f.Fuzz(func(_ *testing.T, text string) { ParseMounts(text) })
}

func TestBases(t *testing.T) {
	cases := []struct {
		name, root, own string
		want            []string
	}{
		{"at the top", "/", "/", []string{"/cg"}},
		{"one below", "/", "/a", []string{"/cg", "/cg/a"}},
		{"two below", "/", "/a/b", []string{"/cg", "/cg/a", "/cg/a/b"}},
		{"a container's view of its own group", "/docker/1", "/docker/1", []string{"/cg"}},
		{"below a container's group", "/docker/1", "/docker/1/x", []string{"/cg", "/cg/x"}},
		{"outside of what is mounted", "/docker/1", "/docker/2", []string{"/cg"}},
		{"outside of our namespace", "/", "/../x", []string{"/cg"}},
		{"in no group", "/", "", []string{"/cg"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Mount{Point: "/cg", Root: c.root}.bases(c.own)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseOwn(t *testing.T) {
	got := parseOwn("4:cpu,cpuacct:/a\n9:name=systemd:/s:x\n0::/b\nbroken\n")
	want := own{"cpu": "/a", "cpuacct": "/a", "name=systemd": "/s:x", "": "/b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestExplainGivesHints(t *testing.T) {
	_, err := os.Open("/proc/self/no-such-file")
	if text := explain(err); !strings.Contains(text, "no such file") || !strings.Contains(text, "kernel") {
		t.Error(text)
	}
}
