package server

import (
	"testing"

	"howdah/internal/model/spec"
	"howdah/internal/state"
)

const (
	notCovered = "DBSubnetGroupDoesNotCoverEnoughAZs"
	badVPC     = "InvalidVPCNetworkStateFault"
	// ownSubnets are of the home: they are in the zones a and b.
	ownSubnets = "CreateDBSubnetGroup?DBSubnetGroupName=ab&DBSubnetGroupDescription=text&SubnetIds.SubnetIdentifier.1=subnet-a&SubnetIds.SubnetIdentifier.2=subnet-b"
)

// narrow leaves a group with one zone, as it is where the home had no other one when
// the group was made.
func narrow(u *user) {
	u.Helper()
	r, err := u.server.looks.FindSubnetGroup(u.scope(), "ab")
	if err != nil {
		u.Fatal(err)
	}
	r.Value.Subnets = []spec.Subnet{{ID: "subnet-a", Zone: "a"}}
	u.put(state.Put(r.Key, r.Value))
}

func narrowed(calls ...string) func(*user) {
	return func(u *user) {
		u.Helper()
		having(append([]string{ownSubnets}, calls...)...)(u)
		narrow(u)
	}
}

var inAB = "DBSubnetGroupName=ab"

// TestSubnetGroupsSteer: databases are only taken where their subnet group has enough
// zones for them.
func TestSubnetGroupsSteer(t *testing.T) {
	newWorld(t).run(t, []scenario{
		{name: "two zones for Multi-AZ", setup: having(ownSubnets), call: with(newDB, inAB, "MultiAZ=true"), want: []string{"DBInstance/MultiAZ=true"}},
		{name: "a zone of the group", setup: having(ownSubnets), call: with(newDB, inAB, "AvailabilityZone=us-east-1b")},
		{
			name: "another zone", setup: having(ownSubnets), call: with(newDB, inAB, "AvailabilityZone=us-east-1c"),
			code: badVPC, message: "choose one of us-east-1a, us-east-1b",
		},
		{name: "a zone that is none", setup: having(ownSubnets), call: with(newDB, inAB, "AvailabilityZone=us-east-1x"), code: badValue},
		{
			name: "one zone for Multi-AZ", setup: narrowed(), call: with(newDB, inAB, "MultiAZ=true"), code: notCovered, message: "Current AZ coverage: us-east-1a. Add subnets to cover at least 2 AZs",
			after: func(u *user) { u.do(with(newDB, inAB)) },
		},
		{
			name: "Multi-AZ later", setup: narrowed(with(newDB, inAB)), call: with(modifyDB, "MultiAZ=true"), code: badVPC, message: "at least 2 AZs",
			after: func(u *user) {
				u.do(with(modifyDB, "MultiAZ=true", "DBSubnetGroupName=default")).has("DBInstance/PendingModifiedValues/MultiAZ=true")
			},
		},
		{name: "the group later", setup: narrowed(with(newDB, "MultiAZ=true")), call: with(modifyDB, inAB), code: badVPC, message: "ab"},
		{name: "a replica", setup: narrowed(newDB), call: with(newReplica, inAB, "MultiAZ=true"), code: notCovered},
		{name: "a replica in a zone", setup: having(ownSubnets, newDB), call: with(newReplica, inAB, "AvailabilityZone=us-east-1c"), code: badVPC},
		{name: "two zones for three instances", setup: having(ownSubnets), call: with(newTrio, inAB), code: notCovered, message: "at least 3 AZs"},
		{
			name: "three zones for three instances", setup: having(with(ownSubnets, "SubnetIds.SubnetIdentifier.3=subnet-c")), call: with(newTrio, inAB),
			want: []string{"DBCluster/DBSubnetGroup=ab"},
		},
		{
			name: "a member in a zone", setup: having(ownSubnets, with(newCluster, inAB)), call: with(newMember, "AvailabilityZone=us-east-1c"), code: badVPC,
			after: func(u *user) { u.do(with(newMember, "AvailabilityZone=us-east-1b")) },
		},
		{
			name: "zones of the cluster outside of its group", setup: having(ownSubnets, with(newCluster, inAB, "AvailabilityZones.AvailabilityZone.1=us-east-1c", "AvailabilityZones.AvailabilityZone.2=us-east-1b")),
			call: newMember,
			after: func(u *user) {
				if zone := u.instanceRecord("aura-1").Zone; zone != "b" {
					u.Errorf("the member shall be in %q", zone)
				}
			},
		},
		{
			name: "subnets of nobody's keep nothing anywhere", setup: having(newSubnets), call: with(newDB, "DBSubnetGroupName=nets", "AvailabilityZone=us-east-1c"),
			after: func(u *user) { u.do(with(newTrio, "DBSubnetGroupName=nets")) },
		},
	})
}

// TestNoRoomInTheZonesOfAGroup: other zones have room, and do not count.
func TestNoRoomInTheZonesOfAGroup(t *testing.T) {
	u := newWorld(t).user(t)
	u.do(ownSubnets)
	u.lose("b")
	u.try(with(newDB, inAB, "MultiAZ=true")).is("InsufficientDBInstanceCapacity", "host-c is in a zone that the subnet group does not cover")
	u.do(with(newDB, "MultiAZ=true"))
}
