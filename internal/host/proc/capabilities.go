package proc

import (
	"fmt"
	"strings"

	"howdah/internal/host/proc/cgroup"
)

// Resource says whether a resource of a member can be limited here, and how.
type Resource struct {
	Version cgroup.Version `json:"version"`          // v1, v2 or none
	Reason  string         `json:"reason,omitempty"` // why none
}

// Capabilities is what this host can do for its members, in words for the user.
type Capabilities struct {
	Containment Containment `json:"containment"`
	Reason      string      `json:"reason,omitempty"` // why no better one
	Where       string      `json:"where,omitempty"`  // the control group of all members
	CPU         Resource    `json:"cpu"`
	Memory      Resource    `json:"memory"`
	IO          Resource    `json:"io"`
	Notes       []string    `json:"notes,omitempty"`
}

const (
	// Measured on Linux 6.18 with ext4 on a virtio disk and a limit of 100: 200
	// direct writes and 200 direct reads of 8 kB took 2.0 s and 1.9 s, 200
	// appending O_DSYNC writes 6.0 s (each takes the journal along, 3
	// operations), and 195 MiB of buffered writes 0.5 s, as without a limit.
	noteBuffered = "IOPS limits of control groups version 1 hold for reads and for what a process writes itself " +
		"(WAL, fsync, checkpoints); pages that the kernel writes back by itself later are not limited"
	noteBoth = "IOPS limits are applied to reads and to writes each, not to their sum"
	noteTree = "without control groups the processes of a member are found by scanning the process table: " +
		"a fence is proved for PostgreSQL and Patroni, but not for a program that hides on purpose"
)

// Describe says what Open found.
func (h *Host) Describe() Capabilities {
	c := Capabilities{
		Containment: h.containment,
		Reason:      h.reason,
		CPU:         Resource{h.layout.CPU.Version, h.layout.CPU.Reason},
		Memory:      Resource{h.layout.Memory.Version, h.layout.Memory.Reason},
		IO:          Resource{h.layout.IO.Version, h.layout.IO.Reason},
	}
	switch h.containment {
	case Cgroup2:
		c.Where = h.layout.Unified
	case Freezer:
		c.Where = h.layout.Freezer
	default:
		c.Notes = append(c.Notes, noteTree)
	}
	if c.IO.Version == cgroup.V1 {
		c.Notes = append(c.Notes, noteBuffered)
	}
	if c.IO.Version != cgroup.None {
		c.Notes = append(c.Notes, noteBoth)
	}
	return c
}

// String returns the text for `howdah status`.
func (c Capabilities) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "containment: %s", c.Containment)
	if c.Where != "" {
		fmt.Fprintf(&out, " in %s", c.Where)
	}
	if c.Reason != "" {
		fmt.Fprintf(&out, " (no better: %s)", c.Reason)
	}
	out.WriteByte('\n')
	for _, limit := range []struct {
		name string
		Resource
	}{{"cpu", c.CPU}, {"memory", c.Memory}, {"io", c.IO}} {
		fmt.Fprintf(&out, "%s limits: %s", limit.name, limit.Version)
		if limit.Reason != "" {
			fmt.Fprintf(&out, " (%s)", limit.Reason)
		}
		out.WriteByte('\n')
	}
	for _, note := range c.Notes {
		fmt.Fprintf(&out, "note: %s\n", note)
	}
	return out.String()
}
