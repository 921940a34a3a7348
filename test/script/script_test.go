package script

import (
	"slices"
	"strings"
	"testing"

	"howdah/internal/aws/server"
)

// TestEveryActionIsWalked checks that the script has everything that Howdah does, for each client
// except for what that client cannot call.
func TestEveryActionIsWalked(t *testing.T) {
	walked := map[string]bool{}
	for _, s := range steps(t) {
		walked[s.Call] = true
	}
	for _, client := range Clients {
		for _, call := range server.Implemented() {
			if !walked[call] && Lacks(client, call) == "" {
				t.Errorf("%s walks no step with %s", client, call)
			}
		}
	}
}

// A client that lacks nothing walks every action, and what it is said to lack is in the script.
func TestLacks(t *testing.T) {
	calls := server.Implemented()
	for client, missing := range lacks {
		if !slices.Contains(Clients, client) {
			t.Errorf("no client is called %s", client)
		}
		for call := range missing {
			service, all := strings.CutSuffix(call, "*")
			if !slices.ContainsFunc(calls, func(c string) bool { return c == call || all && strings.HasPrefix(c, service) }) {
				t.Errorf("%s lacks %s, which Howdah does not do", client, call)
			}
		}
	}
	for call, want := range map[string]bool{"ec2 DescribeVpcs": true, "rds DescribeDBInstances": false} {
		if got := Lacks(GoSDK, call) != ""; got != want {
			t.Errorf("Go lacks %s: %t", call, got)
		}
	}
}

// A journey leaves nothing behind: most actions succeed at least once.
func TestActionsSucceed(t *testing.T) {
	// Nothing is pending, PostgreSQL has no option, and what succeeds with backups is walked by a
	// journey of its own.
	never := []string{
		"rds ApplyPendingMaintenanceAction", "rds StartExportTask", "rds ModifyOptionGroup",
		"rds CopyDBClusterSnapshot", "rds CopyDBSnapshot", "rds CreateDBClusterSnapshot", "rds CreateDBSnapshot", "rds DeleteDBClusterSnapshot", "rds DeleteDBSnapshot",
		"rds DescribeDBClusterSnapshotAttributes", "rds DescribeDBSnapshotAttributes", "rds ModifyDBClusterSnapshotAttribute", "rds ModifyDBSnapshot",
		"rds ModifyDBSnapshotAttribute", "rds RestoreDBInstanceFromDBSnapshot",
		"rds RestoreDBInstanceToPointInTime", "rds RestoreDBClusterFromSnapshot", "rds RestoreDBClusterToPointInTime", "rds DeleteDBInstanceAutomatedBackup",
		"rds DeleteDBClusterAutomatedBackup", "rds StartDBInstanceAutomatedBackupsReplication", "rds StopDBInstanceAutomatedBackupsReplication",
	}
	succeeds := map[string]bool{}
	for _, s := range steps(t) {
		succeeds[s.Call] = succeeds[s.Call] || s.Fails == ""
	}
	for call, does := range succeeds {
		if !does && !slices.Contains(never, call) {
			t.Errorf("%s is only ever refused", call)
		}
	}
}

func TestParse(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":              `[{"step": }]`,
		"an unknown field":     `[{"step": "a", "call": "rds A", "wants": {}}]`,
		"no sentence":          `[{"call": "rds A"}]`,
		"no service":           `[{"step": "a", "call": "A"}]`,
		"an answer and a code": `[{"step": "a", "call": "rds A", "want": {}, "fails": "B"}]`,
	} {
		if _, err := parse([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	steps, err := parse([]byte(`[{"step": "a", "call": "rds A", "with": {"N": 1}, "within": 3}]`))
	if err != nil || len(steps) != 1 || steps[0].Within != 3 || steps[0].With["N"] != 1.0 {
		t.Errorf("%+v, %v", steps, err)
	}
}

func TestCommand(t *testing.T) {
	for action, want := range map[string]string{
		"DescribeDBInstances":                  "describe-db-instances",
		"AddRoleToDBCluster":                   "add-role-to-db-cluster",
		"DescribeServerlessV2PlatformVersions": "describe-serverless-v2-platform-versions",
		"CopyDBClusterParameterGroup":          "copy-db-cluster-parameter-group",
		"CreateDBInstanceReadReplica":          "create-db-instance-read-replica",
		"DescribeVpcs":                         "describe-vpcs",
		"Publish":                              "publish",
		"ModifyOptionGroup":                    "add-option-to-option-group",
	} {
		if got := Command(action); got != want {
			t.Errorf("%s is %s, not %s", action, got, want)
		}
	}
}

func steps(t *testing.T) []Step {
	t.Helper()
	all, err := Steps()
	if err != nil {
		t.Fatal(err)
	}
	return all
}
