package machine

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"howdah/internal/host/proc/cgroup"
)

// Units of the kernel's files.
const (
	ticksPerSecond = 100 // USER_HZ: Linux fixes it for all architectures that Go knows, except alpha
	sectorBytes    = 512 // of /proc/diskstats, whatever the device has
)

// CPUTimes has what all CPUs did since the machine started, in seconds.
type CPUTimes struct {
	User, Nice, System, Idle, IOWait, IRQ, SoftIRQ, Steal float64
	CPUs                                                  int // how many are online
	Boot                                                  int64
}

// Tasks is the time that tasks ran, the kernel's among them.
func (c CPUTimes) Tasks() float64 { return c.User + c.Nice + c.System }

// Busy is the time that the CPUs ran anything.
func (c CPUTimes) Busy() float64 { return c.Tasks() + c.IRQ + c.SoftIRQ }

// ParseStat reads the text of /proc/stat. The time of guests is in User already.
func ParseStat(text string) (CPUTimes, error) {
	var c CPUTimes
	places := []*float64{&c.User, &c.Nice, &c.System, &c.Idle, &c.IOWait, &c.IRQ, &c.SoftIRQ, &c.Steal}
	found := false
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) < 2:
		case fields[0] == "cpu":
			if len(fields) <= len(places) {
				return c, fmt.Errorf("read CPU times: only %d fields", len(fields))
			}
			for i, place := range places {
				ticks, err := strconv.ParseUint(fields[i+1], 10, 64)
				if err != nil {
					return c, fmt.Errorf("read CPU times: %w", err)
				}
				*place = float64(ticks) / ticksPerSecond
			}
			found = true
		case strings.HasPrefix(fields[0], "cpu"):
			c.CPUs++
		case fields[0] == "btime":
			c.Boot, _ = strconv.ParseInt(fields[1], 10, 64)
		}
	}
	if !found || c.CPUs == 0 {
		return c, fmt.Errorf("read CPU times: no line of all CPUs")
	}
	return c, nil
}

// Disk has what a block device did since the machine started.
type Disk struct {
	Name                           string
	ReadOps, WriteOps, FlushOps    float64
	ReadBytes, WriteBytes          float64
	ReadTime, WriteTime, FlushTime time.Duration // of all requests, added up
	Busy                           time.Duration // with anything to do
	InFlight                       float64       // now
	Flushes                        bool          // whether the kernel counts them (since 5.5)
}

// Positions in a line of /proc/diskstats; the kernel's admin-guide/iostats.rst counts from the
// field after the name.
const (
	diskName       = 2
	diskReads      = 3
	diskReadSize   = 5
	diskReadTime   = 6
	diskWrites     = 7
	diskWriteSize  = 9
	diskWriteTime  = 10
	diskInFlight   = 11
	diskBusy       = 12
	diskFlushes    = 18
	diskFlushTime  = 19
	diskLeastCount = diskBusy + 1
)

// ParseDiskstats reads the text of /proc/diskstats. It leaves out lines that it cannot read.
func ParseDiskstats(text string) map[cgroup.Device]Disk {
	disks := map[cgroup.Device]Disk{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < diskLeastCount {
			continue
		}
		at := func(i int) float64 {
			if i >= len(fields) {
				return 0
			}
			value, _ := strconv.ParseFloat(fields[i], 64)
			return value
		}
		ms := func(i int) time.Duration { return time.Duration(at(i)) * time.Millisecond }
		disks[cgroup.Device{Major: uint32(at(0)), Minor: uint32(at(1))}] = Disk{
			Name:    fields[diskName],
			ReadOps: at(diskReads), ReadBytes: at(diskReadSize) * sectorBytes, ReadTime: ms(diskReadTime),
			WriteOps: at(diskWrites), WriteBytes: at(diskWriteSize) * sectorBytes, WriteTime: ms(diskWriteTime),
			FlushOps: at(diskFlushes), FlushTime: ms(diskFlushTime), Flushes: len(fields) > diskFlushTime,
			InFlight: at(diskInFlight), Busy: ms(diskBusy),
		}
	}
	return disks
}

// Pressure is for how long tasks waited for a resource since the machine, or the group, began.
type Pressure struct {
	Some time.Duration // at least one waited
	Full time.Duration // all waited at once
}

// ParsePressure reads a file of /proc/pressure, or of a control group of version 2.
func ParsePressure(text string) (Pressure, error) {
	var p Pressure
	found := false
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(line, " ")
		_, total, ok := strings.Cut(rest, "total=")
		if !ok {
			continue
		}
		micros, err := strconv.ParseInt(strings.TrimSpace(total), 10, 64)
		if err != nil {
			return p, fmt.Errorf("read pressure: %w", err)
		}
		switch kind {
		case "some":
			p.Some, found = time.Duration(micros)*time.Microsecond, true
		case "full":
			p.Full = time.Duration(micros) * time.Microsecond
		}
	}
	if !found {
		return p, fmt.Errorf("read pressure: no line of some tasks")
	}
	return p, nil
}

// ParseKeyed reads a file of "name value" lines, as cpu.stat and memory.stat are. A colon after the
// name and a unit after the value are allowed, as in /proc/meminfo. It leaves out lines that it
// cannot read.
func ParseKeyed(text string) map[string]float64 {
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		value, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			continue
		}
		if len(fields) > 2 && fields[2] == "kB" {
			value *= 1024
		}
		values[strings.TrimSuffix(fields[0], ":")] = value
	}
	return values
}

// IO counts what a control group read and wrote.
type IO struct {
	ReadOps, WriteOps, ReadBytes, WriteBytes float64
}

// ParseIOStat reads version 2's io.stat, by device. A device that the group has not used has no
// line.
func ParseIOStat(text string) map[string]IO {
	all := map[string]IO{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		io := all[fields[0]]
		places := map[string]*float64{"rios": &io.ReadOps, "wios": &io.WriteOps, "rbytes": &io.ReadBytes, "wbytes": &io.WriteBytes}
		for _, field := range fields[1:] {
			name, value, _ := strings.Cut(field, "=")
			if place := places[name]; place != nil {
				*place, _ = strconv.ParseFloat(value, 64)
			}
		}
		all[fields[0]] = io
	}
	return all
}

// ParseThrottle reads version 1's blkio.throttle.io_serviced and io_service_bytes, by device. The
// kernel has no line for a device that it does not count.
func ParseThrottle(ops, bytes string) map[string]IO {
	all := map[string]IO{}
	each := func(text string, place func(io *IO, kind string) *float64) {
		for line := range strings.Lines(text) {
			fields := strings.Fields(line)
			if len(fields) != 3 {
				continue
			}
			io := all[fields[0]]
			if at := place(&io, fields[1]); at != nil {
				*at, _ = strconv.ParseFloat(fields[2], 64)
			}
			all[fields[0]] = io
		}
	}
	each(ops, func(io *IO, kind string) *float64 { return either(kind, &io.ReadOps, &io.WriteOps) })
	each(bytes, func(io *IO, kind string) *float64 { return either(kind, &io.ReadBytes, &io.WriteBytes) })
	return all
}

func either(kind string, read, write *float64) *float64 {
	switch kind {
	case "Read":
		return read
	case "Write":
		return write
	default:
		return nil
	}
}

// ParseCPUMax reads version 2's cpu.max, in CPUs. It returns 0 if there is no limit.
func ParseCPUMax(text string) float64 {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return 0
	}
	return quota(fields[0], fields[1])
}

// quota returns CPUs. "max" and a negative quota are no limit.
func quota(quota, period string) float64 {
	q, err := strconv.ParseFloat(strings.TrimSpace(quota), 64)
	p, errPeriod := strconv.ParseFloat(strings.TrimSpace(period), 64)
	if err != nil || errPeriod != nil || q <= 0 || p <= 0 {
		return 0
	}
	return q / p
}

// unlimitedBytes is more memory than any machine has. Version 1 writes no limit as a number near
// the greatest of all.
const unlimitedBytes = math.MaxInt64 / 4

// parseMemoryLimit reads a memory limit, in bytes. It returns 0 if there is none.
func parseMemoryLimit(text string) float64 {
	value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || value >= unlimitedBytes {
		return 0
	}
	return value
}

// ParseGroups reads the text of /proc/PID/cgroup: the path of the group by controller. The empty
// name stands for version 2.
func ParseGroups(text string) map[string]string {
	groups := map[string]string{}
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			groups[name] = parts[2]
		}
	}
	return groups
}
