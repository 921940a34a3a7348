package server

import (
	"context"
	"net/url"

	"howdah/api"
	"howdah/internal/aws/wire"
)

// action decodes a request, does it, and answers its output or nil.
type action func(ctx context.Context, s *Server, c call, values url.Values) (any, error)

// actions are all that Howdah does, by service and name.
var actions = map[string]map[string]action{
	"rds": {
		"AddRoleToDBCluster":                     on((*Server).addRoleToDBCluster),
		"AddRoleToDBInstance":                    on((*Server).addRoleToDBInstance),
		"AddSourceIdentifierToSubscription":      on((*Server).addSource),
		"AddTagsToResource":                      on((*Server).addTagsToResource),
		"CopyDBClusterParameterGroup":            on((*Server).copyDBClusterParameterGroup),
		"CopyDBParameterGroup":                   on((*Server).copyDBParameterGroup),
		"CopyOptionGroup":                        on((*Server).copyOptionGroup),
		"CreateDBCluster":                        on((*Server).createDBCluster),
		"CreateDBClusterEndpoint":                on((*Server).createDBClusterEndpoint),
		"CreateDBClusterParameterGroup":          on((*Server).createDBClusterParameterGroup),
		"CreateDBInstance":                       on((*Server).createDBInstance),
		"CreateDBInstanceReadReplica":            on((*Server).createDBInstanceReadReplica),
		"CreateDBParameterGroup":                 on((*Server).createDBParameterGroup),
		"CreateDBSubnetGroup":                    on((*Server).createDBSubnetGroup),
		"CreateEventSubscription":                on((*Server).createEventSubscription),
		"CreateOptionGroup":                      on((*Server).createOptionGroup),
		"DeleteDBCluster":                        on((*Server).deleteDBCluster),
		"DeleteDBClusterEndpoint":                on((*Server).deleteDBClusterEndpoint),
		"DeleteDBClusterParameterGroup":          on((*Server).deleteDBClusterParameterGroup),
		"DeleteDBInstance":                       on((*Server).deleteDBInstance),
		"DeleteDBParameterGroup":                 on((*Server).deleteDBParameterGroup),
		"DeleteDBSubnetGroup":                    on((*Server).deleteDBSubnetGroup),
		"DeleteEventSubscription":                on((*Server).deleteEventSubscription),
		"DeleteOptionGroup":                      on((*Server).deleteOptionGroup),
		"DescribeAccountAttributes":              on((*Server).describeAccountAttributes),
		"ApplyPendingMaintenanceAction":          on((*Server).applyPendingMaintenanceAction),
		"DescribePendingMaintenanceActions":      on((*Server).describePendingMaintenanceActions),
		"DescribeCertificates":                   on((*Server).describeCertificates),
		"DescribeDBClusterEndpoints":             on((*Server).describeDBClusterEndpoints),
		"DescribeDBClusterParameterGroups":       on((*Server).describeDBClusterParameterGroups),
		"DescribeDBClusterParameters":            on((*Server).describeDBClusterParameters),
		"DescribeDBClusters":                     on((*Server).describeDBClusters),
		"DescribeDBEngineVersions":               on((*Server).describeDBEngineVersions),
		"DescribeDBInstances":                    on((*Server).describeDBInstances),
		"DescribeDBLogFiles":                     on((*Server).describeDBLogFiles),
		"DescribeDBMajorEngineVersions":          on((*Server).describeDBMajorEngineVersions),
		"DescribeDBParameterGroups":              on((*Server).describeDBParameterGroups),
		"DescribeDBParameters":                   on((*Server).describeDBParameters),
		"DescribeDBSubnetGroups":                 on((*Server).describeDBSubnetGroups),
		"DescribeEngineDefaultClusterParameters": on((*Server).describeEngineDefaultClusterParameters),
		"DescribeEngineDefaultParameters":        on((*Server).describeEngineDefaultParameters),
		"DescribeEventCategories":                on((*Server).describeEventCategories),
		"DescribeEventSubscriptions":             on((*Server).describeEventSubscriptions),
		"DescribeEvents":                         on((*Server).describeEvents),
		"DescribeOptionGroupOptions":             on((*Server).describeOptionGroupOptions),
		"DescribeOptionGroups":                   on((*Server).describeOptionGroups),
		"DescribeOrderableDBInstanceOptions":     on((*Server).describeOrderableDBInstanceOptions),
		"DescribeServerlessV2PlatformVersions":   on((*Server).describeServerlessV2PlatformVersions),
		"DescribeSourceRegions":                  on((*Server).describeSourceRegions),
		"DescribeValidDBInstanceModifications":   on((*Server).describeValidDBInstanceModifications),
		"DownloadDBLogFilePortion":               on((*Server).downloadDBLogFilePortion),
		"FailoverDBCluster":                      on((*Server).failoverDBCluster),
		"ListTagsForResource":                    on((*Server).listTagsForResource),
		"ModifyCertificates":                     on((*Server).modifyCertificates),
		"ModifyDBCluster":                        on((*Server).modifyDBCluster),
		"ModifyDBClusterEndpoint":                on((*Server).modifyDBClusterEndpoint),
		"ModifyDBClusterParameterGroup":          on((*Server).modifyDBClusterParameterGroup),
		"ModifyDBInstance":                       on((*Server).modifyDBInstance),
		"ModifyDBParameterGroup":                 on((*Server).modifyDBParameterGroup),
		"ModifyDBSubnetGroup":                    on((*Server).modifyDBSubnetGroup),
		"ModifyEventSubscription":                on((*Server).modifyEventSubscription),
		"ModifyOptionGroup":                      on((*Server).modifyOptionGroup),
		"PromoteReadReplica":                     on((*Server).promoteReadReplica),
		"RebootDBCluster":                        on((*Server).rebootDBCluster),
		"RebootDBInstance":                       on((*Server).rebootDBInstance),
		"RemoveRoleFromDBCluster":                on((*Server).removeRoleFromDBCluster),
		"RemoveRoleFromDBInstance":               on((*Server).removeRoleFromDBInstance),
		"RemoveSourceIdentifierFromSubscription": on((*Server).removeSource),
		"RemoveTagsFromResource":                 on((*Server).removeTagsFromResource),
		"ResetDBClusterParameterGroup":           on((*Server).resetDBClusterParameterGroup),
		"ResetDBParameterGroup":                  on((*Server).resetDBParameterGroup),
		"StartDBCluster":                         on((*Server).startDBCluster),
		"StartDBInstance":                        on((*Server).startDBInstance),
		"StopDBCluster":                          on((*Server).stopDBCluster),
		"StopDBInstance":                         on((*Server).stopDBInstance),
	},
	"ec2": ec2Actions,
	"sns": snsActions,
	"sts": {
		"GetCallerIdentity": on((*Server).getCallerIdentity),
	},
}

// void is the output of actions that have none: handlers answer a nil pointer.
type void struct{}

// on makes an action of a handler with typed input and output.
func on[In, Out any](handler func(*Server, context.Context, call, *In) (*Out, error)) action {
	return func(ctx context.Context, s *Server, c call, values url.Values) (any, error) {
		in := new(In)
		if err := wire.DecodeForm(values, in); err != nil {
			return nil, err
		}
		if err := first(s.authorize(c, in), s.checkRoom(c)); err != nil {
			return nil, err
		}
		if err := first(wire.Validate(in), checkInput(in), c.checkNames(in), checkLabels(in)); err != nil {
			return nil, err
		}
		out, err := handler(s, ctx, c, in)
		if err != nil || out == nil {
			return nil, err
		}
		return out, nil
	}
}

// find answers InvalidAction for what the service does not have, and says so
// plainly for what Howdah does not have yet.
func find(service, name string) (action, error) {
	known, ok := actions[service]
	if !ok {
		return nil, wire.NewError(api.ErrInvalidAction, "The service %s is not available here: Howdah speaks rds, ec2, sns, sts, secretsmanager and kms.", service)
	}
	if do, ok := known[name]; ok {
		return do, nil
	}
	if do, ok := nothing[name]; ok && service == "rds" {
		return do, nil
	}
	for _, s := range wire.Services() {
		if _, exists := s.Action(name); exists && s.Name == service {
			return nil, notHere(name)
		}
	}
	return nil, wire.NewError(api.ErrInvalidAction, "The action %s is not valid for this web service.", name)
}
