package cgroup

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// IO counts what a group has read and written since it was made.
type IO struct {
	ReadOps    int64 `json:"read_ops"`
	WriteOps   int64 `json:"write_ops"`
	ReadBytes  int64 `json:"read_bytes"`
	WriteBytes int64 `json:"write_bytes"`
}

// CPU returns the CPU time that a group has used since it was made. Version 2 counts it in every
// group, also without a cpu controller. Version 1 counts it in cpuacct.
func CPU(version Version, dir string) (time.Duration, error) {
	if version == V1 {
		nanos, err := number(dir, "cpuacct.usage")
		return time.Duration(nanos), err
	}
	text, err := get(dir, "cpu.stat")
	if err != nil {
		return 0, err
	}
	micros, err := keyed(text, "usage_usec")
	if err != nil {
		return 0, fmt.Errorf("read CPU time of %s: %w", dir, err)
	}
	return time.Duration(micros) * time.Microsecond, nil
}

// Memory returns what a group uses now, in bytes, page cache included.
func Memory(version Version, dir string) (int64, error) {
	if version == V1 {
		return number(dir, "memory.usage_in_bytes")
	}
	return number(dir, "memory.current")
}

// ReadIO counts operations and bytes on one device, or on all devices for the zero Device. Version
// 1 counts from the first time that a limit was written for the device. On Linux 6.18 that may be a
// limit of 0, which is none. On 6.1 it counts only while there is a limit (both measured).
func ReadIO(version Version, dir string, device Device) (IO, error) {
	if version == V2 {
		text, err := get(dir, "io.stat")
		return parseIOStat(text, device), err
	}
	ops, err := get(dir, "blkio.throttle.io_serviced")
	if err != nil {
		return IO{}, err
	}
	bytes, err := get(dir, "blkio.throttle.io_service_bytes")
	if err != nil {
		return IO{}, err
	}
	var sum IO
	sum.ReadOps, sum.WriteOps = parseThrottle(ops, device)
	sum.ReadBytes, sum.WriteBytes = parseThrottle(bytes, device)
	return sum, nil
}

func parseThrottle(text string, device Device) (reads, writes int64) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 || !device.covers(fields[0]) {
			continue
		}
		value, _ := strconv.ParseInt(fields[2], 10, 64)
		switch fields[1] {
		case "Read":
			reads += value
		case "Write":
			writes += value
		}
	}
	return reads, writes
}

func parseIOStat(text string, device Device) IO {
	var sum IO
	places := map[string]*int64{
		"rios": &sum.ReadOps, "wios": &sum.WriteOps, "rbytes": &sum.ReadBytes, "wbytes": &sum.WriteBytes,
	}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || !device.covers(fields[0]) {
			continue
		}
		for _, field := range fields[1:] {
			name, text, _ := strings.Cut(field, "=")
			if place := places[name]; place != nil {
				value, _ := strconv.ParseInt(text, 10, 64)
				*place += value
			}
		}
	}
	return sum
}
