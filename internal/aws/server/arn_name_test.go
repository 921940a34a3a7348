package server

import "testing"

// TestAnARNWhereANameBelongs: what RDS takes by its name alone is refused by its ARN, in
// RDS's words; what may be shown, or followed from another region, is named by ARNs too.
func TestAnARNWhereANameBelongs(t *testing.T) {
	u := newWorld(t).user(t)
	having(newDB, newCluster, newMember)(u)
	db, aura := u.fill("arn:aws:rds:us-east-1:{account}:db:db"), u.fill("arn:aws:rds:us-east-1:{account}:cluster:aura")
	for _, call := range []string{
		"ModifyDBInstance?BackupRetentionPeriod=2&DBInstanceIdentifier=" + db, "DeleteDBInstance?SkipFinalSnapshot=true&DBInstanceIdentifier=" + db,
		"RebootDBInstance?DBInstanceIdentifier=" + db, "StopDBInstance?DBInstanceIdentifier=%20ARN" + db[3:], "DescribeDBLogFiles?DBInstanceIdentifier=" + db,
		"FailoverDBCluster?DBClusterIdentifier=" + aura, "FailoverDBCluster?DBClusterIdentifier=aura&TargetDBInstanceIdentifier=" + db,
		"ModifyDBCluster?BackupRetentionPeriod=2&DBClusterIdentifier=" + aura, with(newMember, "DBInstanceIdentifier=third", "DBClusterIdentifier="+aura),
	} {
		u.try(call).is("InvalidParameterValue", "Invalid database identifier: ")
	}
	u.try("StopDBInstance?DBInstanceIdentifier="+db).is("InvalidParameterValue", "Invalid database identifier: "+db)
	u.try(with(newDB, "DBInstanceIdentifier="+db)).is("InvalidParameterValue", "The parameter DBInstanceIdentifier is not a valid identifier.")
	u.do("DescribeDBInstances?DBInstanceIdentifier=" + db).has("DBInstances/DBInstance#1")
	u.do("DescribeDBClusters?DBClusterIdentifier=" + aura).has("DBClusters/DBCluster#1")
	u.do("CreateDBInstanceReadReplica?DBInstanceIdentifier=copy&SourceDBInstanceIdentifier=" + db)
	u.do("DescribeEvents?SourceType=db-cluster&SourceIdentifier=" + aura).has("Events/Event#1")
	u.region = "eu-west-1"
	u.do("DescribeEvents?SourceType=db-cluster&SourceIdentifier=" + aura).has("Events/Event#0")
}
