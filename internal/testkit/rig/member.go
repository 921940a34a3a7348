package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"howdah/internal/control/plan"
	"howdah/internal/engine/postgres"
	"howdah/internal/failover/fence"
	"howdah/internal/failover/postmortem"
	"howdah/internal/host/agent"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// Member is one member of a database, with the host that it is on.
type Member struct {
	Database string
	plan.Placed
	rig *Rig
}

// Database returns the resource id of an instance.
func (r *Rig) Database(ctx context.Context, name string) (string, error) {
	i, err := r.Instance(ctx, name)
	if err != nil {
		return "", err
	}
	return *i.DbiResourceId, nil
}

// Members lists the members of a database.
func (r *Rig) Members(ctx context.Context, database string) ([]Member, error) {
	layout, err := state.Get[plan.Layout](ctx, r.Store, state.Layout(database))
	if err != nil {
		return nil, err
	}
	var all []Member
	for _, m := range layout.Value.Members {
		all = append(all, Member{Database: database, Placed: m, rig: r})
	}
	return all, nil
}

var errNoLeader = errors.New("no leader")

// Leader returns the member with the leader key.
func (r *Rig) Leader(ctx context.Context, database string) (Member, error) {
	l, err := fence.Read(ctx, r.Store.Client, database)
	if err != nil {
		return Member{}, err
	}
	all, err := r.Members(ctx, database)
	if err != nil {
		return Member{}, err
	}
	for _, m := range all {
		if m.Name == l.Leader {
			return m, nil
		}
	}
	return Member{}, fmt.Errorf("%s: %w", database, errNoLeader)
}

// InSync returns nil if the database could lose its primary now: as many standbys as wanted are in
// sync.
func (r *Rig) InSync(ctx context.Context, database string, standbys int) error {
	l, err := fence.Read(ctx, r.Store.Client, database)
	if err != nil {
		return err
	}
	if !l.Replaceable() || len(l.Sync.Standbys) < standbys {
		return fmt.Errorf("leader %q, in sync %v", l.Leader, l.Sync.Standbys)
	}
	return nil
}

// Failovers lists the post-mortems of a database, oldest first.
func (r *Rig) Failovers(ctx context.Context, database string) ([]postmortem.Record, error) {
	records, err := state.List[postmortem.Record](ctx, r.Store, state.FailoverRoot+database+"/")
	var all []postmortem.Record
	for _, record := range records {
		all = append(all, record.Value)
	}
	return all, err
}

// ZoneLetter returns the zone of the member's host in this rig.
func (m Member) ZoneLetter() string { return strings.TrimPrefix(m.Host, "zone-") }

func (m Member) group() (*proc.Host, *proc.Group, error) {
	host, err := agent.OpenProcesses(m.rig.Home.ID, m.Host, m.rig.HostDir(m.ZoneLetter()))
	if err != nil {
		return nil, nil, err
	}
	group, err := host.Group(strings.ToLower(member.ID(m.Database, m.Name)))
	return host, group, err
}

// processes returns all processes of the member, Patroni and PostgreSQL, and the host that can
// signal them.
func (m Member) processes() (*proc.Host, []proc.Process, error) {
	host, group, err := m.group()
	if err != nil {
		return nil, nil, err
	}
	all, err := group.Processes()
	return host, all, err
}

// DataDir returns PostgreSQL's data directory.
func (m Member) DataDir() string {
	return filepath.Join(m.rig.HostDir(m.ZoneLetter()), "members", member.ID(m.Database, m.Name), patroni.DataDir)
}

// SocketDir returns the directory of PostgreSQL's socket. It is a directory of its own if the rig's
// agents are root.
func (m Member) SocketDir() string {
	host := filepath.Join(m.rig.runDir(), m.Host)
	if m.rig.User != nil {
		return host
	}
	return filepath.Join(host+".members", member.ID(m.Database, m.Name))
}

// Signal sends a signal to every process of the member, Patroni and PostgreSQL.
func (m Member) Signal(sig syscall.Signal) error {
	host, all, err := m.processes()
	if err != nil {
		return err
	}
	for _, p := range all {
		if err := host.Signal(p, sig); err != nil && !errors.Is(err, proc.ErrGone) {
			return err
		}
	}
	return nil
}

// KillPostgres kills the postmaster and all its backends, as the OOM killer or a crash would.
// Patroni lives on.
func (m Member) KillPostgres() error { return m.SignalPostgres(syscall.SIGKILL) }

// SignalPostgres sends a signal to the postmaster and all its backends.
func (m Member) SignalPostgres(sig syscall.Signal) error {
	host, group, err := m.group()
	if err != nil {
		return err
	}
	patroniProcess, err := group.Leader()
	if err != nil {
		return err
	}
	all, err := group.Processes()
	if err != nil {
		return err
	}
	pid, err := postgres.Postmaster(m.DataDir())
	if err != nil {
		return err
	}
	for _, p := range all {
		if p != patroniProcess && (p.PID == pid || parentOf(p.PID) == pid) {
			if err := host.Signal(p, sig); err != nil && !errors.Is(err, proc.ErrGone) {
				return err
			}
		}
	}
	return nil
}

// KillPatroni kills only Patroni.
func (m Member) KillPatroni() error { return m.signalPatroni(syscall.SIGKILL) }

// FreezePatroni stops only Patroni. PostgreSQL and the host's agent go on.
func (m Member) FreezePatroni() error { return m.signalPatroni(syscall.SIGSTOP) }

func (m Member) signalPatroni(sig syscall.Signal) error {
	host, group, err := m.group()
	if err != nil {
		return err
	}
	p, err := group.Leader()
	if err != nil {
		return err
	}
	return host.Signal(p, sig)
}

// Freeze stops the host of a member: its agent, and all processes of the member.
func (m Member) Freeze() error {
	return errors.Join(syscall.Kill(m.rig.PID("agent-"+m.ZoneLetter()), syscall.SIGSTOP), m.Signal(syscall.SIGSTOP))
}

// Thaw undoes Freeze.
func (m Member) Thaw() error {
	return errors.Join(m.Signal(syscall.SIGCONT), syscall.Kill(m.rig.PID("agent-"+m.ZoneLetter()), syscall.SIGCONT))
}

// Lose kills the host of a member: its agent for good, and all processes of the
// member.
func (m Member) Lose() error {
	m.rig.KillPart("agent-" + m.ZoneLetter())
	return m.Signal(syscall.SIGKILL)
}

func parentOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name in parentheses may hold anything, so fields are counted after it.
	_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')'):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	ppid, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return ppid
}

// MemberOnDisk returns a member as its directory names it, for when nothing else runs.
func (r *Rig) MemberOnDisk(zone, id string) Member {
	database, name, _ := strings.Cut(id, ".")
	return Member{Database: database, Placed: plan.Placed{Name: name, Host: "zone-" + zone}, rig: r}
}

// Process is a process of a rig: of a part, or of a member of a database.
type Process struct {
	Name   string
	Signal func(syscall.Signal) error
}

// Processes returns all processes that a database depends on: the parts of the rig, and Patroni and
// PostgreSQL of each member.
func (r *Rig) Processes(ctx context.Context, database string) ([]Process, error) {
	var all []Process
	for _, name := range r.Parts() {
		all = append(all, Process{Name: name, Signal: func(s syscall.Signal) error { return syscall.Kill(r.PID(name), s) }})
	}
	members, err := r.Members(ctx, database)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		host, running, err := m.processes()
		if err != nil {
			return nil, err
		}
		for _, p := range running {
			all = append(all, Process{Name: m.Name, Signal: func(s syscall.Signal) error { return host.Signal(p, s) }})
		}
	}
	return all, nil
}
