package server

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"howdah/internal/aws/rds/address"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

const (
	publishDB   = "ModifyDBInstance?DBInstanceIdentifier=db&PubliclyAccessible=true"
	unpublishDB = "ModifyDBInstance?DBInstanceIdentifier=db&PubliclyAccessible=false"
)

// publicPool is that of these tests.
const publicPool = "127.88.0.0/24"

// pools is the world with a public pool.
func pools(t *testing.T) *user {
	t.Helper()
	w := newWorld(t)
	w.server.pools.Public = mustPool(t, publicPool)
	return w.user(t)
}

// seats are the endpoints of a user, by id of their routes.
func (u *user) seats() map[string]address.Seat {
	all := map[string]address.Seat{}
	l := u.server.rds.Databases.Of(u.account)
	for _, r := range l.Instances {
		all[r.Value.ResourceID] = address.Seat{Address: r.Value.Address, Former: r.Value.Former}
	}
	for _, r := range l.Clusters {
		c := r.Value
		all[route.Writer(c.ResourceID)], all[route.Reader(c.ResourceID)] = address.Seat{Address: c.Address, Former: c.Former}, address.Seat{Address: c.ReaderAddress, Former: c.ReaderFormer}
		for _, e := range l.EndpointsOf(c.ResourceID) {
			all[e.Value.ResourceID] = address.Seat{Address: e.Value.Address, Former: e.Value.Former}
		}
	}
	return all
}

// arrive has all routes and the edge at the new addresses, and the house kept.
func (u *user) arrive() {
	u.Helper()
	for id, at := range u.seats() {
		r, _ := state.Load[route.Route](u.server.Cache, state.Route(id))
		way, err := state.Load[route.Way](u.server.Cache, state.Way(id, "edge"))
		r.Value.ID, r.Value.Listen = id, at.Address+":5432"
		u.put(state.Put(state.Route(id), r.Value))
		if err == nil {
			way.Value.Listen = r.Value.Listen
			u.put(state.Put(state.Way(id, "edge"), way.Value))
		}
	}
	u.keep()
}

func (u *user) keep() {
	u.Helper()
	u.server.rds.Upkeep.House().Keep(u.Context())
}

// are checks that each address is claimed once, by an endpoint that is or was there,
// and that these endpoints, all others not, are public.
func (u *user) are(public ...string) {
	u.Helper()
	named := map[string]bool{}
	for id, at := range u.seats() {
		if got, want := address.Contains(u.server.pools.Public, at.Address), slices.Contains(public, id); got != want {
			u.Errorf("%s is at %s", id, at.Address)
		}
		for _, a := range append([]string{at.Address}, at.Former...) {
			if named[a] {
				u.Errorf("%s is named twice", a)
			}
			named[a] = true
		}
	}
	claimed := map[string]bool{}
	for _, key := range u.server.Cache.Keys(state.AddressRoot) {
		claimed[state.Tail(key, state.AddressRoot)] = true
	}
	if !maps.Equal(named, claimed) {
		u.Errorf("claimed are %v, named are %v", claimed, named)
	}
}

func (u *user) id(name string) string { return u.instanceRecord(name).ResourceID }

// TestPublic: the way of an instance from the private pool to the public one and back.
func TestPublic(t *testing.T) {
	u := pools(t)
	having(newDB)(u)
	u.are()
	private := u.instanceRecord("db").Address
	u.arrive()
	shown := func(address, status string) {
		t.Helper()
		u.do(showDB).has("DBInstances/DBInstance/Endpoint/Address="+address, "DBInstances/DBInstance/DBInstanceStatus="+status)
	}
	shown(private, "available")
	// It never waits for the window, and until it is done clients are at the old address.
	u.do(publishDB).has("DBInstance/PubliclyAccessible=true", "DBInstance/DBInstanceStatus=modifying", "DBInstance/Endpoint/Address="+private)
	u.are(u.id("db"))
	u.keep()
	shown(private, "modifying")
	u.try(unpublishDB).is(badState, "")
	public := u.instanceRecord("db").Address
	// The route is there, an edge is not.
	id := u.id("db")
	u.put(state.Put(state.Runs("edge"), true), state.Put(state.Route(id), route.Route{ID: id, Kind: route.Leader, Listen: public + ":5432"}))
	u.keep()
	shown(private, "modifying")
	u.arrive()
	shown(public, "available")
	u.are(id)
	if former := u.instanceRecord("db").Former; len(former) > 0 {
		t.Errorf("not given back: %q", former)
	}
	// Once more is nothing to do.
	u.do(publishDB).has("DBInstance/DBInstanceStatus=available")
	u.do(with(modifyDB, "PreferredBackupWindow=01:00-01:30", "PreferredMaintenanceWindow=sun:02:00-sun:02:30")).has("DBInstance/PubliclyAccessible=true")
	u.are(id)
	u.do(unpublishDB).has("DBInstance/PubliclyAccessible=false", "DBInstance/DBInstanceStatus=modifying", "DBInstance/Endpoint/Address="+public)
	u.arrive()
	shown(private, "available")
	u.are()
}

// TestNoPublicPool: who asks for a public endpoint gets a private one that says so, and
// a public one when there is a pool and it is asked for again.
func TestNoPublicPool(t *testing.T) {
	u := newWorld(t).user(t)
	having(with(newDB, "PubliclyAccessible=true"))(u)
	u.do(showDB).has("DBInstances/DBInstance/PubliclyAccessible=true", "DBInstances/DBInstance/DBInstanceStatus=available")
	u.told("this home has no public pool")
	private := u.instanceRecord("db").Address
	if !address.Contains(u.server.pools.Private, private) {
		t.Errorf("at %s", private)
	}
	count := func() int {
		return strings.Count(fmt.Sprint(u.do("DescribeEvents").result().texts("Events/Event/Message")), "no public pool")
	}
	u.do(publishDB).has("DBInstance/DBInstanceStatus=available")
	if got := count(); got != 1 {
		t.Errorf("told %d times", got)
	}
	u.do(unpublishDB)
	u.do(publishDB)
	if got := count(); got != 2 {
		t.Errorf("told %d times, want 2", got)
	}
	u.server.pools.Public = mustPool(t, publicPool)
	u.do(publishDB).has("DBInstance/DBInstanceStatus=modifying")
	u.arrive()
	u.are(u.id("db"))
	// The pool is taken away: it stays, until it shall be private.
	u.server.pools.Public = netip.Prefix{}
	u.do(publishDB).has("DBInstance/DBInstanceStatus=available")
	u.do(unpublishDB).has("DBInstance/DBInstanceStatus=modifying")
	u.arrive()
	u.are()
}

// publicScenarios: what is public from the beginning, and what is not.
var publicScenarios = []scenario{
	{
		name: "private unless asked for", call: newDB, want: []string{"DBInstance/PubliclyAccessible=false"},
		after: func(u *user) { u.are() },
	},
	{
		name: "an instance from the beginning", call: with(newDB, "PubliclyAccessible=true"), want: []string{"DBInstance/PubliclyAccessible=true", "DBInstance/DBInstanceStatus=creating"},
		after: func(u *user) { u.are(u.id("db")) },
	},
	{
		name: "a replica is not what its source is", setup: having(with(newDB, "PubliclyAccessible=true")), call: newReplica, want: []string{"DBInstance/PubliclyAccessible=false"},
		after: func(u *user) { u.are(u.id("db")) },
	},
	{
		name: "a replica of its own", setup: having(newDB), call: with(newReplica, "PubliclyAccessible=true"), want: []string{"DBInstance/PubliclyAccessible=true"},
		after: func(u *user) { u.are(u.id("copy")) },
	},
	{
		name: "all endpoints of a Multi-AZ DB cluster", call: with(newTrio, "PubliclyAccessible=true"), want: []string{"DBCluster/PubliclyAccessible=true"},
		after: func(u *user) {
			u.are(slices.Collect(maps.Keys(u.seats()))...)
			if len(u.seats()) != 5 {
				u.Errorf("%d endpoints", len(u.seats()))
			}
			u.do(with(showDB, "DBInstanceIdentifier=trio-instance-1")).has("DBInstances/DBInstance/PubliclyAccessible=true")
		},
	},
	{
		name: "no boolean", call: with(newDB, "PubliclyAccessible=maybe"), code: "InvalidParameterValue", message: "PubliclyAccessible",
	},
	{
		name: "deleted on the way", setup: having(newDB, publishDB), call: dropDB, want: []string{"DBInstance/DBInstanceStatus=deleting"},
	},
}

// TestPublicScenarios, each in a world of its own: claims are the whole home's.
func TestPublicScenarios(t *testing.T) {
	w := newWorld(t)
	w.server.pools.Public = mustPool(t, publicPool)
	for _, s := range publicScenarios {
		w.run(t, []scenario{s})
		w.put(state.DeletePrefix(state.AddressRoot))
	}
}

// TestPublicCluster: the endpoints of a cluster are public when all of its instances
// are, with one change of its record a call.
func TestPublicCluster(t *testing.T) {
	u := pools(t)
	having(newCluster)(u)
	cluster := u.clusterRecord("aura").ResourceID
	writer, reader := route.Writer(cluster), route.Reader(cluster)
	u.are()
	having(with(newMember, "PubliclyAccessible=true"))(u)
	one := u.id("aura-1")
	u.arrive()
	u.are(writer, reader, one)
	u.do(showAll + "aura").has("DBClusters/DBCluster/Status=available")

	// A custom endpoint follows the cluster, and so does a member that says nothing.
	having(addEndpoint)(u)
	custom := u.server.rds.Databases.Of(u.account).EndpointsOf(cluster)[0].Value.ResourceID
	u.are(writer, reader, one, custom)
	having(with(newMember, "DBInstanceIdentifier=aura-3"))(u)
	three := u.id("aura-3")
	u.are(writer, reader, one, custom, three)

	// One that is private takes them all with it, and its own address only.
	before := u.clusterRecord("aura")
	having(second + "&PubliclyAccessible=false")(u)
	u.do(showAll+"aura").has("DBClusters/DBCluster/Status=modifying",
		"DBClusters/DBCluster/Endpoint="+before.Address, "DBClusters/DBCluster/ReaderEndpoint="+before.ReaderAddress)
	u.do("DescribeDBClusterEndpoints?DBClusterEndpointIdentifier=reports").has("DBClusterEndpoints/DBClusterEndpointList/Status=modifying")
	u.are(one, three)
	u.arrive()
	u.do(showAll + "aura").has("DBClusters/DBCluster/Status=available")
	after := u.clusterRecord("aura")
	u.do("DescribeDBClusterEndpoints?DBClusterIdentifier=aura").has("DBClusterEndpoints/DBClusterEndpointList#3",
		"DBClusterEndpoints/DBClusterEndpointList[1]/Endpoint="+after.Address, "DBClusterEndpoints/DBClusterEndpointList[2]/Endpoint="+after.ReaderAddress,
		"DBClusterEndpoints/DBClusterEndpointList[3]/Status=available")
	u.are(one, three)

	// A class and the address in one call.
	u.do("ModifyDBInstance?DBInstanceIdentifier=aura-2&PubliclyAccessible=true&DBInstanceClass=db.t3.medium&ApplyImmediately=true").
		has("DBInstance/PubliclyAccessible=true", "DBInstance/DBInstanceStatus=modifying")
	u.settle()
	u.arrive()
	two := u.id("aura-2")
	u.are(writer, reader, one, two, three, custom)

	u.do("ModifyDBInstance?DBInstanceIdentifier=aura-2&PubliclyAccessible=false")
	u.arrive()
	u.are(one, three)
	// It goes, and they are public again.
	having("DeleteDBInstance?DBInstanceIdentifier=aura-2&SkipFinalSnapshot=true")(u)
	u.arrive()
	u.are(writer, reader, one, three, custom)
}

// TestTokensOnTheWay: tokens name the one address or the other.
func TestTokensOnTheWay(t *testing.T) {
	i := spec.Instance{Common: spec.Common{Address: "127.88.0.1", Former: []string{"127.77.0.1"}}}
	if i.ServedAt() != "127.77.0.1" || !i.Moving() {
		t.Errorf("at %s", i.ServedAt())
	}
	u := pools(t)
	having(with(newDB, "EnableIAMDatabaseAuthentication=true"))(u)
	before := u.instanceRecord("db").Address
	u.do(publishDB)
	record := u.instanceRecord("db")
	for _, address := range []string{before, record.Address} {
		u.lets(record.ResourceID, "jane", u.tokenOf(address+":5432", "jane", nil), "")
	}
	u.arrive()
	u.lets(record.ResourceID, "jane", u.tokenOf(record.Address+":5432", "jane", nil), "")
}
