package server

import (
	"strings"
	"testing"

	"howdah/internal/aws/rds/catalogue"
)

// TestSkippedActions: an empty list for those that describe, and for the others an
// error that says why.
func TestSkippedActions(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	having(newDB, newCluster)(u)
	none := catalogue.Nothing(catalogue.Config{})
	lists := map[string]string{
		"DescribeDBClusterBacktracks": "?DBClusterIdentifier=aura", "DescribeTenantDatabases": "?DBInstanceIdentifier=db",
	}
	for name, why := range catalogue.Skipped {
		if _, isEmpty := none[name]; !isEmpty {
			u.try(name).is("InvalidAction", "The action "+name+" is not available in Howdah: "+why+".")
			continue
		}
		a := u.do(name + lists[name])
		for _, child := range a.result().children {
			if len(child.children) > 0 || strings.TrimSpace(child.content) != "" {
				t.Errorf("%s answers something: %s", name, a.body)
			}
		}
		if len(a.result().children) == 0 {
			t.Errorf("%s has no list: %s", name, a.body)
		}
		u.try(name+"?MaxRecords=5&DBClusterIdentifier=aura").is(badValue, "MaxRecords")
	}
	u.try("DescribeDBClusterBacktracks").is(missing, "DBClusterIdentifier")
	u.try("DescribeDBClusterBacktracks?DBClusterIdentifier=none").is(noCluster, "none")
	u.try("DescribeDBClusterBacktracks?DBClusterIdentifier=aura&BacktrackIdentifier=x").is("DBClusterBacktrackNotFoundFault", "x")
	u.try("DescribeTenantDatabases?DBInstanceIdentifier=none").is("DBInstanceNotFound", "none")
	u.do("DescribeTenantDatabases")
	u.try("DescribeDBSecurityGroups?DBSecurityGroupName=x").is("DBSecurityGroupNotFound", "x")
	u.try("DescribeReservedDBInstances?ReservedDBInstanceId=x").is("ReservedDBInstanceNotFound", "x")
	u.try("StartExportTask").is("InvalidAction", "not available in this version")
	u.try("DescribeEverything").is("InvalidAction", "not valid for this web service")
}
