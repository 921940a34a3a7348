package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/host/proc"
	"howdah/internal/host/proc/cgroup"
	"howdah/internal/observe/machine"
)

// slowOperations is how many operations a second a slow disk makes, reads and writes each.
const slowOperations = 4

// The files of control groups that limit a disk, in versions 1 and 2 (blkio-controller.rst, cgroup-v2.rst
// of Linux).
var limitFilesV1 = []string{"blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device"}

const limitFileV2 = "io.max"

// slowDisk lets the primary's PostgreSQL make very few operations on its disk.
func (g *Ground) slowDisk(ctx context.Context) (*Made, error) {
	m, err := g.primary(ctx)
	if err != nil {
		return nil, err
	}
	device, err := proc.DeviceOf(m.dataDir())
	if err != nil {
		return nil, fmt.Errorf("%w: slow-disk: %w", ErrImpossible, err)
	}
	postmaster, err := m.postmaster()
	if err != nil {
		return nil, err
	}
	limits, slow, err := slowLimits(g.Home.ID, postmaster.PID, device)
	if err != nil {
		return nil, err
	}
	made, err := g.begin(Record{Kind: "slow-disk", Limits: limits})
	if err != nil {
		return made, err
	}
	for n, l := range limits {
		if err := os.WriteFile(l.Path, []byte(slow[n]), 0o600); err != nil {
			return made, fmt.Errorf("make the disk slow: %w", err)
		}
	}
	for n, l := range limits {
		line := deviceLine(l.Path, device)
		if !holds(line, slow[n]) {
			return made, fmt.Errorf("%w: %s has %q", ErrNotProved, l.Path, line)
		}
	}
	made.Proof = fmt.Sprintf("PostgreSQL of %s may make %d reads and writes a second on the disk %s", m, slowOperations, device)
	made.healed = func() error {
		for _, l := range limits {
			line := deviceLine(l.Path, device)
			if _, err := os.Stat(l.Path); err == nil && !holds(line, l.Before) && (line != "" || !unlimited(l.Before)) {
				return fmt.Errorf("%w: %s has %q, and had %q", errStands, l.Path, line, l.Before)
			}
		}
		return nil
	}
	return made, nil
}

// slowLimits finds the limits of a process of a member, and what they are to be.
func slowLimits(homeID string, pid int, device proc.Device) (limits []Limit, slow []string, err error) {
	dir, version, err := blockGroup(homeID, pid)
	if err != nil {
		return nil, nil, err
	}
	if version == 2 {
		path := filepath.Join(dir, limitFileV2)
		before := deviceLine(path, device)
		if before == "" {
			before = device.String() + " rbps=max wbps=max riops=max wiops=max"
		}
		return []Limit{{Path: path, Before: before}}, []string{fmt.Sprintf("%s riops=%d wiops=%d", device, slowOperations, slowOperations)}, nil
	}
	for _, name := range limitFilesV1 {
		path := filepath.Join(dir, name)
		before := deviceLine(path, device)
		if before == "" {
			before = device.String() + " 0" // none
		}
		limits, slow = append(limits, Limit{Path: path, Before: before}), append(slow, fmt.Sprintf("%s %d", device, slowOperations))
	}
	return limits, slow, nil
}

// holds reports whether a line of limits has all that another one asks for.
func holds(line, wanted string) bool {
	have := strings.Fields(line)
	return len(have) > 0 && !slices.ContainsFunc(strings.Fields(wanted), func(field string) bool { return !slices.Contains(have, field) })
}

// unlimited reports whether a line says that there are no limits. The kernel then shows no line.
func unlimited(line string) bool {
	fields := strings.Fields(line)
	return len(fields) > 1 && !slices.ContainsFunc(fields[1:], func(field string) bool { return field != "0" && !strings.HasSuffix(field, "=max") })
}

// deviceLine is the line of a device in a file of limits.
func deviceLine(path string, device proc.Device) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, device.String()+" ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// blockGroup finds the control group that limits the disk of a process, which is one of the home's.
func blockGroup(homeID string, pid int) (dir string, version int, err error) {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", 0, fmt.Errorf("find the control group of process %d: %w", pid, err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", 0, err
	}
	dir, version = chooseGroup(string(groups), string(mounts))
	if dir == "" || !strings.Contains(dir, "howdah-"+homeID+"-") {
		return "", 0, fmt.Errorf("%w: slow-disk: no control group of this machine limits the disks of members: see howdah status -o json, limits", ErrImpossible)
	}
	if version == 2 {
		if _, err := os.Stat(filepath.Join(dir, limitFileV2)); err != nil {
			return "", 0, fmt.Errorf("%w: slow-disk: %w", ErrImpossible, err)
		}
	}
	return dir, version, nil
}

// chooseGroup returns where the control group of a process lies that limits disks, and its version. groups
// is a file /proc/PID/cgroup, and mounts a file /proc/PID/mountinfo.
func chooseGroup(groups, mounts string) (dir string, version int) {
	names := machine.ParseGroups(groups)
	v1, v2 := names["blkio"], names[""]
	for _, m := range cgroup.ParseMounts(mounts) {
		switch {
		case v1 != "" && m.FSType == "cgroup" && slices.Contains(m.Options, "blkio"):
			return filepath.Join(m.Point, strings.TrimPrefix(v1, m.Root)), 1
		case v1 == "" && v2 != "" && m.FSType == "cgroup2":
			dir, version = filepath.Join(m.Point, strings.TrimPrefix(v2, m.Root)), 2
		}
	}
	return dir, version
}

var errOthers = errors.New("it would stop databases that are not the lab's")

// sparesOthers refuses to lose a host on which a database that is not the lab's would stop.
func (g *Ground) sparesOthers(ctx context.Context, kind, host string) error {
	var status admin.Status
	if err := g.API.Admin(ctx, admin.VerbStatus, admin.Nothing{}, &status); err != nil {
		return err
	}
	own, err := g.Truth(ctx)
	if err != nil {
		return err
	}
	for _, d := range status.Databases {
		if own != nil && d.ResourceID == own.ResourceID || !stops(d, host) {
			continue
		}
		return fmt.Errorf("%w: %s: %w: %s has its primary on %s, and no standby elsewhere that confirms commits", ErrImpossible, kind, errOthers, d.Name, host)
	}
	return nil
}

// stops reports whether a database stops, or loses what was acknowledged, if a host is lost.
func stops(d admin.Database, host string) bool {
	primary, elsewhere := false, false
	for _, m := range d.Members {
		primary = primary || m.Host == host && m.Role != admin.RoleStandby
		elsewhere = elsewhere || m.Host != host && m.Ready && (m.Sync == admin.SyncSync || m.Sync == admin.SyncQuorum)
	}
	return primary && !elsewhere && d.Status != "stopped"
}
