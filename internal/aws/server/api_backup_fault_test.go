package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"howdah/internal/admin"
	"howdah/internal/model/backup"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/state/format"
)

// What stands in the way of backups, copies and restores is said by RDS's own codes, and leaves nothing
// half made.
func TestFaultsOfBackups(t *testing.T) {
	w := newWorld(t)
	w.backups()
	w.run(t, []scenario{
		{
			name: "copies without a repository for them", setup: having(with(newDB, backed), newSnap), call: "DescribeDBSnapshots?",
			after: func(u *user) {
				u.region = "eu-west-1"
				u.put(state.Delete(state.Repository("far")))
				u.try(farCopy).is(badMix, "has no repository for copies")
				u.try(replicate).is(badBackup, "has no repository for copies")
				main := backup.Repository{Name: "main", Kind: backup.Directory, Path: "/backups", Key: []byte("sealed"), Default: true, Copies: true}
				u.put(state.Put(state.Repository("main"), main))
				u.try(replicate).is(badBackup, "beside the one that db is backed up to")
				u.backups()
				u.nothingCopied()
			},
		},
		{
			name: "copies of what is gone", setup: having(newDB, newSnap), call: "DescribeDBSnapshots?",
			after: func(u *user) {
				s := u.snapshotRecord("snap")
				u.region = "eu-west-1"
				u.put(state.Delete(state.Repository("main")))
				u.try(farCopy).is(badSnapshot, "The repository main, which has the snapshot snap, is not known any more")
				u.backups()
				u.put(state.Put(state.Control("c1"), format.Said{Reads: format.Newest, Format: 1, Release: "test"}))
				u.try(farCopy).is(badSnapshot, "every part of this home runs this release")
				u.backups()
				u.put(state.Delete(state.Backup(s.Database, "main", s.Label)))
				u.try(farCopy).is(badSnapshot, "not in the repository main any more")
				u.nothingCopied()
				u.region = "us-east-1"
				u.try(copySnap).is(badSnapshot, "not in the repository main any more")
				u.try(fromSnap).is(badRestore, "not in the repository main any more")
				u.try("DescribeDBInstances?DBInstanceIdentifier=again").is("DBInstanceNotFound", "again")
			},
		},
		{
			name: "copies of backups that are not made", setup: having(with(newDB, "BackupRetentionPeriod=0"), newReplica), call: "DescribeDBInstances?",
			after: func(u *user) {
				u.region = "eu-west-1"
				u.try(replicate).is(badState, "has no automated backups of its own")
				u.try(with(replicate, "SourceDBInstanceArn=arn:aws:rds:us-east-1:{account}:db:copy")).is(badState, "has no automated backups of its own")
			},
		},
		{
			name: "copies of the backups of what is stopped", setup: stoppedDB, call: "DescribeDBInstances?",
			after: func(u *user) {
				u.region = "eu-west-1"
				u.try(replicate).is(badState, "it is stopped")
			},
		},
		{
			name: "a snapshot that is not there yet", setup: having(newDB), call: newSnap, want: []string{"DBSnapshot/Status=creating"},
			after: func(u *user) {
				for _, call := range []string{"ModifyDBSnapshot?DBSnapshotIdentifier=snap&EngineVersion=15", shareSnap + "&ValuesToAdd.member.1=111122223333", copySnap, fromSnap} {
					u.try(call).is(badSnapshot, "it is creating")
				}
			},
		},
		{
			name: "shared with too many", setup: having(newDB, newSnap), call: "DescribeDBSnapshots?",
			after: func(u *user) {
				var accounts strings.Builder
				for n := range 20 {
					fmt.Fprintf(&accounts, "&ValuesToAdd.member.%d=1111222233%02d", n+1, n)
				}
				u.do(shareSnap + accounts.String()).has("DBSnapshotAttributesResult/DBSnapshotAttributes/DBSnapshotAttribute/AttributeValues/AttributeValue#20")
				u.try(shareSnap+"&ValuesToAdd.member.1=999922223333").is("SharedSnapshotQuotaExceeded", "20 accounts")
				u.do(shareSnap + "&ValuesToAdd.member.1=999922223333&ValuesToRemove.member.1=111122223300")
			},
		},
		{
			name: "too many operations", setup: having(newDB), call: "DescribeDBSnapshots?",
			after: func(u *user) {
				var busy []state.Op
				for n := range 200 {
					id := fmt.Sprintf("op-%s-%d", u.account, n)
					about := operation.About{Scope: u.scope(), Database: u.instanceRecord("db").ResourceID, Name: "db"}
					busy = append(busy, state.Put(state.Operation(id), operation.Record{ID: id, Kind: "test", State: operation.Running, About: about}))
				}
				for part := range slices.Chunk(busy, 50) {
					u.put(part...)
				}
				u.try(newSnap).is("ThrottlingException", "howdah operations list")
				u.try("DescribeDBSnapshots?DBSnapshotIdentifier=snap").is(noSnapshot, "snap")
			},
		},
	})
}

const (
	farCopy   = "CopyDBSnapshot?TargetDBSnapshotIdentifier=copied&SourceDBSnapshotIdentifier=arn:aws:rds:us-east-1:{account}:snapshot:snap"
	badBackup = "InvalidDBInstanceAutomatedBackupState"
)

// nothingCopied checks that the user's region has no snapshot, and that nobody works on one.
func (u *user) nothingCopied() {
	u.Helper()
	u.do("DescribeDBSnapshots?").has("DBSnapshots/DBSnapshot#0")
	for _, r := range state.LoadAll[operation.Record](u.server.Cache, state.OperationRoot) {
		if r.Value.About.Account == u.account && r.Value.Kind == backup.Copy.Name {
			u.Errorf("a copy was begun: %+v", r.Value)
		}
	}
}

// The same by the command line, which has actions that RDS has not.
func TestFaultsOfBackupsByTheCommandLine(t *testing.T) {
	u := newWorld(t).user(t)
	u.backups()
	having(newDB, newReplica, newCluster, newMember, newAuraSnap)(u)
	live := admin.RestorePoint{Live: true}
	for name, c := range map[string]struct {
		in   admin.RestoreRequest
		want string
	}{
		"a clone of a replica": {admin.RestoreRequest{From: "copy", RestorePoint: live}, "clone its source"},
		"zones of a cluster":   {admin.RestoreRequest{RestorePoint: admin.RestorePoint{Snapshot: "asnap"}, Zone: "us-east-1a"}, "zones and its storage by its kind"},
		"storage of a cluster": {admin.RestoreRequest{RestorePoint: admin.RestorePoint{Snapshot: "asnap"}, StorageGiB: 50}, "zones and its storage by its kind"},
	} {
		c.in.Name = "new"
		if _, err := u.restore(c.in); err == nil {
			t.Errorf("%s: done", name)
		} else {
			u.says(name, err, c.want)
		}
	}
	having(with(newDB, "DBInstanceIdentifier=other"), "StopDBInstance?DBInstanceIdentifier=other")(u)
	if _, err := u.restore(admin.RestoreRequest{Name: "new", From: "other", RestorePoint: live}); err == nil {
		t.Error("a clone of what is stopped: done")
	} else {
		u.says("a clone of what is stopped", err, "it is stopped")
	}
	for _, i := range state.LoadAll[spec.Instance](u.server.Cache, state.InstanceRoot) {
		if i.Value.Name == "new" {
			t.Errorf("half made: %+v", i.Value)
		}
	}
}

// An instance takes no data in its place that were encrypted, nor those of a cluster.
func TestRewindsToWhatDoesNotFit(t *testing.T) {
	u := newWorld(t).user(t)
	u.backups()
	u.encrypts("a", "b", "c")
	backedUpDB(u)
	having(with(newDB, "DBInstanceIdentifier=sealed", "StorageEncrypted=true"), "CreateDBSnapshot?DBInstanceIdentifier=sealed&DBSnapshotIdentifier=secret", newCluster, newMember, newAuraSnap)(u)
	for snapshot, want := range map[string]string{"secret": "they were encrypted, and its storage is not", "asnap": "they are of a DB cluster"} {
		in := u.back(2 * hour)
		in.RestorePoint = admin.RestorePoint{Snapshot: snapshot}
		if _, err := u.rewind(in); err == nil {
			t.Errorf("%s: done", snapshot)
		} else {
			u.says(snapshot, err, want)
		}
	}
}
