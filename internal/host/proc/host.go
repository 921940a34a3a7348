package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"howdah/internal/host/proc/cgroup"
	"howdah/internal/host/proc/table"
)

var (
	// ErrName says that a group's name is not of the form [a-z0-9][a-z0-9.-]*.
	ErrName = errors.New("not a name for a group of processes")
	// ErrKernel says that the kernel is too old or hides what no host can do without.
	ErrKernel = errors.New("the kernel lacks pidfd_open, which needs Linux 5.3 or later")
)

// Containment is the means by which a member's processes are kept together.
type Containment string

// The containments, best first. The package comment says what each is worth.
const (
	Cgroup2 Containment = "cgroup2"
	Freezer Containment = "freezer"
	Tree    Containment = "tree"
)

// Config is what Open needs to know.
type Config struct {
	// Parent names the top group of this Howdah home, such as "howdah-3f9a". No other home on this
	// machine may have the same.
	Parent string
	// StateDir keeps a small record of each group over restarts of the agent. It is made if it is
	// not there, and only our user may read it.
	StateDir string
	// ProcRoot is where the process table is mounted; "" means /proc.
	ProcRoot string

	only       Containment // for tests: pretend that the host has nothing better
	noKillFile bool        // for tests: pretend that it has no cgroup.kill
}

// Host is one machine as far as processes go. It is safe for concurrent use.
type Host struct {
	config      Config
	processes   table.Root
	layout      cgroup.Layout
	containment Containment
	reason      string // why the containment is no better

	mu       sync.Mutex // guards groups and children
	groups   map[string]*Group
	children map[Process]*child
}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,99}$`)

// Open finds out by trying what this host offers. It leaves no group behind. It may return ErrName
// or ErrKernel.
func Open(config Config) (*Host, error) {
	if !nameForm.MatchString(config.Parent) {
		return nil, fmt.Errorf("open processes of %q: %w", config.Parent, ErrName)
	}
	if config.ProcRoot == "" {
		config.ProcRoot = string(table.System)
	}
	if err := os.MkdirAll(config.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKernel, err)
	}
	_ = unix.Close(fd)
	layout, err := cgroup.Detect(config.ProcRoot, config.Parent)
	if err != nil {
		return nil, err
	}
	host := &Host{
		config: config, processes: table.Root(config.ProcRoot), layout: layout,
		groups: map[string]*Group{}, children: map[Process]*child{},
	}
	host.choose()
	return host, nil
}

// choose decides on the containment. In a test it ignores what the test wants not to be there.
func (h *Host) choose() {
	if h.config.only == Freezer || h.config.only == Tree {
		h.layout = h.layout.WithoutUnified("left out on purpose")
	}
	if h.config.only == Tree {
		h.layout.Freezer, h.layout.FreezerReason = "", "left out on purpose"
	}
	var unable error
	if h.layout.Unified != "" {
		unable = tryStart(h.layout.Unified)
	}
	switch {
	case h.layout.Unified != "" && unable == nil:
		h.containment = Cgroup2
	case h.layout.Freezer != "":
		h.containment, h.reason = Freezer, "version 2: "+orElse(h.layout.UnifiedReason, unable)
	default:
		h.containment = Tree
		h.reason = "version 2: " + orElse(h.layout.UnifiedReason, unable) + "; version 1: " + h.layout.FreezerReason
	}
}

func orElse(reason string, err error) string {
	if reason == "" && err != nil {
		return err.Error()
	}
	return reason
}

// trying keeps the trials of one process apart, because they share a group's name.
var trying sync.Mutex

// trueProgram does nothing and succeeds.
const trueProgram = "/bin/true"

// tryStart starts a program in a group of version 2 below top, as Start will, and checks that it
// runs. Before Linux 5.7, and under the system call filters of some containers, it does not.
func tryStart(top string) error {
	trying.Lock()
	defer trying.Unlock()
	if _, err := os.Stat(trueProgram); err != nil {
		return nil
	}
	dir := filepath.Join(top, fmt.Sprintf("try.%d", os.Getpid()))
	if err := cgroup.Make(dir); err != nil {
		return err
	}
	defer func() {
		_ = cgroup.Remove(dir)
		_ = syscall.Rmdir(top)
	}()
	group, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open control group: %w", err)
	}
	defer group.Close()
	sys := &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	child, err := os.StartProcess(trueProgram, []string{trueProgram}, &os.ProcAttr{Sys: sys, Env: []string{}})
	if err != nil {
		return fmt.Errorf("no process can be started in a control group, which needs Linux 5.7 or later: %w", err)
	}
	state, err := child.Wait()
	if err == nil && !state.Success() {
		err = fmt.Errorf("%s: %s", trueProgram, state)
	}
	if err != nil {
		return fmt.Errorf("a process started in a control group does not come to run: %w", err)
	}
	return nil
}

// Group returns the group of one member. The same name gets the same Group. It makes nothing yet,
// and has the processes of an earlier life of the agent. It may return ErrName.
func (h *Host) Group(name string) (*Group, error) {
	if !nameForm.MatchString(name) {
		return nil, fmt.Errorf("group %q: %w", name, ErrName)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	group := h.groups[name]
	if group == nil {
		group = &Group{host: h, name: name}
		h.groups[name] = group
	}
	return group, nil
}

// Groups lists the names of all groups that were started and not removed, also by an earlier life
// of the agent.
func (h *Host) Groups() ([]string, error) {
	entries, err := os.ReadDir(h.config.StateDir)
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	var names []string
	for _, entry := range entries {
		name, found := strings.CutSuffix(entry.Name(), recordSuffix)
		if found && nameForm.MatchString(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

func (h *Host) recordPath(name string) string {
	return filepath.Join(h.config.StateDir, name+recordSuffix)
}
