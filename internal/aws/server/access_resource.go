package server

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"howdah/internal/model/network"
	"howdah/internal/model/topic"
)

// kindOf are the kinds of resources, as in ARNs, that parameters name.
var kindOf = map[string]string{
	"DBInstanceIdentifier": "db", "NewDBInstanceIdentifier": "db", "SourceDBInstanceIdentifier": "db",
	"TargetDBInstanceIdentifier": "db",
	"DBClusterIdentifier":        "cluster", "NewDBClusterIdentifier": "cluster", "SourceDBClusterIdentifier": "cluster",
	"DBClusterEndpointIdentifier": "cluster-endpoint",
	"DBSubnetGroupName":           "subgrp",
	"OptionGroupName":             "og", "SourceOptionGroupIdentifier": "og", "TargetOptionGroupIdentifier": "og",
	"DBParameterGroupName": "pg", "SourceDBParameterGroupIdentifier": "pg", "TargetDBParameterGroupIdentifier": "pg",
	"DBInstanceParameterGroupName": "pg",
	"DBClusterParameterGroupName":  "cluster-pg", "SourceDBClusterParameterGroupIdentifier": "cluster-pg",
	"TargetDBClusterParameterGroupIdentifier": "cluster-pg",
	"SubscriptionName":                        "es",
	"DBSnapshotIdentifier":                    "snapshot", "SourceDBSnapshotIdentifier": "snapshot", "TargetDBSnapshotIdentifier": "snapshot",
	"DBClusterSnapshotIdentifier": "cluster-snapshot", "SourceDBClusterSnapshotIdentifier": "cluster-snapshot",
	"TargetDBClusterSnapshotIdentifier": "cluster-snapshot",
}

// arnParameters name a resource of any kind by its ARN.
var arnParameters = []string{"ResourceName", "ResourceIdentifier", "ResourceArn", "TopicArn", "TargetArn", "SubscriptionArn"}

// listed are the kinds of what actions list that name nothing: all of that kind
// must be allowed.
var listed = map[string]string{
	"rds:DescribeDBInstances": "db", "rds:DescribeDBClusters": "cluster", "rds:DescribeDBClusterEndpoints": "cluster-endpoint",
	"rds:DescribeDBSubnetGroups": "subgrp", "rds:DescribeOptionGroups": "og", "rds:DescribeDBParameterGroups": "pg",
	"rds:DescribeDBClusterParameterGroups": "cluster-pg", "rds:DescribeEventSubscriptions": "es", "rds:DescribeEvents": "es",
	"rds:DescribeDBSnapshots": "snapshot", "rds:DescribeDBClusterSnapshots": "cluster-snapshot",
}

// resources are the ARNs of everything that a request names, written as handlers read names;
// "*" if it names nothing.
func (c call) resources(in any) []string {
	found := map[string]bool{}
	each(in, func(name string, value reflect.Value) {
		text, ok := value.Interface().(*string)
		switch {
		case !ok || strings.TrimSpace(*text) == "":
		case kindOf[name] != "" && strings.HasPrefix(c.action, "rds:"):
			scope, id := locate(c.Scope, *text, kindOf[name])
			found[scope.ARN(kindOf[name], id)] = true
		case name == "Name" && c.action == "sns:CreateTopic":
			found[topic.ARN(c.Scope, *text)] = true
		case slices.Contains(arnParameters, name):
			found[plainARN(*text)] = true
		}
	})
	switch kind := listed[c.action]; {
	case len(found) > 0:
		return slices.Sorted(maps.Keys(found))
	case kind != "":
		return []string{c.ARN(kind, "*")}
	}
	return []string{"*"}
}

// namedBy is resources, where groups of EC2 are named by their names too.
func (s *Server) namedBy(c call, in any) []string {
	if !strings.HasPrefix(c.action, "ec2:") {
		return c.resources(in)
	}
	var found []string
	each(in, func(name string, value reflect.Value) {
		var texts []string
		switch v := value.Interface().(type) {
		case *string:
			texts = []string{*v}
		case []string:
			texts = v
		}
		for _, text := range texts {
			switch name {
			case "GroupId", "GroupIds":
				found = append(found, network.ARN(c.Scope, "security-group", text))
			case "GroupName", "GroupNames":
				if g, err := s.groupNamed(c.Scope, text); err == nil && c.action != "ec2:CreateSecurityGroup" {
					found = append(found, g.ARN())
				}
			}
		}
	})
	switch {
	case len(found) > 0:
		return found
	case c.action == "ec2:CreateSecurityGroup":
		return []string{network.ARN(c.Scope, "security-group", "*")}
	}
	return []string{"*"}
}

// plainARN is an ARN as policies write it. Handlers do not look at the partition;
// RDS's not at the case either. A subscription of SNS is its topic's: policies name
// no other resources of that service.
func plainARN(arn string) string {
	if scope, name, ok := topic.ParseARN(arn); ok {
		return topic.ARN(scope, name)
	}
	if scope, name, _, ok := topic.ParseSubscriptionARN(arn); ok {
		return topic.ARN(scope, name)
	}
	arn = strings.TrimSpace(arn)
	parts := strings.SplitN(arn, ":", 4)
	if len(parts) < 4 || !strings.EqualFold(parts[0], "arn") || !strings.EqualFold(parts[2], "rds") {
		return arn
	}
	return "arn:aws:rds:" + strings.ToLower(parts[3])
}

// each goes through the members of a request that were given.
func each(in any, do func(name string, value reflect.Value)) {
	v := reflect.ValueOf(in)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return
	}
	v = v.Elem()
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsNil() {
			do(v.Type().Field(i).Name, f)
		}
	}
}
