package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"howdah/internal/model/network"
	"howdah/internal/model/network/cidr"
	"howdah/internal/state"
)

const (
	newSecurity  = "CreateSecurityGroup?GroupName=app&GroupDescription=the app"
	showSecurity = "DescribeSecurityGroups?GroupName.1=app"
	groups       = "securityGroupInfo/item"
	tcp5432      = "IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort=5432&IpPermissions.1.ToPort=5432"
	letOffice    = "AuthorizeSecurityGroupIngress?GroupName=app&" + tcp5432 + "&IpPermissions.1.IpRanges.1.CidrIp=10.1.0.0/16"
)

// securityGroup makes a group with an id that the test chooses, for everyone.
func (u *user) securityGroup(id string) {
	u.Helper()
	g := network.Group{
		Scope: u.scope(), ID: id, Name: "name of " + id, Description: "made by a test",
		Rules: []network.Rule{{ID: "sgr-1", Protocol: network.TCP, From: 0, To: 65535, Source: cidr.Everyone}},
	}
	u.put(state.Put(state.SecurityGroup(u.account, u.region, id), g))
}

var securityGroupScenarios = []scenario{
	{
		name: "made with nobody let in",
		call: newSecurity + "&VpcId=vpc-howdah&TagSpecification.1.ResourceType=security-group&TagSpecification.1.Tag.1.Key=team&TagSpecification.1.Tag.1.Value=blue",
		want: []string{"tagSet/item/key=team"},
		after: func(u *user) {
			u.do(showSecurity).has(groups+"#1", groups+"/groupName=app", groups+"/groupDescription=the app", groups+"/vpcId=vpc-howdah",
				groups+"/ownerId="+u.account, groups+"/ipPermissions/item#0", groups+"/tagSet/item/value=blue",
				groups+"/ipPermissionsEgress/item/ipRanges/item/cidrIp=0.0.0.0/0", groups+"/ipPermissionsEgress/item/ipProtocol=-1")
		},
	},
	{
		name: "the default group lets everyone in",
		call: "DescribeSecurityGroups",
		want: []string{
			groups + "#1", groups + "/groupName=default", groups + "/ipPermissions/item/ipProtocol=-1",
			groups + "/ipPermissions/item/ipRanges/item/cidrIp=0.0.0.0/0",
		},
	},
	{
		name:  "rules for one range of ports stand together",
		setup: func(u *user) { u.do(newSecurity); u.do(letOffice) },
		call: "AuthorizeSecurityGroupIngress?GroupName=app&" + tcp5432 +
			"&IpPermissions.1.IpRanges.1.CidrIp=10.2.3.4/32&IpPermissions.1.IpRanges.1.Description=me&IpPermissions.2.IpProtocol=-1&IpPermissions.2.IpRanges.1.CidrIp=192.168.7.9/24",
		want: []string{
			"return=true", "securityGroupRuleSet/item#2", "securityGroupRuleSet/item/cidrIpv4=10.2.3.4/32", "securityGroupRuleSet/item/isEgress=false",
			"securityGroupRuleSet/item/description=me",
		},
		after: func(u *user) {
			u.do(showSecurity).has(groups+"/ipPermissions/item#2", groups+"/ipPermissions/item[1]/ipRanges/item#2", groups+"/ipPermissions/item[1]/toPort=5432",
				groups+"/ipPermissions/item[2]/ipRanges/item/cidrIp=192.168.7.0/24", "!"+groups+"/ipPermissions/item[2]/fromPort")
		},
	},
	{
		name:  "the flat form of a rule",
		setup: func(u *user) { u.do(newSecurity) },
		call:  "AuthorizeSecurityGroupIngress?GroupName=app&CidrIp=10.0.0.0/8&IpProtocol=6&FromPort=5000&ToPort=6000",
		want:  []string{"securityGroupRuleSet/item/ipProtocol=tcp", "securityGroupRuleSet/item/fromPort=5000"},
		after: func(u *user) {
			u.do("RevokeSecurityGroupIngress?GroupName=app&CidrIp=10.0.0.0/8&IpProtocol=tcp&FromPort=5000&ToPort=6000").
				has("return=true", "revokedSecurityGroupRuleSet/item/cidrIpv4=10.0.0.0/8")
			u.do(showSecurity).has(groups + "/ipPermissions/item#0")
		},
	},
	{
		name:  "a rule is revoked by its id",
		setup: func(u *user) { u.do(newSecurity); u.do(letOffice) },
		call:  "DescribeSecurityGroupRules?Filter.1.Name=group-id&Filter.1.Value.1=*",
		want:  []string{"securityGroupRuleSet/item#2"},
		after: func(u *user) {
			group := u.do(showSecurity).text(groups + "/groupId")
			id := u.do("DescribeSecurityGroupRules?Filter.1.Name=group-id&Filter.1.Value.1=" + group).text("securityGroupRuleSet/item/securityGroupRuleId")
			u.do("DescribeSecurityGroupRules?SecurityGroupRuleId.1="+id).has("securityGroupRuleSet/item/groupId="+group, "securityGroupRuleSet/item#1")
			u.do("RevokeSecurityGroupIngress?GroupId=" + group + "&SecurityGroupRuleId.1=" + id).has("revokedSecurityGroupRuleSet/item#1")
			u.try("RevokeSecurityGroupIngress?GroupId="+group+"&SecurityGroupRuleId.1="+id).is("InvalidSecurityGroupRuleId.NotFound", id)
		},
	},
	{
		name:  "half a change is none",
		setup: func(u *user) { u.do(newSecurity); u.do(letOffice) },
		call:  letOffice + "&IpPermissions.1.IpRanges.2.CidrIp=10.9.0.0/16",
		code:  "InvalidPermission.Duplicate", message: "10.1.0.0/16",
		after: func(u *user) {
			u.try("RevokeSecurityGroupIngress?GroupName=app&"+tcp5432+"&IpPermissions.1.IpRanges.1.CidrIp=10.1.0.0/16&IpPermissions.1.IpRanges.2.CidrIp=10.9.0.0/16").
				is("InvalidPermission.NotFound", "10.9.0.0/16")
			u.do(showSecurity).has(groups+"/ipPermissions/item/ipRanges/item#1", groups+"/ipPermissions/item/ipRanges/item/cidrIp=10.1.0.0/16")
		},
	},
	{
		name: "the default group can be changed, and stays",
		call: "RevokeSecurityGroupIngress?GroupName=default&IpPermissions.1.IpProtocol=-1&IpPermissions.1.IpRanges.1.CidrIp=0.0.0.0/0",
		want: []string{"revokedSecurityGroupRuleSet/item#1"},
		after: func(u *user) {
			u.do("DescribeSecurityGroups?GroupName.1=default").has(groups + "/ipPermissions/item#0")
			u.try("DeleteSecurityGroup?GroupName=default").is("CannotDelete", "default")
		},
	},
	{
		name:  "deleted",
		setup: func(u *user) { u.do(newSecurity) },
		call:  "DeleteSecurityGroup?GroupName=app",
		want:  []string{"return=true"},
		after: func(u *user) { u.try(showSecurity).is("InvalidGroup.NotFound", "app") },
	},
	{
		name:  "a name is taken once",
		setup: func(u *user) { u.do(newSecurity) },
		call:  newSecurity, code: "InvalidGroup.Duplicate", message: "app",
	},
	{
		name: "a dry run does nothing",
		call: newSecurity + "&DryRun=true", code: "DryRunOperation", message: "would have succeeded",
		after: func(u *user) { u.try(showSecurity).is("InvalidGroup.NotFound", "app") },
	},
	{
		name: "regions have groups of their own",
		call: newSecurity,
		after: func(u *user) {
			u.region = "eu-west-1"
			u.do("DescribeSecurityGroups").has(groups + "#1")
		},
	},
	{name: "the network of the home", call: "DescribeVpcs", want: []string{"vpcSet/item#1", "vpcSet/item/vpcId=vpc-howdah", "vpcSet/item/cidrBlock=127.77.0.0/21"}},
	{name: "no other network", call: "DescribeVpcs?Filter.1.Name=is-default&Filter.1.Value.1=false", want: []string{"vpcSet/item#0"}},
	{
		name: "a subnet for each zone", call: "DescribeSubnets?Filter.1.Name=vpc-id&Filter.1.Value.1=vpc-howdah",
		want: []string{"subnetSet/item#3", "subnetSet/item[2]/availabilityZone=us-east-1b"},
	},
	{name: "one subnet", call: "DescribeSubnets?SubnetId.1=subnet-c", want: []string{"subnetSet/item#1", "subnetSet/item/subnetId=subnet-c"}},
}

func TestSecurityGroupBadInput(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	u.do(newSecurity)
	allow := "AuthorizeSecurityGroupIngress?GroupName=app&"
	many := &strings.Builder{}
	for i := range 60 + 1 {
		fmt.Fprintf(many, "&IpPermissions.1.IpRanges.%d.CidrIp=10.0.0.%d/32", i+1, i)
	}
	for _, tt := range []struct{ call, code, message string }{
		{"CreateSecurityGroup?GroupDescription=x", "MissingParameter", "GroupName"},
		{"CreateSecurityGroup?GroupName=x", "MissingParameter", "GroupDescription"},
		{"CreateSecurityGroup?GroupName=default&GroupDescription=x", "InvalidGroup.Reserved", "default"},
		{"CreateSecurityGroup?GroupName=sg-1&GroupDescription=x", badValue, "sg-1"},
		{"CreateSecurityGroup?GroupName=a%0Ab&GroupDescription=x", badValue, "GroupName"},
		{"CreateSecurityGroup?GroupName=" + strings.Repeat("a", 256) + "&GroupDescription=x", badValue, "GroupName"},
		{"CreateSecurityGroup?GroupName=x&GroupDescription=a%22b", badValue, "GroupDescription"},
		{newSecurity + "x&VpcId=vpc-other", "InvalidVpcID.NotFound", "vpc-other"},
		{newSecurity + "&TagSpecification.1.ResourceType=vpc&TagSpecification.1.Tag.1.Key=a", badValue, "vpc"},
		{"DeleteSecurityGroup", "MissingParameter", "GroupId"},
		{"DeleteSecurityGroup?GroupId=x", "InvalidGroupId.Malformed", "x"},
		{"DeleteSecurityGroup?GroupId=sg-0123", "InvalidGroup.NotFound", "sg-0123"},
		{"DescribeSecurityGroups?GroupId.1=sg-0123", "InvalidGroup.NotFound", "sg-0123"},
		{"DescribeSecurityGroups?GroupId.1=sg/", "InvalidGroupId.Malformed", "sg/"},
		{"DescribeSecurityGroups?Filter.1.Name=colour&Filter.1.Value.1=x", badValue, "colour"},
		{"DescribeSecurityGroups?Filter.1.Name=group-id", badValue, "group-id"},
		{"DescribeSecurityGroups?Filter.1.Name=tag:&Filter.1.Value.1=x", badValue, "tag:"},
		{"DescribeSecurityGroups?MaxResults=4", badValue, "MaxResults"},
		{"DescribeSecurityGroups?MaxResults=many", badValue, "MaxResults"},
		{"DescribeSecurityGroups?NextToken=x", badValue, "NextToken"},
		{showSecurity + "&MaxResults=5", "InvalidParameterCombination", "GroupNames"},
		{"AuthorizeSecurityGroupIngress?" + tcp5432 + "&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/8", "MissingParameter", "GroupId"},
		{allow + "x=y", "MissingParameter", "IpPermissions"},
		{allow + tcp5432, "MissingParameter", "CidrIp"},
		{allow + tcp5432 + "&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0", badValue, "CidrIp"},
		{allow + tcp5432 + "&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/33", badValue, "10.0.0.0/33"},
		{allow + tcp5432 + "&IpPermissions.1.IpRanges.1.CidrIp=fd00::/8", "UnsupportedOperation", "IPv4"},
		{allow + tcp5432 + "&IpPermissions.1.Ipv6Ranges.1.CidrIpv6=::/0", "UnsupportedOperation", "IPv4"},
		{allow + tcp5432 + "&IpPermissions.1.Groups.1.GroupId=sg-1", "UnsupportedOperation", "CidrIp"},
		{allow + tcp5432 + "&IpPermissions.1.PrefixListIds.1.PrefixListId=pl-1", "UnsupportedOperation", "CidrIp"},
		{allow + "SourceSecurityGroupName=x", "UnsupportedOperation", "SourceSecurityGroupName"},
		{allow + tcp5432 + "&CidrIp=10.0.0.0/8", "InvalidParameterCombination", "IpPermissions"},
		{allow + "IpProtocol=tcp&FromPort=1&ToPort=2", "MissingParameter", "CidrIp"},
		{allow + "CidrIp=10.0.0.0/8", "MissingParameter", "IpProtocol"},
		{allow + "CidrIp=10.0.0.0/8&IpProtocol=tcp&FromPort=1", "MissingParameter", "ToPort"},
		{allow + "CidrIp=10.0.0.0/8&IpProtocol=tcp&FromPort=2&ToPort=1", badValue, "FromPort"},
		{allow + "CidrIp=10.0.0.0/8&IpProtocol=tcp&FromPort=0&ToPort=65536", badValue, "65535"},
		{allow + "CidrIp=10.0.0.0/8&IpProtocol=tcp&FromPort=x&ToPort=65536", badValue, "FromPort"},
		{allow + "CidrIp=10.0.0.0/8&IpProtocol=carrier-pigeon", badValue, "carrier-pigeon"},
		{allow + "CidrIp=10.0.0.0/8&IpProtocol=icmpv6", "UnsupportedOperation", "IPv4"},
		{allow + tcp5432 + "&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/8&IpPermissions.1.IpRanges.2.CidrIp=10.1.0.0/8", badValue, "multiple"},
		{allow + tcp5432 + "&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/8&IpPermissions.1.IpRanges.1.Description=a%22", badValue, "Description"},
		{allow + tcp5432 + many.String(), "RulesPerSecurityGroupLimitExceeded", "60"},
		{allow + "IpPermissions.x.IpProtocol=tcp", badValue, "IpPermissions.x"},
		{"RevokeSecurityGroupIngress?GroupName=app&SecurityGroupRuleId.1=x", "InvalidSecurityGroupRuleId.Malformed", "x"},
		{"RevokeSecurityGroupIngress?GroupName=app&SecurityGroupRuleId.1=sgr-1&CidrIp=10.0.0.0/8", "InvalidParameterCombination", "SecurityGroupRuleIds"},
		{"RevokeSecurityGroupIngress?GroupName=other&CidrIp=10.0.0.0/8&IpProtocol=-1", "InvalidGroup.NotFound", "other"},
		{"DescribeSecurityGroupRules?SecurityGroupRuleId.1=sgr-0", "InvalidSecurityGroupRuleId.NotFound", "sgr-0"},
		{"DescribeVpcs?VpcId.1=vpc-1", "InvalidVpcID.NotFound", "vpc-1"},
		{"DescribeSubnets?SubnetId.1=subnet-x", "InvalidSubnetID.NotFound", "subnet-x"},
		{"ec2:RunInstances", "InvalidAction", "RunInstances"},
	} {
		u.try(tt.call).is(tt.code, tt.message)
	}
	u.do(showSecurity).has(groups + "/ipPermissions/item#0")
}

func TestSecurityGroupFilters(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	for i := range 7 {
		u.do(fmt.Sprintf("CreateSecurityGroup?GroupName=app-%d&GroupDescription=number %d&TagSpecification.1.ResourceType=security-group"+
			"&TagSpecification.1.Tag.1.Key=n&TagSpecification.1.Tag.1.Value=%d", i, i, i%2))
	}
	u.do("AuthorizeSecurityGroupIngress?GroupName=app-3&CidrIp=10.3.0.0/16&IpProtocol=tcp&FromPort=5432&ToPort=5433")
	for filter, want := range map[string]int{
		"group-name app-3": 1, "group-name app-*": 7, "group-name app-? default": 8, "group-name APP-3": 0, "vpc-id vpc-howdah": 8, "vpc-id vpc-1": 0,
		"tag:n 1": 3, "tag-key n": 7, "description *6": 1, "ip-permission.cidr 10.3.0.0/16": 1, "ip-permission.to-port 5433": 1,
		"ip-permission.protocol tcp": 1, "owner-id " + u.account: 8, "ip-permission.from-port 5433": 0,
	} {
		words := strings.Fields(filter)
		call := "DescribeSecurityGroups?Filter.1.Name=" + words[0]
		for i, v := range words[1:] {
			call += fmt.Sprintf("&Filter.1.Value.%d=%s", i+1, v)
		}
		u.do(call).has(fmt.Sprintf("%s#%d", groups, want))
	}
	var seen []string
	page := u.do("DescribeSecurityGroups?MaxResults=5")
	page.has(groups + "#5")
	seen = append(seen, page.result().texts(groups+"/groupId")...)
	seen = append(seen, u.do("DescribeSecurityGroups?MaxResults=5&NextToken="+page.text("nextToken")).result().texts(groups+"/groupId")...)
	distinct := map[string]bool{}
	for _, id := range seen {
		distinct[id] = true
	}
	if len(seen) != 8 || len(distinct) != 8 {
		t.Errorf("two pages have %d groups, %d different ones", len(seen), len(distinct))
	}
}

// Databases are in groups that exist, and groups with databases cannot be deleted.
func TestSecurityGroupsOfDatabases(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	of := "DBInstance/VpcSecurityGroups/VpcSecurityGroupMembership"
	id := u.do(newSecurity).text("groupId")
	second := u.do("CreateSecurityGroup?GroupName=second&GroupDescription=x").text("groupId")
	u.try(with(newDB, "VpcSecurityGroupIds.VpcSecurityGroupId.1=sg-0")).is(badValue, "groupId= sg-0")
	u.try(with(newDB, "VpcSecurityGroupIds.VpcSecurityGroupId.1="+id, "VpcSecurityGroupIds.VpcSecurityGroupId.2="+id)).is(badValue, "twice")
	u.do(with(newDB, "VpcSecurityGroupIds.VpcSecurityGroupId.1="+id)).has(of+"/VpcSecurityGroupId="+id, of+"/Status=active")
	u.settle()
	u.try("DeleteSecurityGroup?GroupName=app").is("DependencyViolation", "db")
	u.do("ModifyDBInstance?DBInstanceIdentifier=db&ApplyImmediately=true&VpcSecurityGroupIds.VpcSecurityGroupId.1="+second).
		has(of+"#1", of+"/VpcSecurityGroupId="+second)
	u.do("DeleteSecurityGroup?GroupName=app")
	u.try("DeleteSecurityGroup?GroupId="+second).is("DependencyViolation", "db")
	u.try("ModifyDBInstance?DBInstanceIdentifier=db&VpcSecurityGroupIds.VpcSecurityGroupId.1="+id).is(badValue, id)

	d := network.Default(u.scope()).ID
	u.do("CreateDBCluster?DBClusterIdentifier=c&Engine=aurora-postgresql&MasterUsername=u&MasterUserPassword=" + password).
		has("DBCluster/VpcSecurityGroups/VpcSecurityGroupMembership/VpcSecurityGroupId=" + d)
	u.do("ModifyDBCluster?DBClusterIdentifier=c&VpcSecurityGroupIds.VpcSecurityGroupId.1=" + second).
		has("DBCluster/VpcSecurityGroups/VpcSecurityGroupMembership/VpcSecurityGroupId=" + second)
}

// A group of another account is none of ours.
func TestSecurityGroupOfOthers(t *testing.T) {
	w := newWorld(t)
	theirs := w.user(t).do(newSecurity).text("groupId")
	u := w.user(t)
	u.try("DescribeSecurityGroups?GroupId.1="+theirs).is("InvalidGroup.NotFound", theirs)
	u.try(with(newDB, "VpcSecurityGroupIds.VpcSecurityGroupId.1="+theirs)).is(badValue, theirs)
}

// What a database that was made at the same time uses cannot be deleted.
func TestSecurityGroupRace(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	for range 5 {
		id := u.do(newSecurity).text("groupId")
		deleted := make(chan int)
		go func() {
			status, _ := u.send("Action=DeleteSecurityGroup&GroupId="+id, "ec2", nil)
			deleted <- status
		}()
		made := u.try(with(newDB, "VpcSecurityGroupIds.VpcSecurityGroupId.1="+id))
		if gone := <-deleted == http.StatusOK; gone == (made.status == http.StatusOK) {
			t.Fatalf("group deleted: %v, database made: %v", gone, made.status == http.StatusOK)
		}
		if made.status == http.StatusOK {
			return
		}
	}
}

// Errors of EC2 have their own form, also before it is known who calls.
func TestEC2RefusesStrangers(t *testing.T) {
	u := newWorld(t).user(t)
	u.secret = "another"
	status, body := u.send("Action=DescribeVpcs", "ec2", nil)
	u.check("DescribeVpcs", "DescribeVpcs", status, body).is("AuthFailure", "signature")
}

// Policies name groups by ARN, however requests name them, and tell them by tags.
func TestSecurityGroupsInPolicies(t *testing.T) {
	u := newWorld(t).user(t)
	id := u.do(newSecurity + "&TagSpecification.1.ResourceType=security-group&TagSpecification.1.Tag.1.Key=stage&TagSpecification.1.Tag.1.Value=prod").text("groupId")
	other := u.do("CreateSecurityGroup?GroupName=other&GroupDescription=x").text("groupId")
	const rule = "&CidrIp=10.0.0.0/8&IpProtocol=-1"
	one := u.withPolicy(`[{"Effect":"Allow","Action":"ec2:*","Resource":"arn:aws:ec2:us-east-1:ACCOUNT:security-group/` + other + `"}]`)
	one.do("AuthorizeSecurityGroupIngress?GroupName=other" + rule)
	one.do("RevokeSecurityGroupIngress?GroupId=" + other + rule)
	for _, call := range []string{
		"AuthorizeSecurityGroupIngress?GroupName=app" + rule, "AuthorizeSecurityGroupIngress?GroupId=" + id + rule,
		"DeleteSecurityGroup?GroupName=app", "DescribeSecurityGroups", "DescribeSecurityGroups?GroupId.1=" + id + "&GroupId.2=" + other,
		"CreateSecurityGroup?GroupName=third&GroupDescription=x",
	} {
		one.try(call).is("UnauthorizedOperation", "is not authorized")
	}
	tagged := u.withPolicy(`[` + allowAll + `,{"Effect":"Deny","Action":"ec2:*","Resource":"*","Condition":{"StringEquals":{"aws:ResourceTag/stage":"prod"}}}]`)
	tagged.try("DeleteSecurityGroup?GroupName=app").is("UnauthorizedOperation", "explicit deny")
	tagged.try("DeleteSecurityGroup?GroupId="+id).is("UnauthorizedOperation", "explicit deny")
	tagged.do("DeleteSecurityGroup?GroupName=other")
}
