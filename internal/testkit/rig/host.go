package rig

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"howdah/internal/host/proc"
)

// MembersOn returns the members whose directories a host has, also those of databases that nobody
// knows any more.
func (r *Rig) MembersOn(zone string) ([]Member, error) {
	entries, err := os.ReadDir(filepath.Join(r.HostDir(zone), "members"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var all []Member
	for _, e := range entries {
		all = append(all, r.MemberOnDisk(zone, e.Name()))
	}
	return all, err
}

// FreezeHost stops a host: its agent, and all processes of its members. thaw lets those go on that
// are still there.
func (r *Rig) FreezeHost(zone string) (thaw func() error, err error) {
	var pids []int
	for _, part := range r.hostParts(zone) {
		pids = append(pids, r.PID(part))
	}
	signal := func(s syscall.Signal) {
		for _, pid := range pids {
			_ = syscall.Kill(pid, s) // one that is gone has nobody to be told
		}
	}
	signal(syscall.SIGSTOP)
	members, err := r.MembersOn(zone)
	var frozen []Frozen
	for _, m := range members {
		f, stopped := m.freeze(nil)
		frozen, err = append(frozen, f), errors.Join(err, stopped)
	}
	return func() error {
		var errs []error
		for _, f := range frozen {
			errs = append(errs, f.Thaw())
		}
		signal(syscall.SIGCONT)
		return errors.Join(errs...)
	}, err
}

// hostParts returns Howdah's own processes on a host.
func (r *Rig) hostParts(zone string) []string {
	if r.Moving {
		return []string{"edge-" + zone, "agent-" + zone}
	}
	return []string{"agent-" + zone}
}

// ReturnHost starts what LoseHost killed, except for members: the agent starts those.
func (r *Rig) ReturnHost(zone string) error {
	var errs []error
	for _, part := range r.hostParts(zone) {
		errs = append(errs, r.StartPart(part))
	}
	return errors.Join(errs...)
}

// LoseHost kills a host: its agent for good, and all processes of its members.
func (r *Rig) LoseHost(zone string) error {
	for _, part := range r.hostParts(zone) {
		r.KillPart(part)
	}
	members, err := r.MembersOn(zone)
	for _, m := range members {
		err = errors.Join(err, m.Signal(syscall.SIGKILL))
	}
	return err
}

// Frozen are processes that stand still.
type Frozen struct {
	host *proc.Host
	all  []proc.Process
}

// Thaw lets those go on that are still there.
func (f Frozen) Thaw() error {
	var errs []error
	for _, p := range f.all {
		if err := f.host.Signal(p, syscall.SIGCONT); !errors.Is(err, proc.ErrGone) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// FreezePostgres stops all processes of a member except Patroni.
func (m Member) FreezePostgres() (Frozen, error) {
	_, group, err := m.group()
	if err != nil {
		return Frozen{}, err
	}
	patroni, err := group.Leader()
	if err != nil {
		return Frozen{}, err
	}
	return m.freeze(func(p proc.Process) bool { return p == patroni })
}

// FreezeOnlyPatroni stops only Patroni, as FreezePatroni does. The result can undo that.
func (m Member) FreezeOnlyPatroni() (Frozen, error) {
	_, group, err := m.group()
	if err != nil {
		return Frozen{}, err
	}
	patroni, err := group.Leader()
	if err != nil {
		return Frozen{}, err
	}
	return m.freeze(func(p proc.Process) bool { return p != patroni })
}

// freeze stops the processes of a member, except those for which without returns true.
func (m Member) freeze(without func(proc.Process) bool) (Frozen, error) {
	host, all, err := m.processes()
	f := Frozen{host: host}
	for _, p := range all {
		if without != nil && without(p) {
			continue
		}
		if stopped := host.Signal(p, syscall.SIGSTOP); stopped == nil {
			f.all = append(f.all, p)
		} else if !errors.Is(stopped, proc.ErrGone) {
			err = errors.Join(err, stopped)
		}
	}
	return f, err
}
