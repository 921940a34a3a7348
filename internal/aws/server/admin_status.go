package server

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/aws/front"
	"howdah/internal/control/plan"
	"howdah/internal/edge/seen"
	"howdah/internal/failover/fence"
	"howdah/internal/failover/postmortem"
	"howdah/internal/host/hostapi"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// adminStatus answers the whole truth. It asks each member of etcd how it is, and
// takes everything else from the mirror of the state, freshened first.
func (s *Server) adminStatus(ctx context.Context, c front.Call, _ admin.Nothing) (admin.Status, error) {
	if err := s.client.Fresh(ctx); err != nil {
		return admin.Status{}, err
	}
	out := admin.Status{
		Home: s.Home.ID, Version: s.Version, Account: c.Account, Region: c.Region,
		Disposable: s.Home.Disposable, Time: c.Now,
		Control: s.controlOut(), Etcd: s.etcdOut(ctx), Edges: s.edgesOut(), Hosts: s.hostsOut(),
		Databases: []admin.Database{}, Fences: []admin.Fence{}, Problems: []admin.Problem{},
	}
	subjects := s.subjects()
	for _, d := range subjects {
		out.Databases = append(out.Databases, s.databaseOut(d))
		for _, open := range state.LoadAll[fence.Case](s.Cache, state.FencePrefix(d.Want.ID)) {
			out.Fences = append(out.Fences, fenceOut(d, open.Value))
		}
	}
	if newest := s.failovers("", 1); len(newest) > 0 {
		out.LastFailover = &newest[0]
	}
	out.Problems = append(out.Problems, homeProblems(out)...)
	out.Problems = append(out.Problems, s.hostProblems(out.Hosts)...)
	for _, d := range subjects {
		out.Problems = append(out.Problems, s.databaseProblems(d)...)
	}
	out.Problems = append(out.Problems, s.lateOperations(c.Now, "")...)
	out.Problems = append(out.Problems, s.strangers()...)
	if why := s.Backups.Failing(); why != "" {
		out.Problems = append(out.Problems, admin.Problem{Code: admin.ProblemBackup, Subject: "backup", Text: "no backup of the home could be taken: " + why})
	}
	return out, nil
}

// adminDatabase answers for one name what adminStatus does for all.
func (s *Server) adminDatabase(ctx context.Context, c front.Call, in admin.DatabaseRequest) (admin.DatabaseAnswer, error) {
	if err := s.client.Fresh(ctx); err != nil {
		return admin.DatabaseAnswer{}, err
	}
	out := admin.DatabaseAnswer{Databases: []admin.Database{}, Problems: []admin.Problem{}}
	for _, d := range s.subjects() {
		if name := strings.ToLower(in.Name); d.common.Scope == c.Scope && d.has(name) {
			for _, arn := range d.named(name) {
				if err := c.Spared(arn); err != nil {
					return admin.DatabaseAnswer{}, err
				}
			}
			out.Databases = append(out.Databases, s.databaseOut(d))
			out.Problems = append(out.Problems, s.databaseProblems(d)...)
			out.Problems = append(out.Problems, s.lateOperations(c.Now, d.Want.ID)...)
		}
	}
	return out, nil
}

// controlOut lists the control planes. Each that runs holds a key below
// ElectionRoot, under a lease; the oldest key is the leader's.
func (s *Server) controlOut() []admin.Control {
	running := map[string]bool{}
	leader, first := "", int64(0)
	for _, key := range s.Cache.Keys(state.ElectionRoot) {
		name, revision, _ := s.Cache.Raw(key)
		running[string(name)] = true
		if first == 0 || revision < first {
			leader, first = string(name), revision
		}
	}
	all := []admin.Control{}
	for _, m := range state.LoadAll[hostapi.ControlMember](s.Cache, state.ControlRoot) {
		all = append(all, admin.Control{
			Name: m.Value.Name, URL: m.Value.URL, Running: running[m.Value.Name], Leading: m.Value.Name == leader,
		})
	}
	return all
}

func (s *Server) edgesOut() []admin.Edge {
	all := []admin.Edge{}
	for _, e := range state.LoadAll[seen.Status](s.Cache, state.EdgeRoot) {
		info := e.Value.Info
		_, _, running := s.Cache.Raw(state.Runs(e.Value.Name))
		all = append(all, admin.Edge{
			Name: e.Value.Name, Running: running, Driver: info.Driver, ClientAddressVisible: info.ClientAddressVisible,
			Cost: info.Cost, Started: e.Value.Started,
		})
	}
	return all
}

func (s *Server) hostsOut() []admin.Host {
	members := s.membersByHost()
	committed := map[string]int64{}
	for _, h := range s.looks.Hosts() {
		committed[h.Name] = h.Committed
	}
	all := []admin.Host{}
	for _, record := range state.LoadAll[member.Host](s.Cache, state.HostRoot) {
		h := record.Value
		out := admin.Host{
			Name: h.Name, Zone: h.Zone, Address: h.Address, State: admin.HostUnknown,
			CPUs: h.CPUs, Memory: h.Memory, Committed: committed[h.Name], Disk: h.Disk, DiskFree: h.DiskFree,
			Postgres: versions(h.Majors), Containment: h.Containment, Limits: h.Limits, Cut: h.Cut,
			Warnings: h.Warnings, Shared: h.Shared, Members: members[h.Name], Version: h.Version, Started: h.Started,
		}
		out.StorageLimit = admin.StorageHeld
		if !h.LimitsStorage {
			out.StorageLimit, out.WhyWatched = admin.StorageWatched, cmp.Or(h.WhyWatched, "its agent is of an older version")
		}
		if out.Members == nil {
			out.Members = []string{}
		}
		if live, err := state.Load[member.Liveness](s.Cache, state.Live(h.Name)); err == nil {
			out.State, out.Since = admin.HostLost, live.Value.Since
			if live.Value.Alive {
				out.State = admin.HostAlive
			}
		}
		_, _, out.Draining = s.Cache.Raw(state.Drain(h.Name))
		all = append(all, out)
	}
	return all
}

func versions(majors map[int]string) []string {
	all := []string{}
	for _, full := range majors {
		all = append(all, full)
	}
	slices.Sort(all)
	return all
}

// membersByHost are the names DATABASE/MEMBER on each host, also on one that has
// not described itself or was forgotten.
func (s *Server) membersByHost() map[string][]string {
	all := map[string][]string{}
	for _, d := range s.subjects() {
		for _, m := range d.Layout.Members {
			all[m.Host] = append(all[m.Host], d.common.Name+"/"+m.Name)
		}
	}
	return all
}

func fenceOut(d subject, c fence.Case) admin.Fence {
	return admin.Fence{
		Database: d.common.Name, Phase: string(c.Phase), Host: c.Host, Member: c.Leadership.Leader,
		Opened: c.Opened, Evidence: c.Evidence, Method: c.Proof.Method, Proof: c.Proof.Text,
	}
}

// adminFailovers answers post-mortems, newest first.
func (s *Server) adminFailovers(ctx context.Context, _ front.Call, in admin.FailoversRequest) (admin.FailoversAnswer, error) {
	if in.Limit < 0 {
		return admin.FailoversAnswer{}, admin.NewError(admin.CodeInvalidRequest, "A limit cannot be negative.", "")
	}
	if err := s.client.Fresh(ctx); err != nil {
		return admin.FailoversAnswer{}, err
	}
	return admin.FailoversAnswer{Failovers: s.failovers(strings.ToLower(in.Name), in.Limit)}, nil
}

// failovers of the database with this name, at the time or now, or with this
// resource id; or of all.
func (s *Server) failovers(name string, limit int) []postmortem.Record {
	now := map[string]bool{}
	for _, d := range s.subjects() {
		if d.has(name) {
			now[d.Want.ID] = true
		}
	}
	all := []postmortem.Record{}
	for _, r := range state.LoadAll[postmortem.Record](s.Cache, state.FailoverRoot) {
		if name == "" || r.Value.Name == name || strings.EqualFold(r.Value.Database, name) || now[r.Value.Database] {
			all = append(all, r.Value)
		}
	}
	slices.SortFunc(all, func(a, b postmortem.Record) int { return strings.Compare(b.ID, a.ID) })
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	return all
}

// stepsOut are the stages of what is going on.
func stepsOut(steps []plan.Step) []admin.Step {
	out := []admin.Step{}
	for _, s := range steps {
		out = append(out, admin.Step{Name: s.Name, Began: s.Began})
	}
	return out
}
