package catalogue

import (
	"context"
	"reflect"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/wire"
)

// Skipped are the actions that Howdah does not have and will not get, with the
// reason. Describe actions among them answer an empty list: see Nothing.
var Skipped = map[string]string{
	"AuthorizeDBSecurityGroupIngress": reasonClassic, "CreateDBSecurityGroup": reasonClassic, "DeleteDBSecurityGroup": reasonClassic,
	"RevokeDBSecurityGroupIngress": reasonClassic, "DescribeDBSecurityGroups": reasonClassic,
	"BacktrackDBCluster": reasonBacktrack, "DescribeDBClusterBacktracks": reasonBacktrack,
	"CancelDBCapacityReservation": reasonCapacity, "CreateDBCapacityReservation": reasonCapacity, "ModifyDBCapacityReservation": reasonCapacity,
	"DescribeDBCapacityReservations": reasonCapacity,
	"CreateCustomDBEngineVersion":    reasonCustom, "DeleteCustomDBEngineVersion": reasonCustom, "ModifyCustomDBEngineVersion": reasonCustom,
	"CreateIntegration": reasonIntegration, "DeleteIntegration": reasonIntegration, "ModifyIntegration": reasonIntegration, "DescribeIntegrations": reasonIntegration,
	"CreateTenantDatabase": reasonTenant, "DeleteTenantDatabase": reasonTenant, "ModifyTenantDatabase": reasonTenant, "DescribeTenantDatabases": reasonTenant,
	"DescribeDBSnapshotTenantDatabases": reasonTenant,
	"ModifyActivityStream":              reasonStream, "StartActivityStream": reasonStream, "StopActivityStream": reasonStream,
	"ModifyDBRecommendation": reasonRecommendation, "DescribeDBRecommendations": reasonRecommendation,
	"PurchaseReservedDBInstancesOffering": reasonReserved, "DescribeReservedDBInstances": reasonReserved, "DescribeReservedDBInstancesOfferings": reasonReserved,
	"ModifyCurrentDBClusterCapacity": "it belongs to Aurora Serverless v1",
	"PromoteReadReplicaDBCluster":    "it belongs to clusters that replicate from another region",
	"SwitchoverReadReplica":          "it belongs to Oracle",
	"RestoreDBClusterFromS3":         reasonS3, "RestoreDBInstanceFromS3": reasonS3,
}

const (
	reasonClassic        = "security groups of EC2-Classic were retired by AWS in 2022"
	reasonBacktrack      = "backtracking belongs to Aurora MySQL"
	reasonCapacity       = "there is no capacity to reserve but that of your own hosts"
	reasonCustom         = "custom engine versions belong to RDS Custom"
	reasonIntegration    = "zero-ETL integrations need Redshift"
	reasonTenant         = "tenant databases belong to Oracle"
	reasonStream         = "activity streams need Kinesis: audit with the extension pgaudit"
	reasonRecommendation = "there are no recommendations"
	reasonReserved       = "there is nothing to buy"
	reasonS3             = "it restores backups of MySQL"
)

// empty makes a Describe action of something that there never is any of. named are
// the parameters that name one, with the code of the error that it does not exist;
// check, if not nil, looks after fresh at what else the request names.
func empty[In, Out any](named map[string]string, fresh func(context.Context) error, check func(front.Call, *In) error) front.Action {
	return front.On(func(ctx context.Context, c front.Call, in *In) (*Out, error) {
		v := reflect.ValueOf(in).Elem()
		size, _ := v.FieldByName("MaxRecords").Interface().(*int32)
		marker, _ := v.FieldByName("Marker").Interface().(*string)
		if _, _, err := page.Of([]string{}, func(string) string { return "" }, size, marker); err != nil {
			return nil, err
		}
		if check != nil {
			if err := fresh(ctx); err != nil {
				return nil, err
			}
			if err := check(c, in); err != nil {
				return nil, err
			}
		}
		for parameter, code := range named {
			if name, _ := v.FieldByName(parameter).Interface().(*string); name != nil {
				return nil, wire.NewError(code, "%s %s not found.", parameter, *name)
			}
		}
		out := new(Out)
		for _, f := range reflect.ValueOf(out).Elem().Fields() {
			if f.Kind() == reflect.Slice {
				f.Set(reflect.MakeSlice(f.Type(), 0, 0))
			}
		}
		return out, nil
	})
}

// Nothing are the Describe actions that always answer an empty list.
func Nothing(cfg Config) map[string]front.Action {
	s := newService(cfg)
	return map[string]front.Action{
		"DescribeDBCapacityReservations":       empty[rds.DescribeDBCapacityReservationsRequest, rds.DescribeDBCapacityReservationsResponse](map[string]string{"DBCapacityReservationIdentifier": rds.ErrDBCapacityReservationNotFound}, nil, nil),
		"DescribeDBClusterBacktracks":          empty[rds.DescribeDBClusterBacktracksMessage, rds.DBClusterBacktrackMessage](map[string]string{"BacktrackIdentifier": rds.ErrDBClusterBacktrackNotFound}, s.Fresh, s.clusterExists),
		"DescribeDBRecommendations":            empty[rds.DescribeDBRecommendationsMessage, rds.DBRecommendationsMessage](nil, nil, nil),
		"DescribeDBSecurityGroups":             empty[rds.DescribeDBSecurityGroupsMessage, rds.DBSecurityGroupMessage](map[string]string{"DBSecurityGroupName": rds.ErrDBSecurityGroupNotFound}, nil, nil),
		"DescribeDBSnapshotTenantDatabases":    empty[rds.DescribeDBSnapshotTenantDatabasesMessage, rds.DBSnapshotTenantDatabasesMessage](map[string]string{"DBSnapshotIdentifier": rds.ErrDBSnapshotNotFound}, nil, nil),
		"DescribeIntegrations":                 empty[rds.DescribeIntegrationsMessage, rds.DescribeIntegrationsResponse](map[string]string{"IntegrationIdentifier": rds.ErrIntegrationNotFound}, nil, nil),
		"DescribeReservedDBInstances":          empty[rds.DescribeReservedDBInstancesMessage, rds.ReservedDBInstanceMessage](map[string]string{"ReservedDBInstanceId": rds.ErrReservedDBInstanceNotFound}, nil, nil),
		"DescribeReservedDBInstancesOfferings": empty[rds.DescribeReservedDBInstancesOfferingsMessage, rds.ReservedDBInstancesOfferingMessage](map[string]string{"ReservedDBInstancesOfferingId": rds.ErrReservedDBInstancesOfferingNotFound}, nil, nil),
		"DescribeTenantDatabases":              empty[rds.DescribeTenantDatabasesMessage, rds.TenantDatabasesMessage](nil, s.Fresh, s.instanceExists),
	}
}

func (s *service) clusterExists(c front.Call, in *rds.DescribeDBClusterBacktracksMessage) error {
	_, err := s.looks.Of(c.Account).FindCluster(c.Scope, wire.Or(in.DBClusterIdentifier, ""))
	return err
}

func (s *service) instanceExists(c front.Call, in *rds.DescribeTenantDatabasesMessage) error {
	if in.DBInstanceIdentifier == nil {
		return nil
	}
	_, err := s.looks.Of(c.Account).FindInstance(c.Scope, *in.DBInstanceIdentifier)
	return err
}

// NotHere says why an action that RDS has will never be here; nil: nobody says so.
func NotHere(name string) error {
	if why, ok := Skipped[name]; ok {
		return wire.NewError(api.ErrInvalidAction, "The action %s is not available in Howdah: %s.", name, why)
	}
	return nil
}
