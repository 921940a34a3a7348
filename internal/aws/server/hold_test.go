package server

import (
	"maps"
	"slices"
	"testing"

	"howdah/internal/model/param"
	"howdah/internal/state"
)

// held is a case of TestWhatIsUsedIsWritten.
type held struct {
	name  string
	setup []string
	call  string
	// keys are the records that the call must write too, by what they are called in failures.
	keys func(*user) map[string]string
}

// Keys of what the calls of these cases use.
func (u *user) mineKey() string {
	return state.ParameterGroup(string(param.Instance), u.account, u.region, "mine")
}

func (u *user) oursKey() string {
	return state.ParameterGroup(string(param.Cluster), u.account, u.region, "ours")
}

func (u *user) groupKeys(more map[string]string) map[string]string {
	all := map[string]string{
		"subnet group": state.SubnetGroup(u.account, u.region, "nets"), "option group": state.OptionGroup(u.account, u.region, "opts"),
		"security group": state.SecurityGroup(u.account, u.region, "sg-1"),
	}
	maps.Copy(all, more)
	return all
}

func (u *user) clusterKey() map[string]string {
	return map[string]string{"cluster": state.Cluster(u.account, u.region, "aura")}
}

const (
	withNets   = "DBSubnetGroupName=nets"
	withOpts   = "OptionGroupName=opts"
	withGuard  = "VpcSecurityGroupIds.VpcSecurityGroupId.1=sg-1"
	auroraOpts = "EngineName=aurora-postgresql"
)

var heldCases = []held{
	{
		name: "a new instance", setup: []string{newGroup, newSubnets, newOptions}, call: with(newDB, withMine, withNets, withOpts, withGuard),
		keys: func(u *user) map[string]string { return u.groupKeys(map[string]string{"parameter group": u.mineKey()}) },
	},
	{
		name: "a new replica", setup: []string{newGroup, newSubnets, newOptions, newDB}, call: with(newReplica, withMine, withNets, withOpts, withGuard),
		keys: func(u *user) map[string]string {
			return u.groupKeys(map[string]string{"parameter group": u.mineKey(), "source": state.Instance(u.account, u.region, "db")})
		},
	},
	{
		name: "a new replica of a cluster", setup: []string{newCluster, newMember},
		call: "CreateDBInstanceReadReplica?DBInstanceIdentifier=copy&SourceDBClusterIdentifier=aura", keys: (*user).clusterKey,
	},
	{
		name: "a new cluster", setup: []string{newShared, newSubnets, with(newOptions, auroraOpts)},
		call: with(newCluster, "DBClusterParameterGroupName=ours", withNets, withOpts, withGuard),
		keys: func(u *user) map[string]string { return u.groupKeys(map[string]string{"parameter group": u.oursKey()}) },
	},
	{
		name:  "a new member",
		setup: []string{with(newGroup, "DBParameterGroupFamily=aurora-postgresql15"), newSubnets, with(newOptions, auroraOpts), newCluster},
		call:  with(newMember, withMine, withNets, withOpts),
		keys: func(u *user) map[string]string {
			all := u.clusterKey()
			all["parameter group"] = u.mineKey()
			maps.Copy(all, u.groupKeys(nil))
			delete(all, "security group")
			return all
		},
	},
	{
		name: "a modified instance", setup: []string{newGroup, newSubnets, newOptions, newDB},
		call: with("ModifyDBInstance?DBInstanceIdentifier=db", withMine, withNets, withOpts, withGuard),
		keys: func(u *user) map[string]string { return u.groupKeys(map[string]string{"parameter group": u.mineKey()}) },
	},
	{
		name: "a modified cluster", setup: []string{newShared, with(newOptions, auroraOpts), newCluster, newMember},
		call: with("ModifyDBCluster?DBClusterIdentifier=aura", "DBClusterParameterGroupName=ours", withOpts, withGuard),
		keys: func(u *user) map[string]string {
			all := u.groupKeys(map[string]string{"parameter group": u.oursKey()})
			delete(all, "subnet group")
			return all
		},
	},
	{
		name: "a member of a larger class", setup: []string{newCluster, newMember},
		call: "ModifyDBInstance?DBInstanceIdentifier=aura-1&DBInstanceClass=db.m5.large&ApplyImmediately=true", keys: (*user).clusterKey,
	},
	{name: "a new endpoint", setup: []string{newCluster, newMember}, call: addEndpoint, keys: (*user).clusterKey},
}

// TestWhatIsUsedIsWritten: whoever comes to use a group, a source or a cluster writes its record
// in the same transaction. So one that is deleted at that moment is noticed.
func TestWhatIsUsedIsWritten(t *testing.T) {
	w := newWorld(t)
	w.shift = toAfternoon()
	for _, c := range heldCases {
		t.Run(c.name, func(t *testing.T) {
			u := w.user(t)
			u.securityGroup("sg-1")
			having(c.setup...)(u)
			keys := c.keys(u)
			before := map[string]int64{}
			for what, key := range keys {
				_, revision, found := w.server.Cache.Raw(key)
				if !found {
					t.Fatalf("there is no %s", what)
				}
				before[what] = revision
			}
			u.do(c.call)
			for _, what := range slices.Sorted(maps.Keys(keys)) {
				if _, revision, found := w.server.Cache.Raw(keys[what]); !found || revision == before[what] {
					t.Errorf("the %s was not written", what)
				}
			}
		})
	}
}
