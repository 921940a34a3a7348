package rds

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/automated"
	"howdah/internal/aws/rds/look"
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
	"TargetDBClusterSnapshotIdentifier": "cluster-snapshot", "SnapshotIdentifier": "cluster-snapshot",
	"SourceDBInstanceArn": "db", "DBInstanceAutomatedBackupsArn": "auto-backup", "SourceDBInstanceAutomatedBackupsArn": "auto-backup",
}

// resourceIDs name the automated backups of a database by its resource id.
var resourceIDs = map[string]*automated.Kind{
	"DbiResourceId": automated.Instance, "SourceDbiResourceId": automated.Instance,
	"DbClusterResourceId": automated.Cluster, "SourceDbClusterResourceId": automated.Cluster,
}

// arnParameters name a resource of any kind by its ARN.
var arnParameters = []string{"ResourceName", "ResourceIdentifier", "ResourceArn"}

// listed are the kinds of what actions list that name nothing: all of that kind
// must be allowed.
var listed = map[string]string{
	"rds:DescribeDBInstances": "db", "rds:DescribeDBClusters": "cluster", "rds:DescribeDBClusterEndpoints": "cluster-endpoint",
	"rds:DescribeDBSubnetGroups": "subgrp", "rds:DescribeOptionGroups": "og", "rds:DescribeDBParameterGroups": "pg",
	"rds:DescribeDBClusterParameterGroups": "cluster-pg", "rds:DescribeEventSubscriptions": "es", "rds:DescribeEvents": "es",
	"rds:DescribeDBSnapshots": "snapshot", "rds:DescribeDBClusterSnapshots": "cluster-snapshot",
	"rds:DescribeDBInstanceAutomatedBackups": "auto-backup", "rds:DescribeDBClusterAutomatedBackups": "cluster-auto-backup",
}

// resources are the ARNs of everything that a request names, written as handlers read names.
func resources(c front.Call, in any) []string {
	found := map[string]bool{}
	front.Each(in, func(name string, value reflect.Value) {
		text, ok := value.Interface().(*string)
		switch {
		case !ok || strings.TrimSpace(*text) == "":
		case name == "SnapshotIdentifier" && strings.Contains(strings.ToLower(*text), ":snapshot:"): // of an instance
			found[look.PlainARN(*text)] = true
		case kindOf[name] != "":
			scope, id := look.Locate(c.Scope, *text, kindOf[name])
			found[scope.ARN(kindOf[name], id)] = true
		case resourceIDs[name] != nil:
			found[resourceIDs[name].ARNOf(c.Scope, *text)] = true
		case name == "RoleArn" && strings.HasPrefix(c.Action, "rds:AddRole"): // as AWS asks for iam:PassRole
			found[*text] = true
		case slices.Contains(arnParameters, name):
			found[look.PlainARN(*text)] = true
		}
	})
	if kind := listed[c.Action]; len(found) == 0 && kind != "" {
		return []string{c.ARN(kind, "*")}
	}
	return slices.Sorted(maps.Keys(found))
}
