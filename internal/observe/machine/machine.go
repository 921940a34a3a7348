// Package machine reads what the operating system knows of a PostgreSQL server that runs on this
// machine: its control groups of version 1 or 2, its processes, its disks, and the machine.
//
// Invariants:
//   - It only reads. What it may not read is absent.
//   - A control group counts as the server's if it does not hold us, too.
//   - The CPU of processes that ended counts if somebody waited for them.
package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/host/proc/cgroup"
	"howdah/internal/host/proc/table"
	"howdah/internal/observe/series"
)

// System has the two roots that everything is read from. The zero value is this machine. Control
// groups are read from where they are mounted.
type System struct {
	Proc string // /proc
	Sys  string // /sys
}

func (s System) proc(name string) string {
	if s.Proc == "" {
		return filepath.Join("/proc", name)
	}
	return filepath.Join(s.Proc, name)
}

func (s System) cpuTimes() (CPUTimes, error) {
	text, err := os.ReadFile(s.proc("stat"))
	if err != nil {
		return CPUTimes{}, fmt.Errorf("read CPU times: %w", err)
	}
	return ParseStat(string(text))
}

// Machine reads the whole machine. It never fails: what cannot be read is absent.
func (s System) Machine() series.Reading {
	r := series.NewReading()
	counters := map[string]float64{}
	at := time.Now()
	if cpu, err := s.cpuTimes(); err == nil {
		counters[series.MachineCPU] = cpu.Busy()
		counters[series.MachineTasks] = cpu.Tasks()
		counters[series.MachineSteal] = cpu.Steal
		counters["machine.iowait"] = cpu.IOWait
		r.Gauges[series.MachineCPUs] = float64(cpu.CPUs)
	}
	if kernel, ok := s.kernelSeconds(); ok {
		counters[series.MachineKernelThreads] = kernel
	}
	pressures(counters, "machine", func(name string) (string, bool) {
		text, err := os.ReadFile(s.proc("pressure/" + name))
		return string(text), err == nil
	})
	r.Add("machine", "", at, counters)
	if text, err := os.ReadFile(s.proc("meminfo")); err == nil {
		if available, known := ParseKeyed(string(text))["MemAvailable"]; known {
			r.Gauges["machine.memory_available_bytes"] = available
		}
	}
	return r
}

// pressures adds the shares of time that something waited, in seconds of waiting.
func pressures(counters map[string]float64, family string, read func(resource string) (string, bool)) {
	for _, resource := range []string{"cpu", "io", "memory"} {
		text, ok := read(resource)
		if !ok {
			continue
		}
		p, err := ParsePressure(text)
		if err != nil {
			continue
		}
		counters[family+".psi."+resource] = p.Some.Seconds()
		if resource != "cpu" { // the kernel has no such thing for all CPUs
			counters[family+".psi."+resource+"_full"] = p.Full.Seconds()
		}
	}
}

// CPU reads the CPU time of a tree of processes as the column of that name, which has one dot.
func (s System) CPU(column string, tree Tree) (series.Family, bool) {
	at := time.Now()
	seconds, ok := s.cpuSeconds(tree)
	return series.Family{At: at, Epoch: tree.String(), Counters: map[string]float64{column: seconds}}, ok
}

// Server is a PostgreSQL server on this machine. Its methods are not for several goroutines.
type Server struct {
	// Postmaster is its first process.
	Postmaster table.ID
	// Devices lists the disks of its data directory, WAL and tablespaces. It is empty if they are
	// on no disk, or if we may not see where they are.
	Devices []cgroup.Device
	// Missing says in words what cannot be read of it.
	Missing []string

	system System
	groups groups
}

// Server finds out what can be read of the server with this postmaster. Call it again if the server
// was started again, or moved to another group.
func (s System) Server(postmaster table.ID) (*Server, error) {
	if _, err := table.Root(s.proc("")).Live(postmaster); err != nil {
		return nil, err
	}
	groups, err := s.groupsOf(postmaster.PID)
	if err != nil {
		return nil, err
	}
	server := &Server{Postmaster: postmaster, system: s, groups: groups}
	if server.Devices, err = s.devices(server.DataDir()); err != nil {
		server.Missing = append(server.Missing, fmt.Sprintf("device: %v", err))
	}
	if _, ok := groups.io.ioOf(server.Devices); !ok {
		server.Missing = append(server.Missing, "I/O of the server alone: it has no control group that counts it")
	}
	return server, nil
}

// DataDir is the data directory as the postmaster sees it: it works there.
func (s *Server) DataDir() string { return s.system.proc(fmt.Sprintf("%d/cwd", s.Postmaster.PID)) }

// devices returns the disks below a data directory. Those of no block device are left out, and
// are an error only if there is no other.
func (s System) devices(dir string) ([]cgroup.Device, error) {
	paths := []string{dir, filepath.Join(dir, "pg_wal")}
	spaces, _ := os.ReadDir(filepath.Join(dir, "pg_tblspc"))
	for _, space := range spaces {
		paths = append(paths, filepath.Join(dir, "pg_tblspc", space.Name()))
	}
	var devices []cgroup.Device
	var errs []error
	for _, path := range paths {
		device, err := cgroup.System{Proc: s.Proc, Sys: s.Sys}.DeviceOf(path)
		switch {
		case err != nil:
			errs = append(errs, err)
		case !slices.Contains(devices, device):
			devices = append(devices, device)
		}
	}
	if len(devices) > 0 {
		return devices, nil
	}
	return nil, errors.Join(errs...)
}

// Read reads the server's counters and gauges now. It returns table.ErrGone if the server was
// stopped. What else cannot be read is absent.
func (s *Server) Read() (series.Reading, error) {
	if _, err := table.Root(s.system.proc("")).Live(s.Postmaster); err != nil {
		return series.Reading{}, err
	}
	r := series.NewReading()
	at := time.Now()
	epoch := fmt.Sprint(s.Postmaster, s.groups)
	counters := map[string]float64{}
	s.cpu(counters)
	s.groups.throttling(counters, r.Gauges)
	pressures(counters, "server", func(resource string) (string, bool) { return s.groups.unified.read(resource + ".pressure") })
	s.memory(r.Gauges)
	limits := s.Limits()
	for name, limit := range map[string]float64{series.ServerReadLimit: limits.ReadIOPS, series.ServerWriteLimit: limits.WriteIOPS} {
		if limit > 0 {
			r.Gauges[name] = limit
		}
	}
	r.Add("server", epoch, at, counters)
	if io, ok := s.groups.io.ioOf(s.Devices); ok {
		r.Add("server_io", epoch, at, map[string]float64{
			series.ServerReadOps: io.ReadOps, series.ServerWriteOps: io.WriteOps,
			series.ServerReadBytes: io.ReadBytes, series.ServerWriteBytes: io.WriteBytes,
		})
	}
	s.disks(r)
	return r, nil
}

// cpu prefers a control group, which keeps what processes used that have ended.
func (s *Server) cpu(counters map[string]float64) {
	if seconds, ok := s.groups.cpuSeconds(); ok {
		counters[series.ServerCPU] = seconds
	} else if seconds, ok := s.system.cpuSeconds(s.tree()); ok {
		counters[series.ServerCPU] = seconds
	}
}

// Own lists the processes whose CPU Read counts as the server's. Those that descend from them count, too.
func (s *Server) Own() []int {
	if all := s.groups.processes(); len(all) > 0 {
		return all
	}
	return []int{s.Postmaster.PID}
}

func (s *Server) tree() Tree { return Tree{Roots: []table.ID{s.Postmaster}} }

func (s *Server) memory(gauges map[string]float64) {
	if bytes, ok := s.groups.memory.memoryBytes(); ok {
		gauges[series.ServerMemory] = bytes
	} else if bytes, ok := s.system.resident(s.tree()); ok {
		gauges[series.ServerMemory] = bytes
	}
	if limit := s.groups.memory.memoryLimit(); limit > 0 {
		gauges[series.ServerMemoryLimit] = limit
	}
}

// disks adds what the server's devices did, whoever asked them.
func (s *Server) disks(r series.Reading) {
	at := time.Now()
	if text, err := os.ReadFile(s.system.proc("diskstats")); err == nil {
		if counters, inFlight := sumDisks(ParseDiskstats(string(text)), s.Devices); counters != nil {
			r.Add("device", fmt.Sprint(s.Devices), at, counters)
			r.Gauges[series.DeviceInFlight] = inFlight
		}
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(s.DataDir(), &stat); err == nil {
		if share, ok := freeShare(stat.Blocks, stat.Bfree, stat.Bavail); ok {
			r.Gauges[series.DeviceFreeShare] = share
		}
	}
}

// freeShare is how much of a file system is free, as df says it: of what is used and what may be used. What
// is kept for root is neither.
func freeShare(blocks, free, available uint64) (share float64, ok bool) {
	if free > blocks || blocks-free+available == 0 {
		return 0, false
	}
	return float64(available) / float64(blocks-free+available), true
}

// sumDisks adds the devices up. It returns nil if one of them is not known. Busy is that of each
// device, by its own column: the busiest is found in the rates.
func sumDisks(disks map[cgroup.Device]Disk, devices []cgroup.Device) (counters map[string]float64, inFlight float64) {
	if len(devices) == 0 {
		return nil, 0
	}
	counters = map[string]float64{}
	for _, device := range devices {
		disk, known := disks[device]
		if !known {
			return nil, 0
		}
		counters[series.DeviceReadOps] += disk.ReadOps
		counters[series.DeviceReadBytes] += disk.ReadBytes
		counters[series.DeviceReadTime] += ms(disk.ReadTime)
		counters[series.DeviceWriteOps] += disk.WriteOps
		counters[series.DeviceWriteBytes] += disk.WriteBytes
		counters[series.DeviceWriteTime] += ms(disk.WriteTime)
		if disk.Flushes {
			counters[series.DeviceFlushOps] += disk.FlushOps
			counters[series.DeviceFlushTime] += ms(disk.FlushTime)
		}
		counters[series.DeviceBusy+"."+disk.Name] = disk.Busy.Seconds()
		inFlight += disk.InFlight
	}
	return counters, inFlight
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
