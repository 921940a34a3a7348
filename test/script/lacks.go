package script

import "strings"

// The clients that walk.
const (
	Boto3 = "boto3"
	CLI1  = "cli1"
	CLI2  = "cli2"
	GoSDK = "go"
)

// Clients has all clients that walk.
var Clients = []string{Boto3, CLI1, CLI2, GoSDK}

const (
	newest = "its model of the service is older than this action, which came in 2026"
	old    = "the CLI of Debian 12 has the service's model of 2023, which is older than this action"
	heavy  = "compiling the SDK's module for EC2 takes 90 s of a processor; those for SNS and STS take 7 s together"
)

// lacks has the actions that a client cannot call, with the reason. A * stands for all actions of a
// service.
var lacks = map[string]map[string]string{
	CLI1: {"rds DescribeDBCapacityReservations": newest},
	CLI2: {
		"rds DeleteDBClusterAutomatedBackup":       old,
		"rds DescribeDBClusterAutomatedBackups":    old,
		"rds DescribeDBCapacityReservations":       old,
		"rds DescribeDBMajorEngineVersions":        old,
		"rds DescribeDBRecommendations":            old,
		"rds DescribeDBSnapshotTenantDatabases":    old,
		"rds DescribeIntegrations":                 old,
		"rds DescribeServerlessV2PlatformVersions": old,
		"rds DescribeTenantDatabases":              old,
	},
	GoSDK: {"ec2 *": heavy},
}

// Lacks returns the reason why a client cannot take a step with this call, or "" if it can.
func Lacks(client, call string) string {
	service, _, _ := strings.Cut(call, " ")
	if why := lacks[client][call]; why != "" {
		return why
	}
	return lacks[client][service+" *"]
}
