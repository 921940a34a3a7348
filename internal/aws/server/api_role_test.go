package server

import (
	"testing"

	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// A role is shown as active while it leads to a bucket, and not before or after that.
func TestRolesAreActiveThatLeadToABucket(t *testing.T) {
	w := newWorld(t)
	u, neighbour := w.user(t), w.user(t)
	having(newDB)(u)
	own, theirs := spec.BucketRole{Account: u.account, Name: "exports"}, spec.BucketRole{Account: neighbour.account, Name: "exports"}
	w.put(state.Put(state.BucketRole(theirs.Account, theirs.Name), theirs))
	give := func(feature string, r spec.BucketRole) {
		u.do("AddRoleToDBInstance?DBInstanceIdentifier=db&FeatureName=" + feature + "&RoleArn=" + r.ARN())
	}
	give("s3Export", own)
	give("s3Import", theirs)
	give("Lambda", own)
	const role = "DBInstances/DBInstance/AssociatedRoles/DBInstanceRole"
	shows := func(export string) {
		u.Helper()
		u.do(showDB).has(role+"[1]/FeatureName=s3Export", role+"[1]/Status="+export, role+"[2]/Status=INVALID", role+"[3]/Status=INVALID")
	}
	shows("INVALID")
	w.put(state.Put(state.BucketRole(own.Account, own.Name), own))
	shows("ACTIVE")
	w.put(state.Delete(state.BucketRole(own.Account, own.Name)))
	shows("INVALID")

	having(newCluster, newMember)(u)
	w.put(state.Put(state.BucketRole(own.Account, own.Name), own))
	for _, feature := range []string{"s3Import", "Lambda"} {
		u.do("AddRoleToDBCluster?DBClusterIdentifier=aura&FeatureName=" + feature + "&RoleArn=" + own.ARN())
	}
	const clusterRole = "DBClusters/DBCluster/AssociatedRoles/DBClusterRole"
	u.do(showAll+"aura").has(clusterRole+"[1]/Status=ACTIVE", clusterRole+"[2]/Status=INVALID")
}
