package server

import (
	"testing"

	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// TestNoLabelWithoutDeeds: what nothing follows from is refused wherever it can be asked
// for, and never shown as on.
func TestNoLabelWithoutDeeds(t *testing.T) {
	u := newWorld(t).user(t)
	having(newDB, newCluster, newMember)(u)
	const (
		exports  = "EnableCloudwatchLogsExports.member.1=postgresql"
		enable   = "CloudwatchLogsExportConfiguration.EnableLogTypes.member.1=postgresql"
		insights = "EnablePerformanceInsights=true"
	)
	replica := "CreateDBInstanceReadReplica?DBInstanceIdentifier=copy&SourceDBInstanceIdentifier=db"
	multi := with(newCluster, "DBClusterIdentifier=multi")
	for _, call := range []string{
		with(newDB, "DBInstanceIdentifier=other", exports), with(multi, exports), with(replica, exports),
		with(newMember, "DBInstanceIdentifier=third", exports),
		"ModifyDBInstance?DBInstanceIdentifier=db&" + enable, "ModifyDBCluster?DBClusterIdentifier=aura&" + enable,
	} {
		u.try(call).is("InvalidParameterCombination", "You cannot use the log types 'postgresql' with this engine version.")
	}
	for _, call := range []string{
		with(newDB, "DBInstanceIdentifier=other", insights), with(multi, insights), with(replica, insights),
		with(newMember, "DBInstanceIdentifier=third", insights),
		"ModifyDBInstance?DBInstanceIdentifier=db&" + insights, "ModifyDBCluster?DBClusterIdentifier=aura&" + insights,
	} {
		u.try(call).is("InvalidParameterCombination", "Performance Insights not supported for this configuration.")
	}
	const monitoring = "MonitoringInterval=60&MonitoringRoleArn=arn:aws:iam::1:role/m"
	for _, call := range []string{
		with(newDB, "DBInstanceIdentifier=other", monitoring), with(multi, monitoring), with(replica, monitoring),
		with(newMember, "DBInstanceIdentifier=third", monitoring),
		"ModifyDBInstance?DBInstanceIdentifier=db&" + monitoring, "ModifyDBCluster?DBClusterIdentifier=aura&" + monitoring,
	} {
		u.try(call).is("InvalidParameterCombination", "Enhanced Monitoring not supported for this configuration.")
	}
	u.do(with(newDB, "DBInstanceIdentifier=quiet", "MonitoringInterval=0")).has("DBInstance/MonitoringInterval=0", "!DBInstance/MonitoringRoleArn")
	u.do(with(newDB, "DBInstanceIdentifier=other", "EnablePerformanceInsights=false")).has("DBInstance/PerformanceInsightsEnabled=false")
	u.do("DescribeOrderableDBInstanceOptions?Engine=postgres").has("OrderableDBInstanceOptions/OrderableDBInstanceOption[1]/SupportsPerformanceInsights=false",
		"OrderableDBInstanceOptions/OrderableDBInstanceOption[1]/SupportsEnhancedMonitoring=false")
}

// TestLabelsOfAnEarlierRelease: a record that has them is shown as it is, can be
// modified, and loses them when they are turned off.
func TestLabelsOfAnEarlierRelease(t *testing.T) {
	u := newWorld(t).user(t)
	having(newDB, newCluster, newMember)(u)
	record, err := state.Load[spec.Instance](u.server.Cache, state.Instance(u.account, u.region, "db"))
	if err != nil {
		t.Fatal(err)
	}
	record.Value.LogExports, record.Value.PerformanceInsights = []string{"postgresql", "upgrade"}, true
	record.Value.Encrypted, record.Value.KMSKey = true, "key"
	record.Value.MonitoringInterval, record.Value.MonitoringRole = 60, "r"
	cluster, err := state.Load[spec.Cluster](u.server.Cache, state.Cluster(u.account, u.region, "aura"))
	if err != nil {
		t.Fatal(err)
	}
	cluster.Value.LogExports = []string{"postgresql"}
	u.put(state.Put(record.Key, record.Value), state.Put(cluster.Key, cluster.Value))
	u.do(showDB).has("!DBInstances/DBInstance/EnabledCloudwatchLogsExports", "DBInstances/DBInstance/PerformanceInsightsEnabled=false",
		"DBInstances/DBInstance/MonitoringInterval=0", "!DBInstances/DBInstance/MonitoringRoleArn",
		"DBInstances/DBInstance/StorageEncrypted=false", "!DBInstances/DBInstance/KmsKeyId")
	u.do(showAll + "aura").has("!DBClusters/DBCluster/EnabledCloudwatchLogsExports")
	u.do("DescribeDBInstances?DBInstanceIdentifier=aura-1").has("!DBInstances/DBInstance/EnabledCloudwatchLogsExports")
	u.do("ModifyDBInstance?DBInstanceIdentifier=db&DeletionProtection=true").has("DBInstance/DeletionProtection=true")
	u.do("ModifyDBCluster?DBClusterIdentifier=aura&DeletionProtection=true").has("DBCluster/DeletionProtection=true")
	u.do("CreateDBInstanceReadReplica?DBInstanceIdentifier=copy&SourceDBInstanceIdentifier=db").has("DBInstance/PerformanceInsightsEnabled=false")
	u.do("ModifyDBInstance?DBInstanceIdentifier=db&EnablePerformanceInsights=false&CloudwatchLogsExportConfiguration.DisableLogTypes.member.1=postgresql")
	if left := u.instanceRecord("db"); left.PerformanceInsights || len(left.LogExports) != 1 || left.LogExports[0] != "upgrade" {
		t.Errorf("%v %v", left.PerformanceInsights, left.LogExports)
	}
}
