package server

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"howdah/internal/aws/rds/look"
)

const (
	newSubnets   = "CreateDBSubnetGroup?DBSubnetGroupName=Nets&DBSubnetGroupDescription=text&SubnetIds.SubnetIdentifier.1=subnet-a&SubnetIds.SubnetIdentifier.2=subnet-0f3a"
	showSubnets  = "DescribeDBSubnetGroups?DBSubnetGroupName=nets"
	dropSubnets  = "DeleteDBSubnetGroup?DBSubnetGroupName=nets"
	setSubnets   = "ModifyDBSubnetGroup?DBSubnetGroupName=nets&SubnetIds.SubnetIdentifier.1=subnet-b&SubnetIds.SubnetIdentifier.2=subnet-c"
	newOptions   = "CreateOptionGroup?OptionGroupName=Opts&EngineName=postgres&MajorEngineVersion=15&OptionGroupDescription=text"
	showOptions  = "DescribeOptionGroups?OptionGroupName=opts"
	dropOptions  = "DeleteOptionGroup?OptionGroupName=opts"
	setOptions   = "ModifyOptionGroup?OptionGroupName=opts"
	copyOptions  = "CopyOptionGroup?SourceOptionGroupIdentifier=opts&TargetOptionGroupIdentifier=Other&TargetOptionGroupDescription=copy"
	noSubnets    = "DBSubnetGroupNotFoundFault"
	noOptions    = "OptionGroupNotFoundFault"
	subnetsInUse = "InvalidDBSubnetGroupStateFault"
	optionsInUse = "InvalidOptionGroupStateFault"
	badRole      = "arn:aws:iam::1:role/x"
	addRole      = "AddRoleToDBInstance?DBInstanceIdentifier=db&FeatureName=s3Import&RoleArn=arn:aws:iam::123456789012:role/x"
	dropRole     = "RemoveRoleFromDBInstance?DBInstanceIdentifier=db&FeatureName=s3Import&RoleArn=arn:aws:iam::123456789012:role/x"
	addAuraRole  = "AddRoleToDBCluster?DBClusterIdentifier=aura&RoleArn=arn:aws:iam::123456789012:role/x"
	dropAuraRole = "RemoveRoleFromDBCluster?DBClusterIdentifier=aura&RoleArn=arn:aws:iam::123456789012:role/x"
)

var subnetGroupScenarios = append(append([]scenario{
	{
		name: "a group", call: newSubnets + "&Tags.Tag.1.Key=a",
		want: []string{
			"DBSubnetGroup/DBSubnetGroupName=nets", "DBSubnetGroup/DBSubnetGroupDescription=text", "DBSubnetGroup/SubnetGroupStatus=Complete",
			"DBSubnetGroup/Subnets/Subnet#2", "DBSubnetGroup/Subnets/Subnet[1]/SubnetAvailabilityZone/Name=us-east-1a",
			"DBSubnetGroup/Subnets/Subnet[2]/SubnetIdentifier=subnet-0f3a", "DBSubnetGroup/Subnets/Subnet[2]/SubnetAvailabilityZone/Name=us-east-1b",
		},
		after: func(u *user) {
			arn := "arn:aws:rds:us-east-1:" + u.account + ":subgrp:nets"
			u.do(showSubnets).has("DBSubnetGroups/DBSubnetGroup#1", "DBSubnetGroups/DBSubnetGroup/DBSubnetGroupArn="+arn)
			u.do("DescribeDBSubnetGroups?DBSubnetGroupName=" + arn).has("DBSubnetGroups/DBSubnetGroup#1")
			u.do("DescribeDBSubnetGroups").has("DBSubnetGroups/DBSubnetGroup#2", "DBSubnetGroups/DBSubnetGroup[1]/DBSubnetGroupName=default")
			u.do("AddTagsToResource?ResourceName=" + arn + "&Tags.Tag.1.Key=b&Tags.Tag.1.Value=1")
			u.do("RemoveTagsFromResource?ResourceName=" + arn + "&TagKeys.member.1=a")
			u.do("ListTagsForResource?ResourceName="+arn).has("TagList/Tag#1", "TagList/Tag/Key=b")
			u.region = "eu-west-1"
			u.try(showSubnets).is(noSubnets, "nets")
			u.try(with(newDB, "DBSubnetGroupName=nets")).is(noSubnets, "nets")
		},
	},
	{name: "a name that is taken", setup: having(newSubnets), call: newSubnets, code: "DBSubnetGroupAlreadyExists", message: "nets"},
	{name: "the default group", call: "DescribeDBSubnetGroups?DBSubnetGroupName=Default", want: []string{"DBSubnetGroups/DBSubnetGroup/Subnets/Subnet#3"}},
	{name: "other subnets", setup: having(newSubnets), call: setSubnets + "&DBSubnetGroupDescription=other", want: []string{
		"DBSubnetGroup/Subnets/Subnet[2]/SubnetIdentifier=subnet-c", "DBSubnetGroup/Subnets/Subnet[2]/SubnetAvailabilityZone/Name=us-east-1c", "DBSubnetGroup/DBSubnetGroupDescription=other",
	}},
	{name: "other subnets of nothing", call: setSubnets, code: noSubnets},
	{name: "other subnets of the default group", call: with(setSubnets, "DBSubnetGroupName=default"), code: subnetsInUse, message: "home's own"},
	{name: "deleted", setup: having(newSubnets), call: dropSubnets, after: func(u *user) { u.try(showSubnets).is(noSubnets, "nets"); u.do(newSubnets) }},
	{name: "deleted, of nothing", call: dropSubnets, code: noSubnets, message: "nets"},
	{name: "deleted, the default group", call: with(dropSubnets, "DBSubnetGroupName=DEFAULT"), code: subnetsInUse},
	{name: "filters", call: "DescribeDBSubnetGroups?" + badFilter, code: badValue},
	{
		name: "of an instance", setup: having(newSubnets), call: with(newDB, "DBSubnetGroupName=NETS"),
		want: []string{"DBInstance/DBSubnetGroup/DBSubnetGroupName=nets", "DBInstance/DBSubnetGroup/Subnets/Subnet#2"},
		after: func(u *user) {
			u.settle()
			u.try(dropSubnets).is(subnetsInUse, "db is still using it")
			u.do(setSubnets)
			u.do(showDB).has("DBInstances/DBInstance/DBSubnetGroup/Subnets/Subnet[1]/SubnetIdentifier=subnet-b")
			u.do("ModifyDBInstance?DBInstanceIdentifier=db&DBSubnetGroupName=default").has("DBInstance/DBSubnetGroup/DBSubnetGroupName=default")
			u.do(dropSubnets)
			u.try("ModifyDBInstance?DBInstanceIdentifier=db&DBSubnetGroupName=nets").is(noSubnets, "nets")
		},
	},
	{
		name: "of an instance, later", setup: having(newSubnets, newDB), call: "ModifyDBInstance?DBInstanceIdentifier=db&DBSubnetGroupName=Nets",
		want: []string{"DBInstance/DBSubnetGroup/DBSubnetGroupName=nets"}, after: func(u *user) { u.try(dropSubnets).is(subnetsInUse, "db") },
	},
	{
		name: "of a cluster and its members", setup: having(newSubnets), call: with(newCluster, "DBSubnetGroupName=nets"), want: []string{"DBCluster/DBSubnetGroup=nets"},
		after: func(u *user) {
			u.try(dropSubnets).is(subnetsInUse, "aura")
			u.do(newMember).has("DBInstance/DBSubnetGroup/DBSubnetGroupName=nets")
		},
	},
	{
		name: "of a Multi-AZ DB cluster", setup: having(newSubnets), call: with(newTrio, "DBSubnetGroupName=nets"), want: []string{"DBCluster/DBSubnetGroup=nets"},
		after: func(u *user) {
			u.do("DescribeDBInstances?DBInstanceIdentifier=trio-instance-2").has("DBInstances/DBInstance/DBSubnetGroup/DBSubnetGroupName=nets")
		},
	},
	{name: "of a replica", setup: having(newSubnets, newDB), call: newReplica + "&DBSubnetGroupName=nets", want: []string{"DBInstance/DBSubnetGroup/DBSubnetGroupName=nets"}},
	{name: "of a replica, that is not there", setup: having(newDB), call: newReplica + "&DBSubnetGroupName=nets", code: noSubnets},
	{
		name: "too many", call: "DescribeDBSubnetGroups", after: func(u *user) {
			for n := range look.MaxSubnetGroups {
				u.do(with(newSubnets, fmt.Sprintf("DBSubnetGroupName=g%d", n)))
			}
			u.try(newSubnets).is("DBSubnetGroupQuotaExceeded", "50")
			u.do("DescribeDBSubnetGroups?MaxRecords=20").has("DBSubnetGroups/DBSubnetGroup#20")
			u.do("DescribeAccountAttributes")
		},
	},
}, refusals(nil, newSubnets, []refusal{
	{"-DBSubnetGroupName", missing, "DBSubnetGroupName"},
	{"-DBSubnetGroupDescription", missing, "DBSubnetGroupDescription"},
	{"DBSubnetGroupDescription=", badValue, "DBSubnetGroupDescription"},
	{"DBSubnetGroupName=default", badValue, "DBSubnetGroupName"},
	{"DBSubnetGroupName=a/b", badValue, "DBSubnetGroupName"},
	{"DBSubnetGroupName=", badValue, "DBSubnetGroupName"},
	{"-SubnetIds.SubnetIdentifier.2", "DBSubnetGroupDoesNotCoverEnoughAZs", "us-east-1a"},
	{"SubnetIds.SubnetIdentifier.2=subnet-a", badValue, "twice"},
	{"SubnetIds.SubnetIdentifier.2=net", "InvalidSubnet", "net"},
	{"Tags.Tag.1.Key=aws:x", badValue, "aws:"},
})...), refusals(having(newSubnets), setSubnets, []refusal{
	{"-SubnetIds.SubnetIdentifier.1&-SubnetIds.SubnetIdentifier.2&SubnetIds=", badValue, "SubnetIds"},
	{"-SubnetIds.SubnetIdentifier.2", "DBSubnetGroupDoesNotCoverEnoughAZs", "us-east-1b"},
	{"DBSubnetGroupDescription=", badValue, "DBSubnetGroupDescription"},
})...)

var optionGroupScenarios = append([]scenario{
	{
		name: "a group", call: newOptions,
		want: []string{"OptionGroup/OptionGroupName=opts", "OptionGroup/EngineName=postgres", "OptionGroup/MajorEngineVersion=15", "OptionGroup/Options#1", "!OptionGroup/SourceOptionGroup"},
		after: func(u *user) {
			arn := "arn:aws:rds:us-east-1:" + u.account + ":og:opts"
			u.do(showOptions).has("OptionGroupsList/OptionGroup#1", "OptionGroupsList/OptionGroup/OptionGroupArn="+arn)
			u.do("DescribeOptionGroups").has("OptionGroupsList/OptionGroup#3", "OptionGroupsList/OptionGroup[1]/OptionGroupName=default:aurora-postgresql-15",
				"OptionGroupsList/OptionGroup[3]/OptionGroupName=opts")
			u.do("DescribeOptionGroups?EngineName=postgres&MajorEngineVersion=15").has("OptionGroupsList/OptionGroup#2")
			u.do("AddTagsToResource?ResourceName=" + arn + "&Tags.Tag.1.Key=b")
			u.do("ListTagsForResource?ResourceName=" + arn).has("TagList/Tag#1")
			u.try(newOptions).is("OptionGroupAlreadyExistsFault", "opts")
		},
	},
	{name: "a default group", call: "DescribeOptionGroups?OptionGroupName=default:postgres-15", want: []string{"OptionGroupsList/OptionGroup/EngineName=postgres"}},
	{name: "no such group", call: showOptions, code: noOptions, message: "opts"},
	{name: "a name and an engine", call: showOptions + "&EngineName=postgres", code: badMix},
	{name: "a version without an engine", call: "DescribeOptionGroups?MajorEngineVersion=15", code: badMix},
	{name: "filters", call: "DescribeOptionGroups?" + badFilter, code: badValue},
	{
		name: "a copy", setup: having(newOptions), call: copyOptions, want: []string{"OptionGroup/OptionGroupName=other", "OptionGroup/OptionGroupDescription=copy"},
		after: func(u *user) {
			u.do("DescribeOptionGroups?OptionGroupName=other").has("OptionGroupsList/OptionGroup/SourceAccountId=" + u.account)
		},
	},
	{name: "a copy of nothing", call: copyOptions, code: noOptions},
	{name: "a copy of a default group", call: with(copyOptions, "SourceOptionGroupIdentifier=default:postgres-15"), code: badValue, message: "cannot be copied"},
	{name: "a copy with a bad name", setup: having(newOptions), call: with(copyOptions, "TargetOptionGroupIdentifier=a_b"), code: badValue, message: "TargetOptionGroupIdentifier"},
	{name: "nothing changed", setup: having(newOptions), call: setOptions, want: []string{"OptionGroup/OptionGroupName=opts"}},
	{name: "an option", setup: having(newOptions), call: setOptions + "&OptionsToInclude.OptionConfiguration.1.OptionName=TDE", code: badValue, message: "TDE"},
	{name: "an option less", setup: having(newOptions), call: setOptions + "&OptionsToRemove.member.1=TDE", code: badValue, message: "TDE"},
	{name: "change a default group", call: with(setOptions, "OptionGroupName=default:postgres-15"), code: optionsInUse, message: "default:postgres-15"},
	{name: "change nothing", call: setOptions, code: noOptions},
	{name: "deleted", setup: having(newOptions), call: dropOptions, after: func(u *user) { u.try(showOptions).is(noOptions, "") }},
	{name: "deleted, of nothing", call: dropOptions, code: noOptions},
	{name: "deleted, a default group", call: with(dropOptions, "OptionGroupName=default:postgres-15"), code: optionsInUse},
	{name: "options of PostgreSQL", call: "DescribeOptionGroupOptions?EngineName=postgres", want: []string{"OptionGroupOptions/OptionGroupOption#0"}},
	{name: "options of Oracle", call: "DescribeOptionGroupOptions?EngineName=oracle-ee", code: badValue, message: "oracle-ee"},
	{name: "options, a filter", call: "DescribeOptionGroupOptions?EngineName=postgres&" + badFilter, code: badValue},
	{
		name: "of an instance", setup: having(newOptions), call: with(newDB, "OptionGroupName=OPTS"),
		want: []string{"DBInstance/OptionGroupMemberships/OptionGroupMembership/OptionGroupName=opts"},
		after: func(u *user) {
			u.settle()
			u.try(dropOptions).is(optionsInUse, "in use by db")
			u.do("ModifyDBInstance?DBInstanceIdentifier=db&OptionGroupName=default:postgres-15").has("DBInstance/OptionGroupMemberships/OptionGroupMembership/OptionGroupName=default:postgres-15")
			u.do(dropOptions)
			u.try("ModifyDBInstance?DBInstanceIdentifier=db&OptionGroupName=opts").is(noOptions, "opts")
		},
	},
	{
		name: "of an instance, later", setup: having(newOptions, newDB), call: "ModifyDBInstance?DBInstanceIdentifier=db&OptionGroupName=opts",
		want: []string{"DBInstance/OptionGroupMemberships/OptionGroupMembership/OptionGroupName=opts"}, after: func(u *user) { u.try(dropOptions).is(optionsInUse, "db") },
	},
	{
		name: "of a replica", setup: having(newOptions, newDB), call: newReplica + "&OptionGroupName=opts",
		want: []string{"DBInstance/OptionGroupMemberships/OptionGroupMembership/OptionGroupName=opts"},
	},
	{name: "of another engine", setup: having(newOptions), call: with(newCluster, "OptionGroupName=opts"), code: badMix, message: "postgres 15"},
	{
		name: "of a cluster", setup: having(with(newOptions, "EngineName=aurora-postgresql")), call: with(newCluster, "OptionGroupName=opts"),
		want: []string{"DBCluster/DBClusterOptionGroupMemberships/DBClusterOptionGroup/DBClusterOptionGroupName=opts"},
		after: func(u *user) {
			u.try(dropOptions).is(optionsInUse, "aura")
			u.do(newMember)
			u.settle()
			u.do("ModifyDBCluster?DBClusterIdentifier=aura&OptionGroupName=default:aurora-postgresql-15")
			u.do(dropOptions)
		},
	},
	{name: "a default group of another engine", call: with(newDB, "OptionGroupName=default:aurora-postgresql-15"), code: badMix},
	{
		name: "too many", call: "DescribeOptionGroups", after: func(u *user) {
			for n := range look.MaxOptionGroups {
				u.do(with(newOptions, fmt.Sprintf("OptionGroupName=g%d", n)))
			}
			u.try(newOptions).is("OptionGroupQuotaExceededFault", "20")
			u.do("DescribeOptionGroups?MaxRecords=20").has("OptionGroupsList/OptionGroup#20")
		},
	},
}, refusals(nil, newOptions, []refusal{
	{"-OptionGroupName", missing, "OptionGroupName"},
	{"-EngineName", missing, "EngineName"},
	{"-MajorEngineVersion", missing, "MajorEngineVersion"},
	{"OptionGroupDescription=", badValue, "OptionGroupDescription"},
	{"OptionGroupName=a--b", badValue, "OptionGroupName"},
	{"EngineName=mysql", badValue, "mysql"},
	{"MajorEngineVersion=14", badMix, "14"},
})...)

var roleScenarios = append(append([]scenario{
	{
		name: "of an instance", setup: having(newDB), call: addRole, after: func(u *user) {
			const role = "DBInstances/DBInstance/AssociatedRoles/DBInstanceRole"
			u.do(showDB).has(role+"#1", role+"/FeatureName=s3Import", role+"/Status=INVALID", role+"/RoleArn=arn:aws:iam::123456789012:role/x")
			u.try(addRole).is("DBInstanceRoleAlreadyExists", "s3Import")
			u.do(with(addRole, "FeatureName=Lambda"))
			u.try(with(dropRole, "FeatureName=s3Export")).is("DBInstanceRoleNotFound", "s3Export")
			u.do(dropRole)
			u.do(showDB).has(role+"#1", role+"/FeatureName=Lambda", "DBInstances/DBInstance/DBInstanceStatus=available")
		},
	},
	{name: "of nothing", call: addRole, code: "DBInstanceNotFound"},
	{name: "taken from nothing", call: dropRole, code: "DBInstanceNotFound"},
	{name: "of an instance that is deleted", setup: func(u *user) { having(newDB)(u); u.do(dropDB) }, call: addRole, code: badState, message: "deleting"},
	{name: "taken from an instance that is deleted", setup: func(u *user) { having(newDB)(u); u.do(dropDB) }, call: dropRole, code: badState},
	{
		name: "of a cluster", setup: having(newCluster, newMember), call: addAuraRole, after: func(u *user) {
			const role = "DBClusters/DBCluster/AssociatedRoles/DBClusterRole"
			u.try(addAuraRole).is("DBClusterRoleAlreadyExists", "x")
			u.do(addAuraRole + "&FeatureName=s3Export")
			u.do(showAll+"aura").has(role+"#2", "!"+role+"[1]/FeatureName", role+"[2]/FeatureName=s3Export")
			u.try(dropAuraRole+"&FeatureName=Lambda").is("DBClusterRoleNotFound", "x")
			u.do(dropAuraRole)
			for n := range look.MaxRoles - 1 {
				u.do(with(addAuraRole, fmt.Sprintf("RoleArn=arn:aws:iam::123456789012:role/r%d", n)))
			}
			u.try(addAuraRole).is("DBClusterRoleQuotaExceeded", "5")
		},
	},
	{name: "of no cluster", call: addAuraRole, code: noCluster},
	{name: "taken from no cluster", call: dropAuraRole, code: noCluster},
	{name: "of a cluster that is deleted", setup: func(u *user) {
		having(newCluster, newMember)(u)
		u.do("DeleteDBInstance?DBInstanceIdentifier=aura-1")
		u.do("DeleteDBCluster?DBClusterIdentifier=aura&SkipFinalSnapshot=true")
	}, call: addAuraRole, code: "InvalidDBClusterStateFault", after: func(u *user) { u.try(dropAuraRole).is("InvalidDBClusterStateFault", "aura") }},
}, refusals(having(newDB), addRole, []refusal{
	{"-RoleArn", missing, "RoleArn"},
	{"-FeatureName", missing, "FeatureName"},
	{"RoleArn=" + badRole, badValue, "RoleArn"},
	{"FeatureName=flying", badValue, "flying"},
})...), refusals(having(newCluster, newMember), addAuraRole, []refusal{
	{"-RoleArn", missing, "RoleArn"},
	{"RoleArn=" + badRole, badValue, "RoleArn"},
	{"FeatureName=flying", badValue, "flying"},
})...)

// TestGroupsAreNotDeletedWhileTaken: of a deletion and a creation at one moment,
// never both succeed.
func TestGroupsAreNotDeletedWhileTaken(t *testing.T) {
	w := newWorld(t)
	for range 8 {
		u := w.user(t)
		u.do(newSubnets)
		u.do(newOptions)
		var done sync.WaitGroup
		results := make([]string, 3)
		for n, call := range []string{with(newDB, "DBSubnetGroupName=nets", "OptionGroupName=opts"), dropSubnets, dropOptions} {
			done.Go(func() {
				action, query, _ := strings.Cut(call, "?")
				status, _ := u.send("Action="+action+"&"+query, "rds", nil)
				results[n] = fmt.Sprint(status)
			})
		}
		done.Wait()
		subnets := len(u.server.looks.SubnetGroups(u.scope()))
		options := len(u.server.looks.OptionGroups(u.scope()))
		if made := results[0] == "200"; made && (subnets == 0 || options == 0) {
			t.Errorf("%v: an instance has groups that are gone", results)
		}
		if (results[1] == "200") != (subnets == 0) || (results[2] == "200") != (options == 0) {
			t.Errorf("%v: %d subnet groups and %d option groups are left", results, subnets, options)
		}
	}
}

// TestOneZone: where all hosts are in one zone, its subnet is enough.
func TestOneZone(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	w.unhost("b")
	w.unhost("c")
	u.do(with(newSubnets, "-SubnetIds.SubnetIdentifier.2")).has("DBSubnetGroup/Subnets/Subnet#1")
	u.do(with(newSubnets, "DBSubnetGroupName=more")).has("DBSubnetGroup/Subnets/Subnet[2]/SubnetAvailabilityZone/Name=us-east-1a")
	w.unhost("a")
	u.do(with(newSubnets, "DBSubnetGroupName=none")).has("DBSubnetGroup/Subnets/Subnet[2]/SubnetAvailabilityZone/Name=us-east-1a")
}
