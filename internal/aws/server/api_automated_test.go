package server

import (
	"strings"
	"time"

	"howdah/internal/model/backup"
	"howdah/internal/state"
)

const (
	showBackups     = "DescribeDBInstanceAutomatedBackups"
	showAuraBackups = "DescribeDBClusterAutomatedBackups"
	oneBackup       = "DBInstanceAutomatedBackups/DBInstanceAutomatedBackup"
	oneAuraBackup   = "DBClusterAutomatedBackups/DBClusterAutomatedBackup"
	keepBackups     = "DeleteAutomatedBackups=false"
)

// gone is an instance that was deleted, and whose backups stayed.
func gone(u *user) {
	u.Helper()
	backedUpDB(u)
	u.automatedOf("db")
	having(with(dropDB, keepBackups))(u)
}

func (u *user) resourceOf(kind string) string {
	u.Helper()
	return u.do(showBackups).text(oneBackup + "/" + kind)
}

var automatedScenarios = []scenario{
	{
		name: "of one that lives", setup: backedUpDB, call: showBackups,
		want: []string{
			oneBackup + "#1", oneBackup + "/Status=active", oneBackup + "/DBInstanceIdentifier=db", oneBackup + "/BackupRetentionPeriod=7", oneBackup + "/RestoreWindow/EarliestTime#1",
			oneBackup + "/RestoreWindow/LatestTime#1", oneBackup + "/Encrypted=false", oneBackup + "/Region=us-east-1",
		},
		after: func(u *user) {
			arn := u.resourceOf("DBInstanceAutomatedBackupsArn")
			if !strings.HasPrefix(arn, "arn:aws:rds:us-east-1:"+u.account+":auto-backup:ab-") {
				u.Errorf("ARN %s", arn)
			}
			u.do(showBackups + "?DBInstanceAutomatedBackupsArn=" + arn).has(oneBackup + "#1")
			u.do(showBackups + "?DbiResourceId=" + u.instanceRecord("db").ResourceID).has(oneBackup + "#1")
			u.try(showBackups+"?DbiResourceId=db-NONE").is("DBInstanceAutomatedBackupNotFound", "db-NONE")
			u.try(showBackups+"?DBInstanceAutomatedBackupsArn=x").is("DBInstanceAutomatedBackupNotFound", "x")
			u.do(showBackups + "?DBInstanceIdentifier=other").has(oneBackup + "#0")
			u.do(showBackups + "?Filters.Filter.1.Name=status&Filters.Filter.1.Values.Value.1=retained").has(oneBackup + "#0")
			u.try(showBackups+"?Filters.Filter.1.Name=color&Filters.Filter.1.Values.Value.1=x").is(badValue, "color")
			u.try("DeleteDBInstanceAutomatedBackup?DBInstanceAutomatedBackupsArn="+arn).is("InvalidDBInstanceAutomatedBackupState", "DeleteAutomatedBackups")
			u.do("ListTagsForResource?ResourceName=" + arn).has("TagList#1")
			u.try("AddTagsToResource?Tags.Tag.1.Key=a&ResourceName="+arn).is("InvalidDBInstanceAutomatedBackupState", "the tags of their database")
			u.do(with(toLatest, "-SourceDBInstanceIdentifier", "SourceDBInstanceAutomatedBackupsArn="+arn))
		},
	},
	{name: "of one without a backup", setup: having(with(newDB, backed)), call: showBackups, want: []string{oneBackup + "/Status=creating", "!" + oneBackup + "/RestoreWindow"}},
	{name: "of one without backups", setup: having(with(newDB, "BackupRetentionPeriod=0")), call: showBackups, want: []string{oneBackup + "#0"}},
	{
		name: "of one that is gone", setup: gone, call: showBackups + "?Filters.Filter.1.Name=status&Filters.Filter.1.Values.Value.1=retained",
		want: []string{oneBackup + "#1", oneBackup + "/Status=retained", oneBackup + "/DBInstanceIdentifier=db", oneBackup + "/RestoreWindow/LatestTime#1"},
		after: func(u *user) {
			id := u.resourceOf("DbiResourceId")
			u.try(showDB).is("DBInstanceNotFound", "")
			u.try(toLatest).is("DBInstanceNotFound", "")
			u.do(with(toLatest, "-SourceDBInstanceIdentifier", "TargetDBInstanceIdentifier=db", "SourceDbiResourceId="+id)).has("DBInstance/DBInstanceIdentifier=db")
			if o := u.instanceRecord("db").Origin; o == nil || o.Database != id || !o.Newest {
				u.Errorf("%+v", o)
			}
			u.try("DeleteDBInstanceAutomatedBackup").is(badMix, "Exactly one")
			u.do("DeleteDBInstanceAutomatedBackup?DbiResourceId=" + id).has("DBInstanceAutomatedBackup/Status=deleting")
			u.try("DeleteDBInstanceAutomatedBackup?DbiResourceId="+id).is("DBInstanceAutomatedBackupNotFound", id)
		},
	},
	{
		name: "they go with the instance, unless they are to stay", setup: func(u *user) {
			backedUpDB(u)
			u.automatedOf("db")
			having(dropDB)(u)
		}, call: showBackups, want: []string{oneBackup + "#0"},
	},
	{
		name: "of a cluster", setup: func(u *user) {
			having(newCluster, newMember)(u)
			u.backedUp("aura", 2*hour)
			u.automatedOf("aura")
		}, call: showAuraBackups, want: []string{oneAuraBackup + "/Status=active", oneAuraBackup + "/DBClusterIdentifier=aura", oneAuraBackup + "/EngineMode=provisioned"},
		after: func(u *user) {
			id := u.clusterRecord("aura").ResourceID
			u.do(showAuraBackups + "?DbClusterResourceId=" + id).has(oneAuraBackup + "#1")
			u.do(showAuraBackups + "?DBClusterIdentifier=none").has(oneAuraBackup + "#0")
			u.try("DeleteDBClusterAutomatedBackup?DbClusterResourceId="+id).is("InvalidDBClusterAutomatedBackupStateFault", "active")
			having("DeleteDBInstance?DBInstanceIdentifier=aura-1&SkipFinalSnapshot=true")(u)
			having(dropAura + "&" + keepBackups)(u)
			u.do(showAuraBackups + "?Filters.Filter.1.Name=status&Filters.Filter.1.Values.Value.1=retained").has(oneAuraBackup + "#1")
			a, err := state.Load[backup.Automated](u.server.Cache, state.Automated(id))
			if err != nil || a.Value.Deleted.IsZero() || a.Value.Cluster == nil {
				u.Errorf("%+v, %v", a.Value, err)
			}
			a.Value.Until = u.now().UTC().Add(-time.Minute)
			u.put(state.Put(a.Key, a.Value))
			u.do(with(aurasLatest, "-SourceDBClusterIdentifier", "SourceDbClusterResourceId="+id))
			u.do("DeleteDBClusterAutomatedBackup?DbClusterResourceId=" + id).has("DBClusterAutomatedBackup/Status=deleting")
			u.try("DeleteDBClusterAutomatedBackup?DbClusterResourceId="+id).is("DBClusterAutomatedBackupNotFoundFault", id)
		},
	},
}

const (
	showCopy = "DescribeDBInstances?DBInstanceIdentifier=copy"
	copyPath = "DBInstances/DBInstance/"
)

const lastSnap = "FinalDBSnapshotIdentifier=last"

var finalScenarios = []scenario{
	{
		name: "an instance", setup: backedUpDB, call: with(dropDB, "-SkipFinalSnapshot", lastSnap), want: []string{"DBInstance/DBInstanceStatus=deleting"},
		after: func(u *user) {
			u.do("DescribeDBSnapshots?DBSnapshotIdentifier=last").has("DBSnapshots/DBSnapshot/Status=creating")
			u.do(showDB).has("DBInstances/DBInstance/DBInstanceStatus=deleting", "!DBInstances/DBInstance/Endpoint")
			u.try(dropDB).is(badState, "already being deleted")
			u.try(newSnap).is(badState, "deleting")
			u.try(with(modifyDB, "BackupRetentionPeriod=3")).is(badState, "")
			u.try(newReplica).is(badState, "deleting")
			u.try("AddTagsToResource?Tags.Tag.1.Key=a&ResourceName=arn:aws:rds:us-east-1:{account}:db:db").is(badState, "being deleted")
			u.settle()
			u.try(showDB).is("DBInstanceNotFound", "db")
			u.do("DescribeDBSnapshots?DBSnapshotIdentifier=last").has("DBSnapshots/DBSnapshot/Status=available", "DBSnapshots/DBSnapshot/SnapshotType=manual")
			u.do(with(fromSnap, "DBSnapshotIdentifier=last"))
		},
	},
	{
		name: "a cluster", setup: having(newTrio), call: "DeleteDBCluster?DBClusterIdentifier=trio&" + lastSnap, want: []string{"DBCluster/Status=deleting"},
		after: func(u *user) {
			u.do("DescribeDBInstances?DBInstanceIdentifier=trio-instance-1").has("DBInstances/DBInstance/DBInstanceStatus=deleting")
			u.do("DescribeDBClusterSnapshots?DBClusterSnapshotIdentifier=last").has("DBClusterSnapshots/DBClusterSnapshot/Status=creating")
			u.try("DeleteDBCluster?DBClusterIdentifier=trio&SkipFinalSnapshot=true").is("InvalidDBClusterStateFault", "deleting")
			u.settle()
			u.settle()
			u.try("DescribeDBClusters?DBClusterIdentifier=trio").is(noCluster, "trio")
			u.do("DescribeDBClusterSnapshots?DBClusterSnapshotIdentifier=last").has("DBClusterSnapshots/DBClusterSnapshot/Status=available")
		},
	},
	{
		name: "what belongs to an instance stays until then", call: with(dropDB, "-SkipFinalSnapshot", lastSnap), setup: func(u *user) {
			backedUpDB(u)
			having(newReplica, newTopic, newEvents+"&SourceType=db-instance&SourceIds.SourceId.1=db")(u)
			u.do("AddTagsToResource?Tags.Tag.1.Key=team&Tags.Tag.1.Value=shop&ResourceName=arn:aws:rds:us-east-1:" + u.account + ":db:db")
		},
		after: func(u *user) {
			u.do(showCopy).has(copyPath+"ReadReplicaSourceDBInstanceIdentifier=db", copyPath+"DBInstanceStatus=available")
			u.do(showDB).has("DBInstances/DBInstance/ReadReplicaDBInstanceIdentifiers/ReadReplicaDBInstanceIdentifier=copy", "DBInstances/DBInstance/TagList/Tag/Key=team")
			u.do("DescribeEventSubscriptions").has("EventSubscriptionsList/EventSubscription/SourceIdsList/SourceId=db")
		},
	},
	{
		name: "what belongs to a cluster stays until then", call: "DeleteDBCluster?DBClusterIdentifier=aura&" + lastSnap, setup: func(u *user) {
			having(newCluster, newMember, addEndpoint)(u)
			u.do("DeleteDBInstance?DBInstanceIdentifier=aura-1&SkipFinalSnapshot=true")
		},
		after: func(u *user) {
			reports := "DescribeDBClusterEndpoints?DBClusterEndpointIdentifier=reports"
			u.do(reports).has("DBClusterEndpoints/DBClusterEndpointList#1")
			u.try(with(addEndpoint, "DBClusterEndpointIdentifier=more")).is("InvalidDBClusterStateFault", "deleting")
			// The snapshot cannot be made, and the cluster stays.
			c := u.clusterRecord("aura")
			c.Final = ""
			u.put(state.Put(state.Cluster(c.Account, c.Region, c.Name), c))
			u.do(reports).has("DBClusterEndpoints/DBClusterEndpointList#1")
		},
	},
	{
		name: "with a replica that is not there yet", setup: func(u *user) {
			backedUpDB(u)
			u.do(newReplica)
		}, call: with(dropDB, "-SkipFinalSnapshot", lastSnap), code: badState, message: "still being created",
	},
	{name: "with a name that is taken", setup: having(newDB, newSnap), call: with(dropDB, "-SkipFinalSnapshot", "FinalDBSnapshotIdentifier=snap"), code: "DBSnapshotAlreadyExists", message: "snap"},
	{name: "with a bad name", setup: having(newDB), call: with(dropDB, "-SkipFinalSnapshot", "FinalDBSnapshotIdentifier=1"), code: badValue, message: "FinalDBSnapshotIdentifier"},
	{name: "of one that stands still", setup: having(newDB, stopDB), call: with(dropDB, "-SkipFinalSnapshot", lastSnap), code: badState, message: "it is stopped"},
	{name: "of a cluster without instances", setup: having(newCluster), call: with(dropAura, "-SkipFinalSnapshot", lastSnap), code: "InvalidDBClusterStateFault", message: "no DB instance"},
	{
		name: "an instance is stopped after its snapshot", setup: having(newDB), call: stopDB + "&DBSnapshotIdentifier=snap", want: []string{"DBInstance/DBInstanceStatus=stopping"},
		after: func(u *user) {
			u.try(startDB).is(badState, "not stopped")
			if u.server.rds.Upkeep.House().Keep(u.Context()); u.instanceRecord("db").Stopped {
				u.Error("it is stopped before its snapshot is there")
			}
			u.settle()
			u.settle()
			u.do(showDB).has("DBInstances/DBInstance/DBInstanceStatus=stopped")
			u.do(showSnap).has("DBSnapshots/DBSnapshot/Status=available")
			u.do(startDB)
			u.settle()
			u.try(stopDB+"&DBSnapshotIdentifier=snap").is("DBSnapshotAlreadyExists", "snap")
		},
	},
	{
		name: "an instance goes on if its snapshot fails", setup: having(newDB), call: stopDB + "&DBSnapshotIdentifier=snap",
		after: func(u *user) {
			s := u.snapshotRecord("snap")
			s.State = backup.Failed
			u.put(state.Put(state.Snapshot(s.Account, s.Region, s.Name), s))
			u.server.rds.Upkeep.House().Keep(u.Context())
			u.do(showDB).has("DBInstances/DBInstance/DBInstanceStatus=available")
		},
	},
}

const (
	replicate = "StartDBInstanceAutomatedBackupsReplication?SourceDBInstanceArn=arn:aws:rds:us-east-1:{account}:db:db"
	stopThat  = "StopDBInstanceAutomatedBackupsReplication?SourceDBInstanceArn=arn:aws:rds:us-east-1:{account}:db:db"
)

var replicationScenarios = []scenario{
	{
		name: "to another region", setup: backedUpDB, call: showBackups, want: []string{oneBackup + "/DBInstanceAutomatedBackupsReplications#1"},
		after: func(u *user) {
			u.try(replicate).is(badValue, "call another region")
			u.region = "eu-west-1"
			u.try(stopThat).is(badState, "not copied")
			u.try(replicate+"&BackupRetentionPeriod=3").is(badValue, "7 days")
			u.try(replicate+"&KmsKeyId=x").is(badMix, "leave it away")
			u.try(with(replicate, "SourceDBInstanceArn=db")).is(badValue, "SourceDBInstanceArn")
			u.try(with(replicate, "SourceDBInstanceArn=arn:aws:rds:us-east-1:{account}:db:none")).is("DBInstanceNotFound", "none")
			u.do(replicate).has(u.fill("DBInstanceAutomatedBackup/DBInstanceArn=arn:aws:rds:us-east-1:{account}:db:db"), "DBInstanceAutomatedBackup/Region=us-east-1")
			u.try(replicate).is("InvalidDBInstanceAutomatedBackupState", "already")
			copies := u.do(showBackups)
			copies.has(oneBackup+"#1", oneBackup+"/Status=creating")
			u.region = "us-east-1"
			u.do(showBackups).has(oneBackup + "/DBInstanceAutomatedBackupsReplications/DBInstanceAutomatedBackupsReplication/DBInstanceAutomatedBackupsArn=" + copies.text(oneBackup+"/DBInstanceAutomatedBackupsArn"))
			u.region = "eu-west-1"
			id := u.instanceIn("us-east-1", "db").ResourceID
			for _, r := range state.LoadAll[backup.Backup](u.server.Cache, state.BackupPrefix(id)) {
				r.Value.Repository = "far"
				u.put(state.Put(state.Backup(id, "far", r.Value.Label), r.Value))
			}
			u.do(with(toLatest, "-SourceDBInstanceIdentifier", "SourceDBInstanceAutomatedBackupsArn="+copies.text(oneBackup+"/DBInstanceAutomatedBackupsArn"))).has(
				u.fill("DBInstance/DBInstanceArn=arn:aws:rds:eu-west-1:{account}:db:again"))
			if o := u.instanceRecord("again").Origin; o == nil || o.Repository != "far" {
				u.Errorf("%+v", o)
			}
			u.do(stopThat)
			u.do(showBackups).has(oneBackup + "/DBInstanceIdentifier=again")
		},
	},
	{
		name: "of an encrypted instance", setup: func(u *user) {
			u.encrypts("a", "b", "c")
			having(with(newDB, backed, "StorageEncrypted=true"))(u)
		}, call: showBackups, want: []string{oneBackup + "/Encrypted=true", oneBackup + "/KmsKeyId#1"},
		after: func(u *user) {
			far := u.customerKey("eu-west-1", nil)
			u.region = "eu-west-1"
			u.try(replicate).is(badMix, "give KmsKeyId")
			u.try(replicate+"&KmsKeyId=none").is("KMSKeyNotAccessibleFault", "none")
			u.put(state.Put(state.Repository("far"), backup.Repository{Name: "far", Copies: true}))
			u.try(replicate+"&KmsKeyId="+far.ARN()).is(badMix, "encrypts nothing")
			u.put(state.Put(state.Repository("far"), backup.Repository{Name: "far", Copies: true, Key: []byte("sealed")}))
			u.do(replicate + "&KmsKeyId=" + far.ARN()).has("DBInstanceAutomatedBackup/KmsKeyId=" + far.ARN())
		},
	},
}
