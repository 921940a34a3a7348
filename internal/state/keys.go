package state

import "strings"

// Root is what all keys of Howdah begin with. Patroni keeps its own below
// patroni.Namespace.
const Root = "/howdah/"

// The families of keys. Each has one writer, named in its comment.
const (
	// SpecRoot: what users asked for. Written by server (API handlers, and the
	// maintenance window on behalf of a request made earlier).
	SpecRoot = Root + "spec/"
	// InstanceRoot, ClusterRoot and EndpointRoot are below SpecRoot, by account,
	// region and name.
	InstanceRoot = SpecRoot + "instance/"
	ClusterRoot  = SpecRoot + "cluster/"
	EndpointRoot = SpecRoot + "endpoint/"
	// LayoutRoot: what was decided for each database. Written by reconcile.
	LayoutRoot = Root + "layout/"
	// AssignRoot: what each host shall run. Written by reconcile.
	AssignRoot = Root + "assign/"
	// TaskRoot: deeds asked of a host. Written by reconcile.
	TaskRoot = Root + "task/"
	// ResultRoot: their outcomes. Written by the host's agent.
	ResultRoot = Root + "result/"
	// ReportRoot: what hosts see of their members. Written by the host's agent.
	ReportRoot = Root + "report/"
	// HostRoot: what hosts are. Written by the host's agent.
	HostRoot = Root + "host/"
	// LiveRoot: which hosts are alive. Written by the judge.
	LiveRoot = Root + "live/"
	// DrainRoot: which hosts are being emptied. Written by server.
	DrainRoot = Root + "drain/"
	// FenceRoot: primaries that must not write any more. Written by the judge.
	FenceRoot = Root + "fence/"
	// WitnessRoot and CutRoot: what standbys' hosts answer to a fence case. Written
	// by their agents.
	WitnessRoot = Root + "witness/"
	CutRoot     = Root + "cut/"
	// IncidentRoot: failures that an agent dealt with by itself. Written by it.
	IncidentRoot = Root + "incident/"
	// FailoverRoot: post-mortems. Written by reconcile.
	FailoverRoot = Root + "failover/"
	// LeadRoot: who led each database when reconcile looked last. Written by it.
	LeadRoot = Root + "lead/"
	// NoticeRoot: what events have told of each database that lasts. Written by
	// reconcile.
	NoticeRoot = Root + "notice/"
	// AddressRoot: endpoint addresses in use. Written by server.
	AddressRoot = Root + "address/"
	// RouteRoot: where each endpoint leads. Written by reconcile.
	RouteRoot = Root + "route/"
	// WayRoot: where each edge leads the clients of a route now. Written by them.
	WayRoot = Root + "way/"
	// SwitchRoot: what the edges saw when a route moved. Written by them.
	SwitchRoot = Root + "switch/"
	// EventRoot: events of the API. Written with the change that they tell of.
	EventRoot = Root + "event/"
	// ControlRoot: the control plane's members. Each writes its own.
	ControlRoot = Root + "control/"
	// EdgeRoot: the edges. Each writes its own.
	EdgeRoot = Root + "edge/"
	// MetaRoot: identity of the home. Written once, at the first start.
	MetaRoot = Root + "meta/"
	// ElectionRoot: who of the control plane leads.
	ElectionRoot = Root + "election/"
)

func scoped(root, account, region, name string) string {
	return root + account + "/" + region + "/" + name
}

// Instance is the key of a DB instance.
func Instance(account, region, name string) string {
	return scoped(InstanceRoot, account, region, name)
}

// Cluster is the key of a DB cluster.
func Cluster(account, region, name string) string { return scoped(ClusterRoot, account, region, name) }

// Endpoint is the key of a custom cluster endpoint.
func Endpoint(account, region, name string) string {
	return scoped(EndpointRoot, account, region, name)
}

// Layout is the key of a database's layout.
func Layout(database string) string { return LayoutRoot + database }

// Assign is the key of a member's assignment; AssignPrefix those of a host.
func Assign(host, member string) string { return AssignPrefix(host) + member }

// AssignPrefix is what the assignments of a host begin with.
func AssignPrefix(host string) string { return AssignRoot + host + "/" }

// Task is the key of a task; ids hold slashes, which keys may.
func Task(host, id string) string { return TaskPrefix(host) + id }

// TaskPrefix is what the tasks of a host begin with.
func TaskPrefix(host string) string { return TaskRoot + host + "/" }

// Result is the key of a task's result, found by the task's id alone.
func Result(id string) string { return ResultRoot + id }

// Report is the key of a member's report.
func Report(host, member string) string { return ReportRoot + host + "/" + member }

// Host is the key of a host's description.
func Host(name string) string { return HostRoot + name }

// Live is the key of the judgement on a host.
func Live(host string) string { return LiveRoot + host }

// Drain is the key that asks for a host to be emptied.
func Drain(host string) string { return DrainRoot + host }

// Fence is the key of the fence case of a database.
func Fence(database string) string { return FenceRoot + database }

// Witness is the key of what a host saw of a suspected primary.
func Witness(database, host string) string { return WitnessRoot + database + "/" + host }

// Cut is the key of a host's proof that a primary was cut off.
func Cut(database, host string) string { return CutRoot + database + "/" + host }

// Incident is the key of a failure that a host dealt with.
func Incident(database, id string) string { return IncidentRoot + database + "/" + id }

// Failover is the key of a post-mortem; ids sort by time.
func Failover(database, id string) string { return FailoverRoot + database + "/" + id }

// Lead is the key of a database's last known leader.
func Lead(database string) string { return LeadRoot + database }

// Notice is the key of what events have told of a database.
func Notice(database string) string { return NoticeRoot + database }

// Address is the key that claims an endpoint address.
func Address(ip string) string { return AddressRoot + ip }

// Route is the key of an endpoint's route.
func Route(id string) string { return RouteRoot + id }

// Way is the key of where an edge leads the clients of a route; WayPrefix those of
// all edges.
func Way(route, edge string) string { return WayPrefix(route) + edge }

// WayPrefix is what the ways of a route begin with.
func WayPrefix(route string) string { return WayRoot + route + "/" }

// Switch is the key of what an edge saw last of a route.
func Switch(edge, route string) string { return SwitchRoot + edge + "/" + route }

// Event is the key of an event; ids sort by time.
func Event(account, region, id string) string { return scoped(EventRoot, account, region, id) }

// Control is the key of a member of the control plane.
func Control(name string) string { return ControlRoot + name }

// Edge is the key of an edge.
func Edge(name string) string { return EdgeRoot + name }

// Tail is the part of a key after its family's root.
func Tail(key, root string) string { return strings.TrimPrefix(key, root) }
