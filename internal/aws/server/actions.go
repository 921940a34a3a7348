package server

import (
	"maps"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
)

// rdsService is what package front needs to know of RDS.
func (s *Server) rdsService() *front.Service {
	all := s.rdsActions()
	maps.Copy(all, s.nothing())
	return &front.Service{
		Name: rds.Service.Name, Contract: &rds.Service, Actions: all, Refused: notHere,
		Resources: rdsResources, Context: rdsContext, Describe: s.describe, AnyCase: true,
		Check:     checkRDS,
		LongTexts: map[string]int{"ParameterValue": 65535}, // the action bounds them
	}
}

// checkRDS refuses what would be taken for something else, or do nothing.
func checkRDS(c front.Call, in any) error { return look.First(checkNames(c, in), checkLabels(in)) }

// rdsActions are all that Howdah does of RDS, but for what always answers an empty list.
func (s *Server) rdsActions() map[string]front.Action {
	return map[string]front.Action{
		"AddRoleToDBCluster":                     front.On(s.addRoleToDBCluster),
		"AddRoleToDBInstance":                    front.On(s.addRoleToDBInstance),
		"AddSourceIdentifierToSubscription":      front.On(s.addSource),
		"AddTagsToResource":                      front.On(s.addTagsToResource),
		"CopyDBClusterParameterGroup":            front.On(s.copyDBClusterParameterGroup),
		"CopyDBParameterGroup":                   front.On(s.copyDBParameterGroup),
		"CopyOptionGroup":                        front.On(s.copyOptionGroup),
		"CreateDBCluster":                        front.On(s.createDBCluster),
		"CreateDBClusterEndpoint":                front.On(s.createDBClusterEndpoint),
		"CreateDBClusterParameterGroup":          front.On(s.createDBClusterParameterGroup),
		"CreateDBInstance":                       front.On(s.createDBInstance),
		"CreateDBInstanceReadReplica":            front.On(s.createDBInstanceReadReplica),
		"CreateDBParameterGroup":                 front.On(s.createDBParameterGroup),
		"CreateDBSubnetGroup":                    front.On(s.createDBSubnetGroup),
		"CreateEventSubscription":                front.On(s.createEventSubscription),
		"CreateOptionGroup":                      front.On(s.createOptionGroup),
		"DeleteDBCluster":                        front.On(s.deleteDBCluster),
		"DeleteDBClusterEndpoint":                front.On(s.deleteDBClusterEndpoint),
		"DeleteDBClusterParameterGroup":          front.On(s.deleteDBClusterParameterGroup),
		"DeleteDBInstance":                       front.On(s.deleteDBInstance),
		"DeleteDBParameterGroup":                 front.On(s.deleteDBParameterGroup),
		"DeleteDBSubnetGroup":                    front.On(s.deleteDBSubnetGroup),
		"DeleteEventSubscription":                front.On(s.deleteEventSubscription),
		"DeleteOptionGroup":                      front.On(s.deleteOptionGroup),
		"DescribeAccountAttributes":              front.On(s.describeAccountAttributes),
		"ApplyPendingMaintenanceAction":          front.On(s.applyPendingMaintenanceAction),
		"DescribePendingMaintenanceActions":      front.On(s.describePendingMaintenanceActions),
		"DescribeCertificates":                   front.On(s.describeCertificates),
		"DescribeDBClusterEndpoints":             front.On(s.describeDBClusterEndpoints),
		"DescribeDBClusterParameterGroups":       front.On(s.describeDBClusterParameterGroups),
		"DescribeDBClusterParameters":            front.On(s.describeDBClusterParameters),
		"DescribeDBClusters":                     front.On(s.describeDBClusters),
		"DescribeDBEngineVersions":               front.On(s.describeDBEngineVersions),
		"DescribeDBInstances":                    front.On(s.describeDBInstances),
		"DescribeDBLogFiles":                     front.On(s.describeDBLogFiles),
		"DescribeDBMajorEngineVersions":          front.On(s.describeDBMajorEngineVersions),
		"DescribeDBParameterGroups":              front.On(s.describeDBParameterGroups),
		"DescribeDBParameters":                   front.On(s.describeDBParameters),
		"DescribeDBSubnetGroups":                 front.On(s.describeDBSubnetGroups),
		"DescribeEngineDefaultClusterParameters": front.On(s.describeEngineDefaultClusterParameters),
		"DescribeEngineDefaultParameters":        front.On(s.describeEngineDefaultParameters),
		"DescribeEventCategories":                front.On(s.describeEventCategories),
		"DescribeEventSubscriptions":             front.On(s.describeEventSubscriptions),
		"DescribeEvents":                         front.On(s.describeEvents),
		"DescribeOptionGroupOptions":             front.On(s.describeOptionGroupOptions),
		"DescribeOptionGroups":                   front.On(s.describeOptionGroups),
		"DescribeOrderableDBInstanceOptions":     front.On(s.describeOrderableDBInstanceOptions),
		"DescribeServerlessV2PlatformVersions":   front.On(s.describeServerlessV2PlatformVersions),
		"DescribeSourceRegions":                  front.On(s.describeSourceRegions),
		"DescribeValidDBInstanceModifications":   front.On(s.describeValidDBInstanceModifications),
		"DownloadDBLogFilePortion":               front.On(s.downloadDBLogFilePortion),
		"FailoverDBCluster":                      front.On(s.failoverDBCluster),
		"ListTagsForResource":                    front.On(s.listTagsForResource),
		"ModifyCertificates":                     front.On(s.modifyCertificates),
		"ModifyDBCluster":                        front.On(s.modifyDBCluster),
		"ModifyDBClusterEndpoint":                front.On(s.modifyDBClusterEndpoint),
		"ModifyDBClusterParameterGroup":          front.On(s.modifyDBClusterParameterGroup),
		"ModifyDBInstance":                       front.On(s.modifyDBInstance),
		"ModifyDBParameterGroup":                 front.On(s.modifyDBParameterGroup),
		"ModifyDBSubnetGroup":                    front.On(s.modifyDBSubnetGroup),
		"ModifyEventSubscription":                front.On(s.modifyEventSubscription),
		"ModifyOptionGroup":                      front.On(s.modifyOptionGroup),
		"PromoteReadReplica":                     front.On(s.promoteReadReplica),
		"RebootDBCluster":                        front.On(s.rebootDBCluster),
		"RebootDBInstance":                       front.On(s.rebootDBInstance),
		"RemoveRoleFromDBCluster":                front.On(s.removeRoleFromDBCluster),
		"RemoveRoleFromDBInstance":               front.On(s.removeRoleFromDBInstance),
		"RemoveSourceIdentifierFromSubscription": front.On(s.removeSource),
		"RemoveTagsFromResource":                 front.On(s.removeTagsFromResource),
		"ResetDBClusterParameterGroup":           front.On(s.resetDBClusterParameterGroup),
		"ResetDBParameterGroup":                  front.On(s.resetDBParameterGroup),
		"StartDBCluster":                         front.On(s.startDBCluster),
		"StartDBInstance":                        front.On(s.startDBInstance),
		"StopDBCluster":                          front.On(s.stopDBCluster),
		"StopDBInstance":                         front.On(s.stopDBInstance),
	}
}
