package server

import (
	"strings"
	"testing"

	"howdah/internal/model/route"
	"howdah/internal/model/zone"
	"howdah/internal/state"
)

const (
	theZone   = zone.Zone("howdah.test")
	rename    = "ModifyDBInstance?DBInstanceIdentifier=db&ApplyImmediately=true&NewDBInstanceIdentifier="
	showNamed = "DescribeDBClusterEndpoints?DBClusterIdentifier=aura"
)

// inZone sets the home's zone; "" takes it away.
func (u *user) inZone(z zone.Zone) {
	u.Helper()
	if z == "" {
		u.put(state.Delete(state.DNSZone()))
		return
	}
	u.put(state.Put(state.DNSZone(), zone.Setting{Zone: z}))
}

// named has the route of an endpoint say a name, as it does once all certificates have it.
func (u *user) named(id, name string) {
	u.Helper()
	r, _ := state.Load[route.Route](u.server.Cache, state.Route(id))
	r.Value.ID, r.Value.Name = id, name
	u.put(state.Put(state.Route(id), r.Value))
}

// in is the end of the names of a user's endpoints of a kind.
func (u *user) in(kind zone.Kind) string {
	return "." + string(kind) + zone.Hash(u.account, u.region) + "." + u.region + "." + string(theZone)
}

// An instance shows its name once the certificates have it, and its address until then.
func TestNamesOfAnInstance(t *testing.T) {
	u := newWorld(t).user(t)
	having(newDB)(u)
	i := u.instanceRecord("db")
	name := "db" + u.in(zone.Instance)
	shows := func(host string) {
		t.Helper()
		u.do(showDB).has("DBInstances/DBInstance/Endpoint/Address=" + host)
	}
	u.named(i.ResourceID, "")
	shows(i.Address)
	u.inZone(theZone)
	shows(i.Address) // the certificates do not have it yet
	u.named(i.ResourceID, name)
	shows(name)
	u.do(rename + "orders")
	u.settle()
	renamed := "orders" + u.in(zone.Instance)
	u.named(i.ResourceID, name)
	u.do("DescribeDBInstances?DBInstanceIdentifier=orders").has("DBInstances/DBInstance/Endpoint/Address=" + i.Address)
	u.named(i.ResourceID, renamed)
	u.do("DescribeDBInstances?DBInstanceIdentifier=orders").has("DBInstances/DBInstance/Endpoint/Address=" + renamed)
	u.inZone("")
	u.do("DescribeDBInstances?DBInstanceIdentifier=orders").has("DBInstances/DBInstance/Endpoint/Address=" + i.Address)
}

// All endpoints of a cluster have names in RDS's forms.
func TestNamesOfACluster(t *testing.T) {
	u := newWorld(t).user(t)
	u.inZone(theZone)
	having(newCluster, newMember, addEndpoint)(u)
	c, l := u.clusterRecord("aura"), u.server.rds.Databases.Of(u.account)
	writer, reader, custom, member := "aura"+u.in(zone.Writer), "aura"+u.in(zone.Reader), "reports"+u.in(zone.Custom), "aura-1"+u.in(zone.Instance)
	u.named(route.Writer(c.ResourceID), writer)
	u.named(route.Reader(c.ResourceID), reader)
	u.named(l.EndpointsOf(c.ResourceID)[0].Value.ResourceID, custom)
	u.named(u.instanceRecord("aura-1").ResourceID, member)
	u.do(showAura).has("DBClusters/DBCluster/Endpoint="+writer, "DBClusters/DBCluster/ReaderEndpoint="+reader, "DBClusters/DBCluster/CustomEndpoints/member="+custom)
	u.do(showNamed).has("DBClusterEndpoints/DBClusterEndpointList[1]/Endpoint="+writer,
		"DBClusterEndpoints/DBClusterEndpointList[2]/Endpoint="+reader, "DBClusterEndpoints/DBClusterEndpointList[3]/Endpoint="+custom)
	u.do("DescribeDBInstances?DBInstanceIdentifier=aura-1").has("DBInstances/DBInstance/Endpoint/Address=" + member)
}

// A name that DNS does not know is refused before anything is made.
func TestNamesThatAreTooLong(t *testing.T) {
	u := newWorld(t).user(t)
	having(newDB, newCluster, newMember)(u)
	u.inZone(zone.Zone(strings.Repeat("zone67890.", 19) + "internal"))
	before := len(u.server.Cache.Keys(state.SpecRoot)) + len(u.server.Cache.Keys(state.AddressRoot))
	long := strings.Repeat("a", 40)
	for call, parameter := range map[string]string{
		with(newDB, "DBInstanceIdentifier="+long): "DBInstanceIdentifier",
		rename + long: "NewDBInstanceIdentifier",
		with(newCluster, "DBClusterIdentifier="+long):                                            "DBClusterIdentifier",
		"ModifyDBCluster?DBClusterIdentifier=aura&NewDBClusterIdentifier=" + long:                "NewDBClusterIdentifier",
		with(newMember, "DBInstanceIdentifier="+long):                                            "DBInstanceIdentifier",
		with(addEndpoint, "DBClusterEndpointIdentifier="+long):                                   "DBClusterEndpointIdentifier",
		"CreateDBInstanceReadReplica?SourceDBInstanceIdentifier=db&DBInstanceIdentifier=" + long: "DBInstanceIdentifier",
	} {
		u.try(call).is(badValue, "The parameter "+parameter+" is not a valid identifier here")
	}
	if after := len(u.server.Cache.Keys(state.SpecRoot)) + len(u.server.Cache.Keys(state.AddressRoot)); after != before {
		t.Errorf("%d records became %d", before, after)
	}
	// What is there already has its address. Short names have room.
	u.do(showDB).has("DBInstances/DBInstance/DBInstanceIdentifier=db")
	u.do(with(newDB, "DBInstanceIdentifier=b"))
	u.inZone("")
	u.do(with(newDB, "DBInstanceIdentifier="+long))
}

// Tokens for a database may be for its names, its addresses, and no other host.
func TestTokensForNames(t *testing.T) {
	u := newWorld(t).user(t)
	having(newDB + "&EnableIAMDatabaseAuthentication=true")(u)
	d, at := u.endpointOf()
	name := "db" + u.in(zone.Instance)
	lets := func(host, why string) {
		t.Helper()
		u.lets(d.ResourceID, "jane", u.tokenOf(host, "jane", nil), why)
	}
	lets(name+":5432", "another host")
	u.inZone(theZone)
	lets(at, "")
	lets(name+":5432", "")
	lets(strings.ToUpper(name)+":5432", "")
	lets(name+":5433", "another host")
	lets("other"+u.in(zone.Instance)+":5432", "another host")
	lets("db"+u.in(zone.Writer)+":5432", "another host")
}
