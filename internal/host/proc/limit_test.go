package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/host/proc/cgroup"
	"howdah/internal/testkit"
)

// limited is a member whose script does its work once it is in the limited group.
func limited(t *testing.T, limits Limits, script string) (*world, Process) {
	t.Helper()
	testkit.NeedRoot(t)
	w := newWorld(t, best)
	if warnings, err := w.group.Limit(limits); err != nil || len(warnings) > 0 {
		t.Fatalf("%v, %v", warnings, err)
	}
	process := w.start("while [ ! -e go ]; do sleep 0.01; done\n" + script)
	if err := w.group.MoveDatabase(process); err != nil {
		t.Fatal(err)
	}
	return w, process
}

func needs(t *testing.T, resource Resource) {
	t.Helper()
	if resource.Version == cgroup.None {
		t.Skip("needs the limit of a resource: " + resource.Reason)
	}
}

func describeHere(t *testing.T) Capabilities {
	t.Helper()
	testkit.NeedRoot(t)
	host, err := Open(Config{Parent: "howdah-proc-test-look", StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return host.Describe()
}

// A loop that is always busy for 2 s uses 1 s of CPU where it may have half of one.
func TestCPULimitHolds(t *testing.T) {
	needs(t, describeHere(t).CPU)
	w, process := limited(t, Limits{CPUs: 0.5}, `exec timeout 2 sh -c "while :; do :; done"`)
	before, err := w.group.Usage()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	w.touch("go")
	took := w.watch(process).At.Sub(began)
	after, err := w.group.Usage()
	if err != nil {
		t.Fatal(err)
	}
	used, throttled := after.CPU-before.CPU, w.throttled()
	t.Logf("used %s of CPU in %s, throttled in %d periods", used, took, throttled)
	if used > took/2+300*time.Millisecond {
		t.Errorf("used %s of CPU in %s, where half of that was allowed", used, took)
	}
	// It has less if others keep the machine busy, but then the limit is not what keeps it from
	// more. The limit holds it when it has had half of a period, which is 0.1 s.
	if used < 250*time.Millisecond && used < time.Duration(throttled)*40*time.Millisecond {
		t.Errorf("used %s of CPU, and was held back in %d periods", used, throttled)
	}
}

// throttled returns in how many periods the limit of CPU held the database back.
func (w *world) throttled() int {
	w.t.Helper()
	text := read(w.t, filepath.Join(w.group.limitDir(w.host.layout.CPU), "cpu.stat"))
	_, after, _ := strings.Cut(text, "nr_throttled ")
	return number(w.t, strings.Fields(after + " ?")[0])
}

// Patroni is not limited with its database. There are two loops, and one may have a fiftieth, so
// that more is left for Patroni on a machine that others keep busy.
func TestCPULimitSparesPatroni(t *testing.T) {
	needs(t, describeHere(t).CPU)
	testkit.NeedRoot(t)
	w := newWorld(t, best)
	if _, err := w.group.Limit(Limits{CPUs: 0.02}); err != nil {
		t.Fatal(err)
	}
	process := w.start(`sh -c 'echo $$ >$DATA/pid.new; mv $DATA/pid.new $DATA/pid; while [ ! -e go ]; do sleep 0.01; done; exec timeout 1 sh -c "while :; do :; done"' &
while [ ! -e go ]; do sleep 0.01; done
timeout 1 sh -c "while :; do :; done"
cat /proc/$$/stat | cut -d' ' -f16`)
	w.exists("data/pid")
	database, err := Find(number(t, read(t, w.data+"/pid")))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.group.MoveDatabase(database); err != nil {
		t.Fatal(err)
	}
	w.touch("go")
	w.watch(process)
	patroni := time.Duration(number(t, strings.TrimSpace(w.logged()))) * time.Second / ticksPerSecond
	usage, err := w.group.Usage()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("Patroni used %s of CPU, its database %s", patroni, usage.CPU)
	if usage.CPU > 100*time.Millisecond || patroni < 2*usage.CPU {
		t.Errorf("Patroni used %s of CPU, its database %s with a limit of a fiftieth", patroni, usage.CPU)
	}
}

const takeMemory = `dd if=/dev/zero of=/dev/null bs=200M count=1 2>dd.log`

func TestMemoryLimitHolds(t *testing.T) {
	needs(t, describeHere(t).Memory)
	for name, c := range map[string]struct {
		limit  int64
		killed bool
	}{
		"enough": {0, false}, "too little": {50 << 20, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, process := limited(t, Limits{MemoryBytes: c.limit}, "exec "+takeMemory)
			w.touch("go")
			exit := w.watch(process)
			if killed := exit.Signal == syscall.SIGKILL; killed != c.killed || (!killed && exit.Code != 0) {
				t.Errorf("with a limit of %d: %s", c.limit, exit)
			}
		})
	}
}

// A limit below what is in use kills nobody. It is not applied, and a warning says so. Once there
// is room, it is applied.
func TestMemoryLimitBelowUse(t *testing.T) {
	needs(t, describeHere(t).Memory)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w, process := limited(t, Limits{}, fmt.Sprintf("%s=holder exec %s 100 %s", roleVar, self, "$PWD"))
	w.touch("go")
	w.exists("held")
	usage, err := w.group.Usage()
	if err != nil || usage.MemoryBytes < 100<<20 || usage.MemoryBytes > 400<<20 {
		t.Errorf("usage %+v, %v", usage, err)
	}
	warnings, err := w.group.Limit(Limits{MemoryBytes: 50 << 20})
	if err != nil || len(warnings) != 1 || warnings[0].Resource != "memory" || !errors.Is(warnings[0].Err, cgroup.ErrInUse) {
		t.Errorf("warnings %v, %v", warnings, err)
	}
	if !w.host.Alive(process) {
		t.Error("the database was killed for its limit")
	}
	if warnings, err := w.group.Limit(Limits{MemoryBytes: 500 << 20}); err != nil || len(warnings) > 0 {
		t.Errorf("warnings %v, %v", warnings, err)
	}
	w.kill()
	if warnings, err := w.group.Limit(Limits{MemoryBytes: 50 << 20}); err != nil || len(warnings) > 0 {
		t.Errorf("warnings %v, %v", warnings, err)
	}
}

// A second of synchronous writes to blocks that are there already, with a limit and without; then
// direct reads. A limit of 50 allows some more than 50, because the kernel grants by slices of
// time.
func TestIOPSLimitHolds(t *testing.T) {
	needs(t, describeHere(t).IO)
	for _, c := range []struct {
		name, script string
		count        func(cgroup.IO) int64
	}{
		{"writes", "timeout 2 dd if=/dev/zero of=file bs=8k oflag=dsync conv=notrunc count=1000", func(io cgroup.IO) int64 { return io.WriteOps }},
		{"reads", "timeout 2 dd if=file of=/dev/null bs=8k iflag=direct count=1000", func(io cgroup.IO) int64 { return io.ReadOps }},
	} {
		t.Run(c.name, func(t *testing.T) {
			free, freeTook := operations(t, 0, c.script, c.count)
			held, heldTook := operations(t, 50, c.script, c.count)
			t.Logf("without a limit %d operations in %s; with 50: %d in %s", free, freeTook, held, heldTook)
			if perSecond := float64(free) / freeTook.Seconds(); perSecond < 200 {
				t.Skipf("this disk does %.0f operations a second without a limit, too few to tell", perSecond)
			}
			if perSecond := float64(held) / heldTook.Seconds(); perSecond < 20 || perSecond > 110 {
				t.Errorf("%.0f operations a second with a limit of 50", perSecond)
			}
		})
	}
}

// operations runs a script on a file of 8 MB in the limited group, and counts its operations.
func operations(t *testing.T, iops int64, script string, count func(cgroup.IO) int64) (int64, time.Duration) {
	t.Helper()
	device, err := DeviceOf(os.TempDir())
	if err != nil {
		t.Skip("needs a temporary directory on a disk: " + err.Error())
	}
	w, process := limited(t, Limits{IOPS: iops, Device: device}, "exec "+script+" 2>dd.log")
	file, err := os.Create(filepath.Join(w.dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(make([]byte, 8<<20)); err != nil {
		t.Fatal(err)
	}
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	w.touch("go")
	exit := w.watch(process)
	took := exit.At.Sub(began)
	usage, err := w.group.Usage()
	if err != nil || usage.IO == nil {
		t.Fatalf("usage %+v, %v", usage, err)
	}
	if exit.Code == 0 { // dd has done all; version 1 of Linux 6.1 counts nothing without a limit
		return max(count(*usage.IO), 1000), took
	}
	return count(*usage.IO), took
}

func TestLimitsAreLive(t *testing.T) {
	c := describeHere(t)
	needs(t, c.CPU)
	needs(t, c.Memory)
	needs(t, c.IO)
	device, err := DeviceOf(os.TempDir())
	if err != nil {
		t.Skip("needs a temporary directory on a disk: " + err.Error())
	}
	w := newWorld(t, best)
	for _, c := range []struct {
		limits            Limits
		cpu, memory, iops string
	}{
		{Limits{CPUs: 1.5, MemoryBytes: 1 << 30, IOPS: 3000, Device: device}, "150000", "1073741824", "3000"},
		{Limits{CPUs: 0.25, MemoryBytes: 1 << 29, IOPS: 100, Device: device}, "25000", "536870912", "100"},
		{Limits{CPUs: 0.25, MemoryBytes: 1 << 29, IOPS: 100, Device: device}, "25000", "536870912", "100"},
		{Limits{Device: device}, "none", "none", "none"},
		{Limits{IOPS: 7, Device: device}, "none", "none", "7"},
		{Limits{}, "none", "none", "none"},
	} {
		if warnings, err := w.group.Limit(c.limits); err != nil || len(warnings) > 0 {
			t.Fatalf("%+v: %v, %v", c.limits, warnings, err)
		}
		if cpu, memory, iops := w.applied(device); cpu != c.cpu || memory != c.memory || iops != c.iops {
			t.Errorf("%+v: cpu %s, memory %s, iops %s", c.limits, cpu, memory, iops)
		}
	}
}

// applied reads the kernel's own record of the limits: microseconds of CPU in a tenth of a second,
// bytes, and writes a second on a device.
func (w *world) applied(device Device) (cpu, memory, iops string) {
	w.t.Helper()
	layout := w.host.layout
	limit := func(controller cgroup.Controller, v1, v2 string) string {
		if controller.Version == cgroup.V1 {
			return read(w.t, filepath.Join(w.group.limitDir(controller), v1))
		}
		return read(w.t, filepath.Join(w.group.limitDir(controller), v2))
	}
	cpu, _, _ = strings.Cut(limit(layout.CPU, "cpu.cfs_quota_us", "cpu.max"), " ")
	memory = limit(layout.Memory, "memory.limit_in_bytes", "memory.max")
	iops = limit(layout.IO, "blkio.throttle.write_iops_device", "io.max")
	iops = strings.TrimPrefix(iops, device.String()+" ")
	if at := strings.Index(iops, "wiops="); at >= 0 {
		iops = iops[at+len("wiops="):]
	}
	none := map[string]string{"-1": "none", "max": "none", "9223372036854771712": "none", "": "none"}
	for _, text := range []*string{&cpu, &memory, &iops} {
		if word, is := none[*text]; is {
			*text = word
		}
	}
	return cpu, memory, iops
}

func TestLimitRefusesNonsense(t *testing.T) {
	w := newWorld(t, best)
	for _, limits := range []Limits{{CPUs: -1}, {MemoryBytes: -1}, {IOPS: -1}, {IOPS: 100}} {
		if _, err := w.group.Limit(limits); !errors.Is(err, ErrLimits) {
			t.Errorf("%+v: %v", limits, err)
		}
	}
}

// If nothing can be limited, a limit warns of each resource, and does not fail.
func TestLimitWarns(t *testing.T) {
	w := newWorld(t, best)
	w.host.layout.CPU = cgroup.Controller{Version: cgroup.None, Reason: "no cpu"}
	w.host.layout.Memory = cgroup.Controller{Version: cgroup.None, Reason: "no memory"}
	w.host.layout.IO = cgroup.Controller{Version: cgroup.None, Reason: "no io"}
	all := Limits{CPUs: 1, MemoryBytes: 1 << 30, IOPS: 100, Device: Device{Major: 254}}
	warnings, err := w.group.Limit(all)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, warning := range warnings {
		texts = append(texts, warning.String())
	}
	if want := []string{"cpu: no cpu", "memory: no memory", "io: no io"}; !slices.Equal(texts, want) {
		t.Errorf("got %q", texts)
	}
	if warnings, err := w.group.Limit(Limits{}); err != nil || len(warnings) > 0 {
		t.Errorf("no limit at all: %v, %v", warnings, err)
	}
}

// Everything below the postmaster is moved, also while it forks, and Patroni is not.
func TestMoveDatabase(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			patroni := w.start(`setsid sh -c 'echo $$ >$DATA/pid.new; mv $DATA/pid.new $DATA/pid
sleep 1000 & (sleep 1001 & sleep 1002) & while :; do (sleep 0.05) & sleep 0.01; done' & wait`)
			w.exists("data/pid")
			w.running(6)
			postmaster, err := Find(number(t, read(t, w.data+"/pid")))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := w.group.MoveDatabase(postmaster); err != nil {
					t.Fatal(err)
				}
			}
			for _, dir := range w.group.databaseDirs() {
				inside, err := cgroup.Processes(dir)
				if err != nil {
					t.Fatal(err)
				}
				if slices.Contains(inside, patroni.PID) || !slices.Contains(inside, postmaster.PID) || len(inside) < 4 {
					t.Errorf("%s holds %v; Patroni is %d, the postmaster %d", dir, inside, patroni.PID, postmaster.PID)
				}
			}
			w.kill()
			if err := w.group.MoveDatabase(postmaster); !errors.Is(err, ErrGone) {
				t.Errorf("moving a dead database: %v", err)
			}
		})
	}
}

func TestUsageCountsWithAndWithoutControlGroups(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			process := w.start(`while [ ! -e go ]; do sleep 0.01; done; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; exec sleep 1000`)
			if err := w.group.MoveDatabase(process); err != nil {
				t.Fatal(err)
			}
			before, err := w.group.Usage()
			if err != nil {
				t.Fatal(err)
			}
			w.touch("go")
			w.writes(1)
			usage, err := w.group.Usage()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", usage)
			if used := usage.CPU - before.CPU; used < 50*time.Millisecond || used > 20*time.Second {
				t.Errorf("CPU %s", used)
			}
			if usage.MemoryBytes < 4096 || usage.MemoryBytes > 100<<20 {
				t.Errorf("memory %d", usage.MemoryBytes)
			}
			if (usage.IO == nil) != (w.host.layout.IO.Version == cgroup.None) {
				t.Errorf("io %+v", usage.IO)
			}
		})
	}
}

func TestRemove(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			if _, err := w.group.Limit(Limits{}); err != nil {
				t.Fatal(err)
			}
			w.start("exec sleep 1000")
			if err := w.group.Remove(); !errors.Is(err, ErrNotEmpty) {
				t.Errorf("removing what runs: %v", err)
			}
			if _, err := w.group.Kill(context.Background()); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(w.group.Remove(), w.group.Remove()); err != nil {
				t.Error(err)
			}
			if names, err := w.host.Groups(); err != nil || len(names) > 0 {
				t.Errorf("groups %v, %v", names, err)
			}
			w.start("exec sleep 1000") // a removed group may be used again
			w.running(1)
		})
	}
}
