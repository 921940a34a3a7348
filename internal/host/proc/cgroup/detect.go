package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Version of the control group interface.
type Version string

// The versions; None stands for "cannot be used here".
const (
	None Version = "none"
	V1   Version = "v1"
	V2   Version = "v2"
)

// Controller says how one resource can be limited here.
type Controller struct {
	Version Version
	Top     string // our top group in its hierarchy; "" for None
	Reason  string // why None, in words; "" otherwise
}

// Layout is what this host offers. Every directory is that of our top group, which need not exist
// yet.
type Layout struct {
	Unified       string // version 2, to contain processes; "" when it cannot be used
	UnifiedReason string
	Freezer       string // version 1, to contain processes; "" when it cannot be used
	FreezerReason string
	Accounting    string // version 1's cpuacct, for the CPU time used; "" when there is none
	CPU           Controller
	Memory        Controller
	IO            Controller
}

// WithoutUnified returns the layout of the same host as if it had no version 2, for the given
// reason.
func (l Layout) WithoutUnified(reason string) Layout {
	l.Unified, l.UnifiedReason = "", reason
	for _, controller := range []*Controller{&l.CPU, &l.Memory, &l.IO} {
		if controller.Version == V2 {
			*controller = Controller{Version: None, Reason: reason}
		}
	}
	return l
}

// probing keeps the probes of one process apart, because they share a group's name.
var probing sync.Mutex

// Detect looks at the mounts of this process (procRoot is /proc outside of tests). For the top
// group with this name it tries what can really be written. It leaves no group behind. On version 2
// it may leave controllers enabled for the children of a hierarchy's top.
func Detect(procRoot, parent string) (Layout, error) {
	probing.Lock()
	defer probing.Unlock()
	mounts, groups, err := readMounts(procRoot)
	if err != nil {
		return Layout{}, err
	}
	d := detector{mounts: mounts, own: groups, parent: parent}
	var layout Layout
	layout.Unified, layout.UnifiedReason = d.top("", "cgroup.procs", "cgroup.freeze")
	layout.Freezer, layout.FreezerReason = d.top("freezer", "cgroup.procs", "tasks", "freezer.state")
	layout.Accounting, _ = d.top("cpuacct", "cgroup.procs")
	version2 := d.version2(layout.Unified)
	layout.CPU = d.controller(version2, "cpu", "cpu", "cgroup.procs", "cpu.cfs_quota_us", "cpu.cfs_period_us")
	layout.Memory = d.controller(version2, "memory", "memory", "cgroup.procs", "memory.limit_in_bytes")
	layout.IO = d.controller(version2, "io", "blkio", "cgroup.procs", "blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device")
	return layout, nil
}

type detector struct {
	mounts []Mount
	own    own
	parent string
}

// top returns the first directory in which a group can be made that has these files and lets us
// write them. Otherwise it returns the reason why there is none. The empty name stands for version
// 2.
func (d detector) top(name string, files ...string) (dir, reason string) {
	mount, found := d.mounted(name)
	if !found {
		return "", hierarchy(name) + " is not mounted"
	}
	for _, base := range mount.bases(d.own[name]) {
		top := filepath.Join(base, d.parent)
		err := probe(top, files)
		if err == nil {
			return top, ""
		}
		reason = explain(err)
	}
	return "", reason
}

func (d detector) mounted(name string) (Mount, bool) {
	at := slices.IndexFunc(d.mounts, func(m Mount) bool {
		if name == "" {
			return m.FSType == "cgroup2"
		}
		return m.FSType == "cgroup" && slices.Contains(m.Options, name)
	})
	if at < 0 {
		return Mount{}, false
	}
	return d.mounts[at], true
}

func hierarchy(name string) string {
	if name == "" {
		return "cgroup version 2"
	}
	return "cgroup version 1 " + name
}

// probe makes a group in top, opens its files for writing, and removes it.
func probe(top string, files []string) error {
	dir := filepath.Join(top, probeName())
	if err := Make(dir); err != nil {
		return err
	}
	defer removeProbe(dir)
	for _, file := range files {
		f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_ = f.Close()
	}
	return nil
}

func probeName() string { return fmt.Sprintf("probe.%d", os.Getpid()) }

// removeProbe also removes the top group if that held nothing else.
func removeProbe(dir string) {
	_ = syscall.Rmdir(dir)
	_ = syscall.Rmdir(filepath.Dir(dir))
}

// version2 is the outcome of enabling version 2's controllers two levels below
// the base, where a member's sub-groups will be.
type version2 struct {
	top     string
	enabled []string
	err     error
}

// wanted lists the controllers that limit an instance.
var wanted = []string{"cpu", "memory", "io"}

func (d detector) version2(top string) version2 {
	if top == "" {
		return version2{}
	}
	dir := filepath.Join(top, probeName())
	if err := Make(dir); err != nil {
		return version2{err: err}
	}
	defer removeProbe(dir)
	outcome := version2{top: top, err: Enable(filepath.Dir(top), top)}
	outcome.enabled = available(dir)
	return outcome
}

// Enable enables those limiting controllers for dir's children that base has. dir is below base.
// The error names the first group that refused. What could be enabled stays so. It is idempotent.
func Enable(base, dir string) error {
	var refused error
	for _, group := range chain(base, dir) {
		enabled := strings.Fields(read(group, "cgroup.subtree_control"))
		for _, name := range available(group) {
			if slices.Contains(enabled, name) {
				continue
			}
			if err := put(group, "cgroup.subtree_control", "+"+name); err != nil && refused == nil {
				refused = fmt.Errorf("enable %s in %s: %w", name, group, err)
			}
		}
	}
	return refused
}

// chain lists the groups from base down to dir, both included.
func chain(base, dir string) []string {
	groups := []string{base}
	inside, err := filepath.Rel(base, dir)
	if err != nil || inside == "." {
		return groups
	}
	for _, name := range strings.Split(inside, "/") {
		groups = append(groups, filepath.Join(groups[len(groups)-1], name))
	}
	return groups
}

func available(dir string) []string {
	names := strings.Fields(read(dir, "cgroup.controllers"))
	return slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(wanted, name) })
}

func read(dir, file string) string {
	text, _ := get(dir, file)
	return text
}

// controller prefers version 2. A controller that is bound to a version 1 hierarchy is not listed
// in version 2, so there is never a choice.
func (d detector) controller(v2 version2, name, name1 string, files ...string) Controller {
	if slices.Contains(v2.enabled, name) {
		return Controller{Version: V2, Top: v2.top}
	}
	top, reason := d.top(name1, files...)
	if top != "" {
		return Controller{Version: V1, Top: top}
	}
	switch {
	case v2.err != nil:
		reason = explain(v2.err)
	case v2.top != "":
		reason = "cgroup version 2 does not offer " + name + " here, and " + reason
	}
	return Controller{Version: None, Reason: reason}
}

// explain adds what a user can do to the errors that a setup commonly meets.
func explain(err error) string {
	hint := ""
	switch {
	case errors.Is(err, syscall.EROFS):
		hint = " (the control groups are mounted read-only, as in a container)"
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		hint = " (run as root, or in a service with Delegate=yes)"
	case errors.Is(err, syscall.EBUSY):
		hint = " (this group holds processes itself, Howdah among them: run in a service with Delegate=yes and DelegateSubgroup=, or as root)"
	case errors.Is(err, syscall.ENOENT):
		hint = " (the kernel was built or started without it)"
	}
	return err.Error() + hint
}
