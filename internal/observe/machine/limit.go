package machine

import (
	"strconv"
	"strings"

	"howdah/internal/host/proc/cgroup"
)

// Limits is what a server's control group may use. 0 stands for no limit.
type Limits struct {
	CPUs        float64 `json:"cpus,omitempty"`
	MemoryBytes float64 `json:"memory_bytes,omitempty"`
	// On the disk that limits the most.
	ReadIOPS  float64 `json:"read_iops,omitempty"`
	WriteIOPS float64 `json:"write_iops,omitempty"`
	ReadBPS   float64 `json:"read_bytes_per_second,omitempty"`
	WriteBPS  float64 `json:"write_bytes_per_second,omitempty"`
}

// Limits reads the limits that hold now.
func (s *Server) Limits() Limits {
	cpus, _ := s.groups.cpu.cpuLimit()
	l := Limits{CPUs: cpus, MemoryBytes: s.groups.memory.memoryLimit()}
	for _, g := range s.groups.io.above() {
		for _, device := range s.Devices {
			l.tighten(g, device)
		}
	}
	return l
}

func (l *Limits) tighten(g group, device cgroup.Device) {
	if g.version == cgroup.V2 {
		text, _ := g.read("io.max")
		tighten(&l.ReadIOPS, parseIOMax(text, device, "riops"))
		tighten(&l.WriteIOPS, parseIOMax(text, device, "wiops"))
		tighten(&l.ReadBPS, parseIOMax(text, device, "rbps"))
		tighten(&l.WriteBPS, parseIOMax(text, device, "wbps"))
		return
	}
	for file, place := range map[string]*float64{
		"read_iops_device": &l.ReadIOPS, "write_iops_device": &l.WriteIOPS,
		"read_bps_device": &l.ReadBPS, "write_bps_device": &l.WriteBPS,
	} {
		text, _ := g.read("blkio.throttle." + file)
		tighten(place, ParseKeyed(text)[device.String()])
	}
}

func tighten(place *float64, limit float64) {
	if limit > 0 && (*place == 0 || limit < *place) {
		*place = limit
	}
}

// parseIOMax reads one limit of version 2's io.max, as in "254:0 rbps=max wbps=max riops=100
// wiops=max". It returns 0 if there is none.
func parseIOMax(text string, device cgroup.Device, name string) float64 {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != device.String() {
			continue
		}
		for _, field := range fields[1:] {
			if value, ok := strings.CutPrefix(field, name+"="); ok {
				limit, _ := strconv.ParseFloat(value, 64) // "max" is none
				return limit
			}
		}
	}
	return 0
}
