package rds

import (
	"strings"
	"testing"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
)

// A policy may allow the logs of one instance only.
func TestLogsByPolicy(t *testing.T) {
	c := front.Call{Scope: spec.Scope{Account: "123456789012", Region: "us-east-1"}, Action: "rds:DownloadDBLogFilePortion"}
	in := &rds.DownloadDBLogFilePortionMessage{DBInstanceIdentifier: wire.Some("Orders")}
	if got := strings.Join(resources(c, in), " "); got != "arn:aws:rds:us-east-1:123456789012:db:orders" {
		t.Errorf("it names %s", got)
	}
}

// Giving a database a role takes the right to both, as a role opens a bucket. Taking it away does not.
func TestRolesByPolicy(t *testing.T) {
	const role, db = "arn:aws:iam::123456789012:role/own", "arn:aws:rds:us-east-1:123456789012:"
	for action, r := range map[string]struct {
		in   any
		want string
	}{
		"AddRoleToDBInstance":      {&rds.AddRoleToDBInstanceMessage{DBInstanceIdentifier: wire.Some("x"), RoleArn: wire.Some(role)}, role + " " + db + "db:x"},
		"AddRoleToDBCluster":       {&rds.AddRoleToDBClusterMessage{DBClusterIdentifier: wire.Some("x"), RoleArn: wire.Some(role)}, role + " " + db + "cluster:x"},
		"RemoveRoleFromDBInstance": {&rds.RemoveRoleFromDBInstanceMessage{DBInstanceIdentifier: wire.Some("x"), RoleArn: wire.Some(role)}, db + "db:x"},
	} {
		c := front.Call{Scope: spec.Scope{Account: "123456789012", Region: "us-east-1"}, Action: "rds:" + action}
		if got := strings.Join(resources(c, r.in), " "); got != r.want {
			t.Errorf("%s names %s, want %s", action, got, r.want)
		}
		if _, known := c.About(role, nil); !known {
			t.Error("a policy that denies by tags denies a role, which has none")
		}
	}
}

// A policy may allow some snapshots, and the automated backups of one database.
func TestSnapshotsByPolicy(t *testing.T) {
	c := front.Call{Scope: spec.Scope{Account: "123456789012", Region: "us-east-1"}}
	const arn = "arn:aws:rds:us-east-1:123456789012:"
	for _, r := range []struct {
		in   any
		want string
	}{
		{&rds.CreateDBSnapshotMessage{DBInstanceIdentifier: wire.Some("DB"), DBSnapshotIdentifier: wire.Some("Snap")}, arn + "db:db " + arn + "snapshot:snap"},
		{&rds.DeleteDBSnapshotMessage{DBSnapshotIdentifier: wire.Some("rds:db-1")}, arn + "snapshot:rds:db-1"},
		{&rds.DeleteDBSnapshotMessage{DBSnapshotIdentifier: wire.Some(arn + "snapshot:rds:db-1")}, arn + "snapshot:rds:db-1"},
		{&rds.RestoreDBClusterFromSnapshotMessage{DBClusterIdentifier: wire.Some("c"), SnapshotIdentifier: wire.Some("s")}, arn + "cluster-snapshot:s " + arn + "cluster:c"},
		{&rds.RestoreDBClusterFromSnapshotMessage{DBClusterIdentifier: wire.Some("c"), SnapshotIdentifier: wire.Some(arn + "snapshot:s")}, arn + "cluster:c " + arn + "snapshot:s"},
		{&rds.DeleteDBInstanceAutomatedBackupMessage{DbiResourceId: wire.Some("db-ABC")}, arn + "auto-backup:ab-abc"},
		{&rds.DeleteDBInstanceAutomatedBackupMessage{DBInstanceAutomatedBackupsArn: wire.Some(arn + "auto-backup:ab-abc")}, arn + "auto-backup:ab-abc"},
		{&rds.StopDBInstanceAutomatedBackupsReplicationMessage{SourceDBInstanceArn: wire.Some("arn:aws:rds:eu-west-1:123456789012:db:x")}, "arn:aws:rds:eu-west-1:123456789012:db:x"},
	} {
		if got := strings.Join(resources(c, r.in), " "); got != r.want {
			t.Errorf("%T names %s, want %s", r.in, got, r.want)
		}
	}
}
