package etcdgate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"howdah/internal/host/hostapi"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// callerBy returns the agent or the edge of a certificate's common name.
func (d *Door) callerBy(name string) (caller, bool) {
	kind, host, ok := strings.Cut(name, ":")
	switch {
	case !ok || !hostapi.ValidName(host):
		return nil, false
	case kind == string(hostapi.Agent):
		return agent{host, d}, true
	case kind == string(hostapi.Edge):
		return edge{host}, true
	}
	return nil, false
}

// agent is what the agent of a host may do. It may read what its host is to run, which hosts live,
// fences, and who leads. It may write what it says of itself. And it may do what those members may
// that are assigned to its host at this moment.
type agent struct {
	host string
	door *Door
}

func (a agent) account() string { return string(hostapi.Agent) + ":" + a.host }

func (a agent) String() string { return a.account() }

// hostOf returns the host whose agent asks, or "" if another caller asks.
func hostOf(own caller) string {
	a, _ := own.(agent)
	return a.host
}

// may lets the mirror catch up before it refuses what an assignment or a task might allow. An agent
// is often faster than the mirror.
func (a agent) may(ctx context.Context, n need) error {
	if a.allows(n) {
		return nil
	}
	key := string(n.Key)
	if scopeOf(key) == "" && !strings.HasPrefix(key, state.ResultRoot) && !isBelow(state.JobReportPrefix(a.host), key) || !a.door.gate.budget.asks(a.account()) {
		return notOwn(n)
	}
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	if err := a.door.CatchUp(ctx); err != nil {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	if a.allows(n) {
		return nil
	}
	return notOwn(n)
}

// notOwn refuses what a host may not do.
func notOwn(n need) error { return fmt.Errorf("%w: %s %.100q", errScope, n.deed, n.Key) }

func (a agent) allows(n need) bool {
	key, one := string(n.Key), len(n.RangeEnd) == 0
	if slices.ContainsFunc(a.members(scopeOf(key)), func(m rights) bool { return m.allows(n) && (n.deed != keeps || m.writes(key)) }) {
		return true
	}
	switch n.deed {
	case reads:
		return a.reads(n) || one && a.writes(key)
	case writes:
		// The parameters of a version of PostgreSQL are written once, for all.
		return one && (a.writes(key) || n.fresh && isVersion(strings.TrimPrefix(key, state.CatalogueRoot)))
	case deletes:
		// A report on a job is removed after its job.
		return one && (a.writes(key) || isBelow(state.JobReportPrefix(a.host), key))
	default: // keeps
		return one && a.writes(key)
	}
}

func (a agent) reads(n need) bool {
	areas := []string{
		state.AssignPrefix(a.host), state.TaskPrefix(a.host), state.HoldingPrefix(a.host),
		state.JobPrefix(a.host), state.JobReportPrefix(a.host),
		state.LiveRoot, state.FenceRoot, state.ControlRoot, state.RestoredRoot, state.HeldRoot, state.CatalogueRoot,
	}
	return slices.ContainsFunc(areas, func(root string) bool { return area(root).holds(n.keys) }) ||
		n.names && area(state.HostRoot).holds(n.keys) || len(n.RangeEnd) == 0 && tellsWhoLeads(string(n.Key))
}

// tellsWhoLeads reports whether a key tells who leads. A restored home assigns nothing for members
// that it has forgotten. Their agent nevertheless has to know whether they lead.
func tellsWhoLeads(key string) bool {
	_, file, ok := patroni.SplitKey(key)
	member, isMember := strings.CutPrefix(file, "members/")
	return ok && (file == "leader" || file == "sync" || isMember && member != "" && !strings.Contains(member, "/"))
}

// writes reports whether the agent is the writer of a key.
func (a agent) writes(key string) bool {
	if slices.Contains([]string{state.Host(a.host), state.Holding(a.host), state.Attempt(a.host)}, key) ||
		isMember(state.Report(a.host, ""), key) || isMember(state.HoldingPrefix(a.host), key) {
		return true
	}
	if id, ok := strings.CutPrefix(key, state.ResultRoot); ok {
		_, _, asked := a.door.Cache.Raw(state.Task(a.host, id))
		return asked
	}
	if name, ok := strings.CutPrefix(key, state.JobReportPrefix(a.host)); ok {
		_, _, asked := a.door.Cache.Raw(state.Job(a.host, name))
		return asked
	}
	scope := scopeOf(key)
	if rest, ok := strings.CutPrefix(key, state.WitnessRoot); ok {
		id, host, _ := strings.Cut(rest, "/")
		return isCase(scope, id) && host == a.host && len(a.members(scope)) > 0
	}
	return slices.ContainsFunc(a.members(scope), func(m rights) bool {
		id, name, _ := strings.Cut(strings.TrimPrefix(key, state.CutRoot), "/")
		return key == state.Death(m.scope, m.name) || isNumber(strings.TrimPrefix(key, state.Incident(m.scope, ""))) ||
			key == state.Cut(id, name) && name == m.name && isCase(m.scope, id)
	})
}

// isNumber reports whether a text has as many digits as our times do.
func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 16, 64)
	return len(text) == 16 && err == nil
}

// isCase reports whether a text is the id of a fence case of a database.
func isCase(scope, id string) bool {
	number, ok := strings.CutPrefix(id, scope+"-")
	return ok && isNumber(number)
}

// isMember reports whether a key below a prefix is that of a member.
func isMember(prefix, key string) bool {
	m, ok := rightsOf(strings.TrimPrefix(key, prefix))
	return below(prefix, key) && ok && len(m.scope) <= patroni.MaxName && len(m.name) <= patroni.MaxName && !strings.ContainsAny(key, " \n")
}

// isVersion reports whether a text could be a version of PostgreSQL, such as 15.18 or 19beta1.
func isVersion(text string) bool {
	return text != "" && len(text) <= 16 && strings.Trim(text, "0123456789.abcdefghijklmnopqrstuvwxyz") == "" && text[0] >= '1' && text[0] <= '9'
}

// below reports whether a key is one step below a prefix.
func below(prefix, key string) bool {
	rest, ok := strings.CutPrefix(key, prefix)
	return ok && rest != "" && !strings.Contains(rest, "/")
}

// isBelow reports whether a key is below a prefix, however deep. Names of jobs have slashes.
func isBelow(prefix, key string) bool {
	return len(key) > len(prefix) && strings.HasPrefix(key, prefix)
}

// members returns the rights of a database's members that are assigned to the host.
func (a agent) members(scope string) (own []rights) {
	if scope == "" {
		return nil
	}
	for _, key := range a.door.Cache.Keys(state.AssignPrefix(a.host) + scope + ".") {
		if m, ok := rightsOf(state.Tail(key, state.AssignPrefix(a.host))); ok && m.scope == scope {
			own = append(own, m)
		}
	}
	return own
}

// scopeOf returns the database that a key is about, or "".
func scopeOf(key string) string {
	if scope, _, ok := patroni.SplitKey(key); ok {
		return scope
	}
	for _, root := range []string{state.CutRoot, state.WitnessRoot} {
		if rest, ok := strings.CutPrefix(key, root); ok {
			id, _, _ := strings.Cut(rest, "/")
			return id[:max(0, strings.LastIndexByte(id, '-'))]
		}
	}
	for _, root := range []string{
		state.LayoutRoot, state.HeldRoot, state.FenceRoot, state.DeathRoot, state.PleaRoot, state.PassedRoot, state.TimelineRoot, state.LeadRoot, state.IncidentRoot,
	} {
		if rest, ok := strings.CutPrefix(key, root); ok {
			scope, _, _ := strings.Cut(rest, "/")
			return scope
		}
	}
	return ""
}

// edge is what an edge may do: read who leads and who serves, and write where it leads clients.
type edge struct{ name string }

func (e edge) account() string { return string(hostapi.Edge) + ":" + e.name }

func (e edge) String() string { return e.account() }

func (e edge) may(_ context.Context, n need) error {
	one := len(n.RangeEnd) == 0
	allowed := one && e.writes(string(n.Key))
	if n.deed == reads {
		allowed = allowed || e.reads(n.keys)
	}
	if !allowed {
		return notOwn(n)
	}
	return nil
}

func (e edge) reads(k keys) bool {
	areas := []string{patroni.Namespace, state.RouteRoot, state.WayRoot, state.ReportRoot, state.LiveRoot, state.ControlRoot}
	return len(k.RangeEnd) == 0 && string(k.Key) == state.MetaRoot ||
		slices.ContainsFunc(areas, func(root string) bool { return area(root).holds(k) })
}

func (e edge) writes(key string) bool {
	route, isWay := strings.CutPrefix(key, state.WayRoot)
	return slices.Contains([]string{state.Edge(e.name), state.Between(e.name), state.Runs(e.name)}, key) ||
		below(state.Switch(e.name, ""), key) && len(key) <= mostName ||
		isWay && isRoute(strings.TrimSuffix(route, "/"+e.name)) && strings.HasSuffix(route, "/"+e.name)
}

// mostName bounds keys that end in a database's id.
const mostName = 128

// isRoute reports whether a text could be the id of a route. Routes that no longer exist are also
// removed by their ids.
func isRoute(id string) bool {
	return id != "" && len(id) <= mostName && !strings.Contains(id, "/") && !strings.ContainsAny(id, " \n")
}
