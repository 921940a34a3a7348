package server

import (
	"strings"
	"testing"

	"howdah/internal/identity/kms"
	"howdah/internal/model/backup"
	"howdah/internal/state"
)

const (
	newSnap      = "CreateDBSnapshot?DBSnapshotIdentifier=snap&DBInstanceIdentifier=db"
	showSnap     = "DescribeDBSnapshots?DBSnapshotIdentifier=snap"
	copySnap     = "CopyDBSnapshot?SourceDBSnapshotIdentifier=snap&TargetDBSnapshotIdentifier=copied"
	dropSnap     = "DeleteDBSnapshot?DBSnapshotIdentifier=snap"
	shareSnap    = "ModifyDBSnapshotAttribute?DBSnapshotIdentifier=snap&AttributeName=restore"
	newAuraSnap  = "CreateDBClusterSnapshot?DBClusterSnapshotIdentifier=asnap&DBClusterIdentifier=aura"
	showAuraSnap = "DescribeDBClusterSnapshots?DBClusterSnapshotIdentifier=asnap"
	copyAuraSnap = "CopyDBClusterSnapshot?SourceDBClusterSnapshotIdentifier=asnap&TargetDBClusterSnapshotIdentifier=acopied"
	dropAuraSnap = "DeleteDBClusterSnapshot?DBClusterSnapshotIdentifier=asnap"

	noSnapshot     = "DBSnapshotNotFound"
	noAuraSnapshot = "DBClusterSnapshotNotFoundFault"
	badSnapshot    = "InvalidDBSnapshotState"
)

// automatic makes a snapshot one of the backup window's.
func (u *user) automatic(name string) {
	u.Helper()
	s := u.snapshotRecord(name)
	u.put(state.Delete(state.Snapshot(s.Account, s.Region, s.Name)))
	s.Automated, s.Name = true, "rds:db-2026-11-24-16-00"
	u.put(state.Put(state.Snapshot(s.Account, s.Region, s.Name), s))
}

var snapshotScenarios = []scenario{
	{
		name: "a snapshot", setup: having(with(newDB, "BackupRetentionPeriod=7", "Tags.Tag.1.Key=team", "Tags.Tag.1.Value=blue")), call: with(newSnap, "DBSnapshotIdentifier=Snap"),
		want: []string{
			"DBSnapshot/DBSnapshotIdentifier=snap", "DBSnapshot/Status=creating", "DBSnapshot/PercentProgress=0", "DBSnapshot/SnapshotType=manual", "DBSnapshot/Engine=postgres",
			"DBSnapshot/EngineVersion=15.18", "DBSnapshot/DBInstanceIdentifier=db", "DBSnapshot/AllocatedStorage=20", "DBSnapshot/StorageType=gp2", "DBSnapshot/Port=5432",
			"DBSnapshot/MasterUsername=boss", "DBSnapshot/Encrypted=false", "!DBSnapshot/SnapshotCreateTime", "DBSnapshot/DBSnapshotArn=arn:aws:rds:us-east-1:{account}:snapshot:snap",
			"DBSnapshot/OptionGroupName=default:postgres-15", "DBSnapshot/LicenseModel=postgresql-license", "DBSnapshot/TagList#1", "DBSnapshot/TagList/Tag#0", "!DBSnapshot/KmsKeyId",
			"DBSnapshot/SnapshotTarget=region", "DBSnapshot/BackupRetentionPeriod=7",
		},
		after: func(u *user) {
			u.try(newSnap).is("DBSnapshotAlreadyExists", "snap already exists")
			u.try(dropSnap).is(badSnapshot, "not currently in the available or failed state")
			u.try(copySnap).is(badSnapshot, "not currently in the available state")
			u.try(shareSnap+"&ValuesToAdd.AttributeValue.1=123456789012").is(badSnapshot, "creating")
			if got := u.eventsOf("db-instance", "db"); !strings.Contains(got, "Backing up DB instance") {
				u.Errorf("events: %s", got)
			}
			u.settle()
			u.do(showSnap).has("DBSnapshots/DBSnapshot/Status=available", "DBSnapshots/DBSnapshot/PercentProgress=100", "DBSnapshots/DBSnapshot/SnapshotCreateTime#1",
				"DBSnapshots/DBSnapshot/FullSnapshotSizeInBytes=8388608")
			u.do(dropSnap).has("DBSnapshot/Status=deleted")
			u.try(showSnap).is(noSnapshot, "DBSnapshot not found: snap")
			u.try(dropSnap).is(noSnapshot, "snap")
			if got := u.eventsOf("db-snapshot", "snap"); got != "Creating manual snapshot; Deleted user snapshot" {
				u.Errorf("events: %s", got)
			}
		},
	},
	{
		name: "a snapshot has the tags of its database, if it is to", setup: having(with(newDB, "CopyTagsToSnapshot=true", "Tags.Tag.1.Key=team", "Tags.Tag.1.Value=blue")),
		call: newSnap + "&Tags.Tag.1.Key=for&Tags.Tag.1.Value=sale", want: []string{"DBSnapshot/TagList/Tag#2"},
		after: func(u *user) {
			arn := "arn:aws:rds:us-east-1:{account}:snapshot:snap"
			u.do("AddTagsToResource?Tags.Tag.1.Key=more&Tags.Tag.1.Value=1&ResourceName=" + arn)
			u.do("RemoveTagsFromResource?TagKeys.member.1=for&ResourceName=" + arn)
			u.do("ListTagsForResource?ResourceName="+arn).has("TagList/Tag#2", "TagList/Tag[1]/Key=team", "TagList/Tag[2]/Key=more")
			u.settle()
			u.do(showSnap).has("DBSnapshots/DBSnapshot/TagList/Tag#2")
		},
	},
	{
		name: "lists", setup: having(newDB, newSnap, with(newSnap, "DBSnapshotIdentifier=auto"), with(newDB, "DBInstanceIdentifier=other"),
			with(newSnap, "DBSnapshotIdentifier=another", "DBInstanceIdentifier=other")), call: "DescribeDBSnapshots", want: []string{"DBSnapshots/DBSnapshot#3"},
		after: func(u *user) {
			u.automatic("auto")
			u.do("DescribeDBSnapshots").has("DBSnapshots/DBSnapshot#3", "DBSnapshots/DBSnapshot[1]/DBSnapshotIdentifier=another", "DBSnapshots/DBSnapshot[2]/SnapshotType=automated")
			u.do("DescribeDBSnapshots?SnapshotType=manual").has("DBSnapshots/DBSnapshot#2")
			u.do("DescribeDBSnapshots?SnapshotType=automated").has("DBSnapshots/DBSnapshot#1", "DBSnapshots/DBSnapshot/DBSnapshotIdentifier=rds:db-2026-11-24-16-00")
			u.do("DescribeDBSnapshots?DBSnapshotIdentifier=arn:aws:rds:us-east-1:{account}:snapshot:rds:db-2026-11-24-16-00").has("DBSnapshots/DBSnapshot#1")
			u.do("ListTagsForResource?ResourceName=arn:aws:rds:us-east-1:{account}:snapshot:rds:db-2026-11-24-16-00").has("TagList#1")
			u.do("DescribeDBSnapshots?SnapshotType=awsbackup").has("DBSnapshots/DBSnapshot#0")
			u.do("DescribeDBSnapshots?SnapshotType=shared").has("DBSnapshots/DBSnapshot#0")
			u.do("DescribeDBSnapshots?DBInstanceIdentifier=other").has("DBSnapshots/DBSnapshot#1")
			u.do("DescribeDBSnapshots?DBInstanceIdentifier=none").has("DBSnapshots/DBSnapshot#0")
			u.do("DescribeDBSnapshots?DbiResourceId=" + u.instanceRecord("db").ResourceID).has("DBSnapshots/DBSnapshot#2")
			by := func(name, value string) string {
				return "DescribeDBSnapshots?Filters.Filter.1.Name=" + name + "&Filters.Filter.1.Values.Value.1=" + value
			}
			u.do(by("db-instance-id", "arn:aws:rds:us-east-1:{account}:db:other")).has("DBSnapshots/DBSnapshot#1")
			u.do(by("db-snapshot-id", "snap")).has("DBSnapshots/DBSnapshot#1")
			u.do(by("dbi-resource-id", u.instanceRecord("db").ResourceID)).has("DBSnapshots/DBSnapshot#2")
			u.do(by("snapshot-type", "automated")).has("DBSnapshots/DBSnapshot#1")
			u.do(by("engine", "postgres")).has("DBSnapshots/DBSnapshot#3")
			u.try(by("color", "red")).is(badValue, "Unrecognized filter name: color")
			u.try("DescribeDBSnapshots?SnapshotType=best").is(badValue, "best")
			u.try("DescribeDBSnapshots?MaxRecords=3").is(badValue, "MaxRecords")
			u.try("DeleteDBSnapshot?DBSnapshotIdentifier=rds:db-2026-11-24-16-00").is(badSnapshot, "automated")
			u.try("ModifyDBSnapshotAttribute?DBSnapshotIdentifier=rds:db-2026-11-24-16-00&AttributeName=restore&ValuesToAdd.AttributeValue.1=all").is(badSnapshot, "copy it")
			u.do("CopyDBSnapshot?SourceDBSnapshotIdentifier=rds:db-2026-11-24-16-00&TargetDBSnapshotIdentifier=kept").has("DBSnapshot/SnapshotType=manual")
		},
	},
	{
		name: "one is written with its database", setup: having(newDB), call: newSnap,
		after: func(u *user) {
			// Whoever deletes the database, and does not know of the snapshot yet, has to look again.
			shot, err := state.Load[backup.Snapshot](u.server.Cache, state.Snapshot(u.account, u.region, "snap"))
			if err != nil {
				u.Fatal(err)
			}
			if _, revision, _ := u.server.Cache.Raw(state.Instance(u.account, u.region, "db")); revision != shot.Revision {
				u.Errorf("the database is of revision %d, the snapshot of %d", revision, shot.Revision)
			}
		},
	},
	{
		name: "pages", setup: having(newDB, newSnap), call: showSnap,
		after: func(u *user) {
			s := u.snapshotRecord("snap")
			for n := range 44 {
				s.Name = "s-" + string(rune('a'+n/10)) + string(rune('0'+n%10))
				u.put(state.Put(state.Snapshot(s.Account, s.Region, s.Name), s))
			}
			first := u.do("DescribeDBSnapshots?MaxRecords=20")
			first.has("DBSnapshots/DBSnapshot#20")
			second := u.do("DescribeDBSnapshots?MaxRecords=20&Marker=" + first.text("Marker"))
			second.has("DBSnapshots/DBSnapshot#20")
			u.do("DescribeDBSnapshots?MaxRecords=20&Marker="+second.text("Marker")).has("DBSnapshots/DBSnapshot#5", "!Marker")
		},
	},
	{
		name: "the quota", setup: having(newDB, newSnap), call: showSnap,
		after: func(u *user) {
			s := u.snapshotRecord("snap")
			for n := range 99 {
				s.Name = "s-" + string(rune('a'+n/10)) + string(rune('0'+n%10))
				u.put(state.Put(state.Snapshot(s.Account, s.Region, s.Name), s))
			}
			u.try(with(newSnap, "DBSnapshotIdentifier=more")).is("SnapshotQuotaExceeded", "100")
			u.try(copySnap).is("SnapshotQuotaExceeded", "100")
			u.do("DeleteDBSnapshot?DBSnapshotIdentifier=s-a0")
			u.do(copySnap)
		},
	},
	{
		name: "a copy", setup: having(newDB, newSnap), call: copySnap + "&Tags.Tag.1.Key=a&Tags.Tag.1.Value=b",
		want: []string{
			"DBSnapshot/DBSnapshotIdentifier=copied", "DBSnapshot/Status=available", "DBSnapshot/SourceDBSnapshotIdentifier=arn:aws:rds:us-east-1:{account}:snapshot:snap",
			"DBSnapshot/SourceRegion=us-east-1", "DBSnapshot/TagList/Tag/Key=a", "DBSnapshot/OriginalSnapshotCreateTime#1",
		},
		after: func(u *user) {
			u.do(dropSnap)
			u.do("DescribeDBSnapshots").has("DBSnapshots/DBSnapshot#1")
			if got := u.eventsOf("db-snapshot", "copied"); got != "Started copy of snapshot snap in region us-east-1; Finished copy of snapshot snap in region us-east-1" {
				u.Errorf("events: %s", got)
			}
			if s := u.snapshotRecord("copied"); s.Label == "" || s.Repository != "main" {
				u.Errorf("%+v", s)
			}
			// Both were written at once: whoever was removing the backup meanwhile looks again.
			copied, err := state.Load[backup.Snapshot](u.server.Cache, state.Snapshot(u.account, u.region, "copied"))
			if err != nil {
				u.Fatal(err)
			}
			held, err := state.Load[backup.Backup](u.server.Cache, state.Backup(copied.Value.Database, "main", copied.Value.Label))
			if err != nil || held.Revision != copied.Revision {
				u.Errorf("the backup is of revision %d, the copy of %d, %v", held.Revision, copied.Revision, err)
			}
		},
	},
	{
		name: "a copy in another region", setup: having(newDB, newSnap), call: showSnap,
		after: func(u *user) {
			u.region = "eu-west-1"
			far := with(copySnap, "SourceDBSnapshotIdentifier=arn:aws:rds:us-east-1:{account}:snapshot:snap", "CopyTags=true")
			u.try(copySnap).is(noSnapshot, "snap")
			u.put(state.Put(state.Repository("far"), backup.Repository{Name: "far", Copies: true}))
			u.try(far).is(badMix, "is encrypted, and the other one is not")
			u.put(state.Put(state.Repository("far"), backup.Repository{Name: "far", Copies: true, Key: []byte("k")}))
			at := u.snapshotAt(state.Snapshot(u.account, "us-east-1", "snap"))
			whole, err := state.Load[backup.Backup](u.server.Cache, state.Backup(at.Database, "main", at.Label))
			if err != nil {
				u.Fatal(err)
			}
			on, below := whole.Value, state.Backup(at.Database, "main", "first")
			on.Needs = []string{"first"}
			u.put(state.Put(whole.Key, on), state.Put(below, backup.Backup{Database: at.Database, Repository: "main", Label: "first", Damaged: "a page is wrong"}))
			u.try(far).is(badSnapshot, "it needs first, of which is said: a page is wrong")
			u.put(state.Put(whole.Key, whole.Value), state.Delete(below))
			u.do(far).has("DBSnapshot/Status=copying", "DBSnapshot/PercentProgress=0", u.fill("DBSnapshot/DBSnapshotArn=arn:aws:rds:eu-west-1:{account}:snapshot:copied"))
			u.try(far).is("DBSnapshotAlreadyExists", "copied")
			u.try("RestoreDBInstanceFromDBSnapshot?DBSnapshotIdentifier=copied&DBInstanceIdentifier=x").is(badSnapshot, "copying")
			under := u.snapshotRecord("copied")
			if under.Repository != "far" || under.Label != "" || !backup.IsCopy(under.Part) {
				u.Errorf("%+v", under)
			}
			u.settleBackups()
			u.do("DescribeDBSnapshots").has("DBSnapshots/DBSnapshot#1", "DBSnapshots/DBSnapshot/Status=available", "DBSnapshots/DBSnapshot/SourceRegion=us-east-1",
				"DBSnapshots/DBSnapshot/PercentProgress=100")
			// What is there already is not copied again. A copy of a copy, and one back, have the data where they are.
			u.do(with(far, "TargetDBSnapshotIdentifier=twice")).has("DBSnapshot/Status=available")
			u.do("CopyDBSnapshot?SourceDBSnapshotIdentifier=copied&TargetDBSnapshotIdentifier=again").has("DBSnapshot/Status=available")
			for _, name := range []string{"twice", "again"} {
				if s := u.snapshotRecord(name); s.Part != under.Part || s.Repository != "far" {
					u.Errorf("%s is %+v", name, s)
				}
			}
			if got := u.eventsOf("db-snapshot", "twice"); got != "Started copy of snapshot snap from region us-east-1; Finished copy of snapshot snap from region us-east-1" {
				u.Errorf("events %q", got)
			}
			u.do("RestoreDBInstanceFromDBSnapshot?DBSnapshotIdentifier=copied&DBInstanceIdentifier=restored")
			if from := u.instanceRecord("restored").Origin; from == nil || from.Database != under.Part || from.Repository != "far" {
				u.Errorf("restored from %+v", from)
			}
		},
	},
	{
		name: "a copy that is given up", setup: having(newDB, newSnap), call: showSnap,
		after: func(u *user) {
			u.region = "eu-west-1"
			u.do(with(copySnap, "SourceDBSnapshotIdentifier=arn:aws:rds:us-east-1:{account}:snapshot:snap"))
			id := u.snapshotRecord("copied").Operation
			u.do("DeleteDBSnapshot?DBSnapshotIdentifier=copied").has("DBSnapshot/Status=deleted")
			if _, _, cancelled := u.server.Cache.Raw(state.OperationCancel(id)); !cancelled {
				u.Error("the copy goes on")
			}
			if got := u.eventsOf("db-snapshot", "copied"); !strings.Contains(got, "Canceled snapshot copy request of snap from region us-east-1") {
				u.Errorf("events %q", got)
			}
			u.do(with(copySnap, "SourceDBSnapshotIdentifier=arn:aws:rds:us-east-1:{account}:snapshot:snap")).has("DBSnapshot/Status=copying")
		},
	},
	{
		name: "a copy in another region, in one repository", setup: having(newDB, newSnap), call: showSnap,
		after: func(u *user) {
			u.region = "eu-west-1"
			far := with(copySnap, "SourceDBSnapshotIdentifier=arn:aws:rds:us-east-1:{account}:snapshot:snap", "CopyTags=true")
			u.everythingIn("main")
			u.do(far).has("DBSnapshot/Status=available", u.fill("DBSnapshot/DBSnapshotArn=arn:aws:rds:eu-west-1:{account}:snapshot:copied"))
			u.do("DescribeDBSnapshots").has("DBSnapshots/DBSnapshot#1", "DBSnapshots/DBSnapshot/Status=available", "DBSnapshots/DBSnapshot/SourceRegion=us-east-1")
			if s := u.snapshotRecord("copied"); s.Repository != "main" {
				u.Errorf("%+v", s)
			}
		},
	},
	{
		name: "an encrypted snapshot", setup: func(u *user) {
			u.encrypts("a", "b", "c")
			having(with(newDB, "StorageEncrypted=true"), newSnap)(u)
		}, call: showSnap, want: []string{"DBSnapshots/DBSnapshot/Encrypted=true", "DBSnapshots/DBSnapshot/KmsKeyId#1"},
		after: func(u *user) {
			mine, far := u.customerKey(u.region, nil), u.customerKey("eu-west-1", nil)
			u.try(shareSnap+"&ValuesToAdd.AttributeValue.1=all").is(badValue, "cannot be made public")
			u.try(shareSnap+"&ValuesToAdd.AttributeValue.1=123456789012").is(badSnapshot, "default key")
			u.try(copySnap+"&KmsKeyId="+far.ARN()).is("KMSKeyNotAccessibleFault", far.ARN())
			u.do(copySnap + "&KmsKeyId=" + mine.ID).has("DBSnapshot/KmsKeyId=" + mine.ARN())
			u.do(with(shareSnap, "DBSnapshotIdentifier=copied") + "&ValuesToAdd.AttributeValue.1=123456789012")
			u.everythingIn("main")
			u.region = "eu-west-1"
			there := with(copySnap, "SourceDBSnapshotIdentifier=arn:aws:rds:us-east-1:{account}:snapshot:snap")
			u.try(there).is(badMix, "give KmsKeyId, a key of this account and of the region eu-west-1")
			u.do(there + "&KmsKeyId=" + far.ARN()).has("DBSnapshot/KmsKeyId=" + far.ARN())
			if s := u.snapshotRecord("copied"); s.Instance.StorageKey != far.ID {
				u.Errorf("%+v", s.Instance)
			}
		},
	},
	{
		name: "a plain snapshot can be copied into an encrypted one", setup: having(newDB, newSnap), call: showSnap,
		after: func(u *user) {
			mine := u.customerKey(u.region, func(k *kms.Key) { k.Description = "mine" })
			u.do(copySnap+"&KmsKeyId="+mine.ARN()).has("DBSnapshot/Encrypted=true", "DBSnapshot/KmsKeyId="+mine.ARN())
			// What is shown as encrypted is not in the clear.
			u.put(state.Put(state.Repository("main"), backup.Repository{Name: "main", Default: true}))
			u.try(with(copySnap, "TargetDBSnapshotIdentifier=open")+"&KmsKeyId="+mine.ARN()).is(badMix, "encrypts nothing")
			u.do(with(copySnap, "TargetDBSnapshotIdentifier=open")).has("DBSnapshot/Encrypted=false")
		},
	},
	{
		name: "shared", setup: having(newDB, newSnap), call: shareSnap + "&ValuesToAdd.AttributeValue.1=123456789012&ValuesToAdd.AttributeValue.2=000000000001",
		want: []string{
			"DBSnapshotAttributesResult/DBSnapshotIdentifier=snap", "DBSnapshotAttributesResult/DBSnapshotAttributes/DBSnapshotAttribute/AttributeName=restore",
			"DBSnapshotAttributesResult/DBSnapshotAttributes/DBSnapshotAttribute/AttributeValues/AttributeValue#2",
		},
		after: func(u *user) {
			u.do(shareSnap + "&ValuesToRemove.AttributeValue.1=000000000001&ValuesToRemove.AttributeValue.2=123456789012")
			const values = "DBSnapshotAttributesResult/DBSnapshotAttributes/DBSnapshotAttribute/AttributeValues/AttributeValue"
			u.do("DescribeDBSnapshotAttributes?DBSnapshotIdentifier=snap").has(values + "#0")
			u.try(shareSnap+"&ValuesToAdd.AttributeValue.1=me").is(badValue, "me")
			u.try(with(shareSnap, "AttributeName=copy")+"&ValuesToAdd.AttributeValue.1=all").is(badValue, "copy")
			friend := u.world.user(u.T)
			arn := "arn:aws:rds:us-east-1:" + u.account + ":snapshot:snap"
			friend.try("DescribeDBSnapshots?DBSnapshotIdentifier="+arn).is(noSnapshot, "snap")
			u.do(shareSnap + "&ValuesToAdd.AttributeValue.1=" + friend.account).has(values + "=" + friend.account)
			friend.do("DescribeDBSnapshots").has("DBSnapshots/DBSnapshot#0")
			friend.do("DescribeDBSnapshots?IncludeShared=true").has("DBSnapshots/DBSnapshot#1", "DBSnapshots/DBSnapshot/SnapshotType=shared", "DBSnapshots/DBSnapshot/DBSnapshotArn="+arn)
			friend.do("DescribeDBSnapshots?SnapshotType=shared").has("DBSnapshots/DBSnapshot#1")
			friend.do("DescribeDBSnapshots?DBSnapshotIdentifier=" + arn).has("DBSnapshots/DBSnapshot#1")
			friend.try("DeleteDBSnapshot?DBSnapshotIdentifier="+arn).is(noSnapshot, "snap")
			friend.try("DescribeDBSnapshotAttributes?DBSnapshotIdentifier="+arn).is(noSnapshot, "snap")
			friend.do(with(copySnap, "SourceDBSnapshotIdentifier="+arn)).has("DBSnapshot/DBSnapshotArn=arn:aws:rds:us-east-1:" + friend.account + ":snapshot:copied")
			u.do(shareSnap + "&ValuesToAdd.AttributeValue.1=all")
			stranger := u.world.user(u.T)
			stranger.do("DescribeDBSnapshots?IncludeShared=true").has("DBSnapshots/DBSnapshot#0")
			stranger.do("DescribeDBSnapshots?DBSnapshotIdentifier="+arn+"&SnapshotType=public").has("DBSnapshots/DBSnapshot#1", "DBSnapshots/DBSnapshot/SnapshotType=public")
			stranger.do("DescribeDBSnapshots?IncludePublic=true&DBInstanceIdentifier=db&Filters.Filter.1.Name=db-snapshot-id&Filters.Filter.1.Values.Value.1=" + arn).has("DBSnapshots/DBSnapshot#1")
		},
	},
	{
		name: "modified", setup: having(newDB, newSnap, "CreateOptionGroup?OptionGroupName=mine&EngineName=postgres&MajorEngineVersion=15&OptionGroupDescription=d"),
		call: "ModifyDBSnapshot?DBSnapshotIdentifier=snap&OptionGroupName=mine&EngineVersion=15", want: []string{"DBSnapshot/OptionGroupName=mine"},
		after: func(u *user) {
			u.try("ModifyDBSnapshot?DBSnapshotIdentifier=snap&EngineVersion=16.1").is(badMix, "Cannot upgrade the snapshot")
			u.try("ModifyDBSnapshot?DBSnapshotIdentifier=snap&OptionGroupName=none").is("OptionGroupNotFoundFault", "none")
			u.do(copySnap + "&OptionGroupName=default:postgres-15").has("DBSnapshot/OptionGroupName=default:postgres-15")
		},
	},
	{
		name: "a snapshot of a cluster", setup: having(newCluster, newMember), call: newAuraSnap,
		want: []string{
			"DBClusterSnapshot/DBClusterSnapshotIdentifier=asnap", "DBClusterSnapshot/Status=creating", "DBClusterSnapshot/SnapshotType=manual", "DBClusterSnapshot/EngineMode=provisioned",
			"DBClusterSnapshot/Engine=aurora-postgresql", "DBClusterSnapshot/AvailabilityZones/AvailabilityZone#3", "DBClusterSnapshot/SnapshotCreateTime#1",
			"DBClusterSnapshot/DBClusterSnapshotArn=arn:aws:rds:us-east-1:{account}:cluster-snapshot:asnap", "DBClusterSnapshot/StorageEncrypted=false",
		},
		after: func(u *user) {
			u.try(dropAuraSnap).is("InvalidDBClusterSnapshotStateFault", "available or failed")
			u.settle()
			u.do(showAuraSnap).has("DBClusterSnapshots/DBClusterSnapshot/Status=available", "DBClusterSnapshots/DBClusterSnapshot/PercentProgress=100")
			u.do(copyAuraSnap).has(u.fill("DBClusterSnapshot/SourceDBClusterSnapshotArn=arn:aws:rds:us-east-1:{account}:cluster-snapshot:asnap"))
			u.do("ModifyDBClusterSnapshotAttribute?DBClusterSnapshotIdentifier=asnap&AttributeName=restore&ValuesToAdd.AttributeValue.1=all")
			const values = "DBClusterSnapshotAttributesResult/DBClusterSnapshotAttributes/DBClusterSnapshotAttribute/AttributeValues/AttributeValue"
			u.do("DescribeDBClusterSnapshotAttributes?DBClusterSnapshotIdentifier=asnap").has(values + "=all")
			u.do("AddTagsToResource?Tags.Tag.1.Key=more&Tags.Tag.1.Value=1&ResourceName=arn:aws:rds:us-east-1:{account}:cluster-snapshot:asnap")
			u.do("DescribeDBClusterSnapshots?DBClusterIdentifier=aura&SnapshotType=manual").has("DBClusterSnapshots/DBClusterSnapshot#2")
			u.do(dropAuraSnap).has("DBClusterSnapshot/Status=deleted")
			u.try(showAuraSnap).is(noAuraSnapshot, "asnap")
			u.try("DescribeDBClusterSnapshots?SnapshotType=best").is(badValue, "best")
			if got := u.eventsOf("db-cluster-snapshot", "asnap"); got != "Creating manual cluster snapshot" {
				u.Errorf("events: %s", got)
			}
		},
	},
	{
		name: "a snapshot that failed can be deleted", setup: having(newDB, newSnap), call: showSnap,
		after: func(u *user) {
			s := u.snapshotRecord("snap")
			s.State, s.Reason = backup.Failed, "no room"
			u.put(state.Put(state.Snapshot(s.Account, s.Region, s.Name), s))
			u.do(showSnap).has("DBSnapshots/DBSnapshot/Status=failed", "DBSnapshots/DBSnapshot/PercentProgress=0")
			u.do(dropSnap)
		},
	},
}

var snapshotRefusals = append(append([]scenario{
	{name: "of a member", setup: having(newCluster, newMember), call: with(newSnap, "DBInstanceIdentifier=aura-1"), code: badValue, message: "CreateDBClusterSnapshot"},
	{name: "of a replica", setup: having(newDB, newReplica), call: with(newSnap, "DBInstanceIdentifier=copy"), code: badState, message: "read replica"},
	{name: "of one that stands still", setup: having(newDB, stopDB), call: newSnap, code: badState, message: "it is stopped"},
	{name: "of one that is not there yet", setup: func(u *user) { u.do(newDB) }, call: newSnap, code: badState, message: "it is creating"},
	{name: "of a cluster without instances", setup: having(newCluster), call: newAuraSnap, code: "InvalidDBClusterStateFault", message: "no DB instance"},
	{name: "of a cluster that stands still", setup: having(newCluster, newMember, stopAura), call: newAuraSnap, code: "InvalidDBClusterStateFault", message: "stopped"},
	{name: "with a long name", setup: having(newDB), call: with(newSnap, "DBSnapshotIdentifier="+strings.Repeat("s", 255)), want: []string{"DBSnapshot/Status=creating"}},
}, refusals(having(newDB), newSnap, []refusal{
	{"DBSnapshotIdentifier=rds:db", badValue, "DBSnapshotIdentifier"},
	{"DBSnapshotIdentifier=a--b", badValue, "DBSnapshotIdentifier"},
	{"DBSnapshotIdentifier=" + strings.Repeat("s", 256), badValue, "DBSnapshotIdentifier"},
	{"DBInstanceIdentifier=none", "DBInstanceNotFound", "none"},
	{"-DBSnapshotIdentifier", missing, "DBSnapshotIdentifier"},
	{"Tags.Tag.1.Key=aws:x", badValue, "aws:"},
})...), refusals(having(newDB, newSnap), copySnap, []refusal{
	{"SourceDBSnapshotIdentifier=none", noSnapshot, "none"},
	{"TargetDBSnapshotIdentifier=snap", "DBSnapshotAlreadyExists", "snap"},
	{"TargetDBSnapshotIdentifier=1", badValue, "TargetDBSnapshotIdentifier"},
	{"SnapshotTarget=local", badMix, "SnapshotTarget"},
	{"OptionGroupName=none", "OptionGroupNotFoundFault", "none"},
})...)

// Without a repository nothing pretends to be a backup.
func TestSnapshotsNeedARepository(t *testing.T) {
	u := newWorld(t).user(t)
	having(newDB)(u)
	u.try(newSnap).is(badMix, "howdah repository add")
	u.backups()
	u.do(newSnap)
	u.do(with(newDB, "DBInstanceIdentifier=later")).has("DBInstance/BackupRetentionPeriod=1")
}
