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
	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/host/proc"
	"howdah/internal/host/proc/table"
	"howdah/internal/identity/home"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// copyOf is a member of a database, on a host of this machine.
type copyOf struct {
	home     *home.Home
	database string
	name     string
	host     string
}

func (m copyOf) String() string { return m.name + " on " + m.host }

// primary finds the member that is the primary now.
func (g *Ground) primary(ctx context.Context) (copyOf, error) {
	d, err := g.Truth(ctx)
	if err != nil {
		return copyOf{}, err
	}
	if d == nil {
		return copyOf{}, ErrNoPrimary
	}
	for _, m := range d.Members {
		if m.Role != admin.RolePrimary {
			continue
		}
		if _, err := os.Stat(g.hostDir(m.Host)); err != nil {
			return copyOf{}, fmt.Errorf("%w: %s is not on this machine", ErrImpossible, m.Host)
		}
		return copyOf{home: g.Home, database: d.ResourceID, name: m.Name, host: m.Host}, nil
	}
	return copyOf{}, ErrNoPrimary
}

// hostDir is the directory of a host of `howdah up`.
func (g *Ground) hostDir(host string) string { return hostDir(g.Home, host) }

func hostDir(h *home.Home, host string) string { return h.HostDir(strings.TrimPrefix(host, "zone-")) }

func (m copyOf) id() string { return member.ID(m.database, m.name) }

// dir is the member's own, in one where only root writes.
func (m copyOf) dir() string { return filepath.Join(hostDir(m.home, m.host), "members", m.id()) }

func (m copyOf) dataDir() string { return filepath.Join(m.dir(), patroni.DataDir) }

// processes lists all processes of the member, Patroni and PostgreSQL, by the records of its host.
func (m copyOf) processes() ([]proc.Process, error) {
	host, err := agent.OpenProcesses(m.home.ID, m.host, hostDir(m.home, m.host))
	if err != nil {
		return nil, err
	}
	group, err := host.Group(strings.ToLower(m.id()))
	if err != nil {
		return nil, err
	}
	all, err := group.Processes()
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%w: %s has no processes", ErrNoPrimary, m)
	}
	return all, err
}

// postmaster finds PostgreSQL's first process, which is one of the member's.
func (m copyOf) postmaster() (proc.Process, error) {
	pid, err := postgres.Postmaster(m.dataDir())
	if err != nil {
		return proc.Process{}, err
	}
	all, err := m.processes()
	if err != nil {
		return proc.Process{}, err
	}
	for _, p := range all {
		if p.PID == pid {
			return p, runsPostgres(pid)
		}
	}
	return proc.Process{}, fmt.Errorf("%w: process %d is none of %s", ErrNoPrimary, pid, m)
}

// membersOn lists the members on a host, of all databases.
func (g *Ground) membersOn(host string) (all []copyOf, err error) {
	entries, err := os.ReadDir(filepath.Join(g.hostDir(host), "members"))
	if err != nil {
		return nil, fmt.Errorf("find the members of %s: %w", host, err)
	}
	for _, e := range entries {
		database, name, _ := strings.Cut(e.Name(), ".")
		all = append(all, copyOf{home: g.Home, database: database, name: name, host: host})
	}
	return all, nil
}

// allOn lists the processes of all members on a host, whatever databases they are of: a host that is lost
// loses all of them.
func (g *Ground) allOn(host string) (all []proc.Process, err error) {
	members, err := g.membersOn(host)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		own, err := m.processes()
		if err != nil && !errors.Is(err, ErrNoPrimary) {
			return nil, err
		}
		all = append(all, own...)
	}
	return all, nil
}

// Others lists the processes on this machine that belong to the home: its parts, and all members of
// databases but the one that is the primary of this database. Those that they start are not listed. What
// cannot be found is left out.
func (g *Ground) Others(ctx context.Context) (pids []int) {
	for _, part := range []string{"up", "serve"} {
		if pid := g.Home.Holder(part); pid != 0 {
			pids = append(pids, pid)
		}
	}
	primary, _ := g.primary(ctx)
	hosts, _ := os.ReadDir(g.Home.DataRoot)
	for _, entry := range hosts {
		host := "zone-" + entry.Name()
		if pid := home.FileHolder(g.agentLock(host)); pid != 0 {
			pids = append(pids, pid)
		}
		members, _ := g.membersOn(host)
		for _, m := range members {
			if m.id() == primary.id() {
				continue
			}
			all, _ := m.processes()
			pids = append(pids, first(all)...)
		}
	}
	return pids
}

// first lists the processes that no other one has started: they last.
func first(all []proc.Process) (pids []int) {
	for _, p := range all {
		entry, err := table.System.Live(p)
		if err == nil && !slices.ContainsFunc(all, func(other proc.Process) bool { return other.PID == entry.Parent }) {
			pids = append(pids, p.PID)
		}
	}
	return pids
}
