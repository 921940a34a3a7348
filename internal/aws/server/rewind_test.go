package server

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/admin"
	"howdah/internal/aws/wire"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// rewind asks for an instance to go back, by the command line's verb.
func (u *user) rewind(in admin.RewindRequest) (admin.RewindPlan, error) {
	u.Helper()
	c := u.operator()
	c.Scope = u.scope()
	return ask[admin.RewindPlan](u.T, u.world, c, admin.VerbRewind, in)
}

// back is a request for the state of so long ago.
func (u *user) back(ago time.Duration) admin.RewindRequest {
	return admin.RewindRequest{ID: "rewind-" + u.account[6:], Name: "db", RestorePoint: admin.RestorePoint{Time: u.ago(ago)}}
}

// hidden are the instances of the account that users do not see.
func (u *user) hidden() (all []spec.Instance) {
	for _, r := range state.LoadAll[spec.Instance](u.server.Cache, state.InstanceRoot+u.account+"/") {
		if r.Value.Hidden() {
			all = append(all, r.Value)
		}
	}
	return all
}

func TestADryRunOfARewindDoesNothing(t *testing.T) {
	u := newWorld(t).user(t)
	u.backups()
	backedUpDB(u)
	in := u.back(150 * time.Minute)
	in.DryRun = true
	p, err := u.rewind(in)
	if err != nil {
		t.Fatal(err)
	}
	db := u.instanceRecord("db")
	if p.ResourceID != db.ResourceID || p.FromID != db.ResourceID || !p.Until.Equal(*in.Time) || p.Retention != 7 || len(p.Hosts) != 1 || p.NextResourceID != "" || !p.DryRun {
		t.Errorf("%+v", p)
	}
	if lost := time.Duration(p.LostSeconds * float64(time.Second)).Round(time.Minute); lost != 150*time.Minute {
		t.Errorf("lost are %s", lost)
	}
	if !strings.HasPrefix(p.Snapshot, "db-before-rewind-") || u.now().UTC().Sub(p.Taken).Round(time.Minute) != 3*hour {
		t.Errorf("%+v", p)
	}
	if _, _, there := u.server.Cache.Raw(state.Operation(in.ID)); there || len(u.hidden()) > 0 {
		t.Error("the dry run made something")
	}
	u.try(with(showSnap, "DBSnapshotIdentifier="+p.Snapshot)).is(noSnapshot, "")
}

// One transaction makes the operation, the snapshot and the hidden instance, which nobody sees.
func TestARewindBegins(t *testing.T) {
	u := newWorld(t).user(t)
	u.backups()
	having(with(newDB, backed) + "&Tags.Tag.1.Key=team&Tags.Tag.1.Value=blue&MultiAZ=true")(u)
	u.backedUp("db", 3*hour, hour)
	in := u.back(2 * hour)
	p, err := u.rewind(in)
	if err != nil {
		t.Fatal(err)
	}
	db, hidden := u.instanceRecord("db"), u.hidden()
	if len(hidden) != 1 {
		t.Fatalf("hidden are %+v", hidden)
	}
	h := hidden[0]
	if h.ResourceID != p.NextResourceID || h.MadeBy != in.ID || h.Expects != db.Address || h.Address == db.Address || h.Address == "" || !h.MultiAZ || h.Class != db.Class ||
		h.Verifier != db.Verifier || h.PasswordSerial != db.PasswordSerial || len(h.Tags) != 1 || h.Origin == nil || !h.Origin.Until.Equal(*in.Time) || h.Change != 0 {
		t.Errorf("the hidden one is %+v", h)
	}
	r, err := state.Load[operation.Record](u.server.Cache, state.Operation(in.ID))
	if err != nil || r.Value.Kind != backup.Rewind.Name || r.Value.About.Database != db.ResourceID {
		t.Errorf("%+v, %v", r.Value, err)
	}
	u.do("DescribeDBInstances").has("DBInstances/DBInstance#1", "DBInstances/DBInstance/DBInstanceIdentifier=db", "DBInstances/DBInstance/DBInstanceStatus=available")
	u.try("DescribeDBInstances?DBInstanceIdentifier="+h.Name).is("DBInstanceNotFound", "")
	u.try(with(dropDB, "DBInstanceIdentifier="+h.Name)).is("DBInstanceNotFound", "")
	u.do(with(showSnap, "DBSnapshotIdentifier="+p.Snapshot)).has("DBSnapshots/DBSnapshot/Status=creating")
	if told := u.eventsOf("db-instance", "db"); !strings.Contains(told, "goes back to "+p.To) {
		t.Errorf("the events say %s", told)
	}
	// Whoever sends the request again begins nothing more.
	again, err := u.rewind(in)
	if err != nil || again.Operation != in.ID || len(u.hidden()) != 1 {
		t.Errorf("again: %+v, %v", again, err)
	}
	excluded := "(rewind)"
	u.settleBackups() // the snapshot excludes a delete, too
	for _, call := range []string{dropDB, "ModifyDBInstance?DBInstanceIdentifier=db&MultiAZ=false&ApplyImmediately=true", "StopDBInstance?DBInstanceIdentifier=db", "RebootDBInstance?DBInstanceIdentifier=db",
		"CreateDBInstanceReadReplica?DBInstanceIdentifier=copy&SourceDBInstanceIdentifier=db"} {
		u.try(call).is(badState, excluded)
	}
	other := in
	other.ID += "-2"
	if _, err := u.rewind(other); err == nil || !strings.Contains(err.Error(), excluded) {
		t.Errorf("a second one: %v", err)
	}
	u.do("AddTagsToResource?ResourceName=arn:aws:rds:us-east-1:{account}:db:db&Tags.Tag.1.Key=a&Tags.Tag.1.Value=b")
	u.do("CreateDBSnapshot?DBInstanceIdentifier=db&DBSnapshotIdentifier=meanwhile")
}

func TestRewindsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		setup func(*user)
		in    func(*user, *admin.RewindRequest)
		want  []string
	}{
		"nobody":        {backedUpDB, func(_ *user, in *admin.RewindRequest) { in.Name = "nobody" }, []string{"nobody", "howdah db list"}},
		"a cluster":     {having(newCluster, newMember), func(_ *user, in *admin.RewindRequest) { in.Name = "aura" }, []string{"is a DB cluster", "--from cluster/aura"}},
		"of a cluster":  {having(newCluster, newMember), func(_ *user, in *admin.RewindRequest) { in.Name = "aura-1" }, []string{"instance of a DB cluster", "--from cluster/aura "}},
		"a bad id":      {backedUpDB, func(_ *user, in *admin.RewindRequest) { in.ID = "drill-1" }, []string{"begins with rewind-"}},
		"the newest":    {backedUpDB, func(_ *user, in *admin.RewindRequest) { in.RestorePoint = admin.RestorePoint{Latest: true} }, []string{"newest data already"}},
		"the future":    {backedUpDB, func(u *user, in *admin.RewindRequest) { in.Time = u.ago(-hour) }, []string{"later than", "howdah backup show db"}},
		"too long ago":  {backedUpDB, func(u *user, in *admin.RewindRequest) { in.Time = u.ago(9 * hour) }, []string{"earlier than"}},
		"no moment":     {backedUpDB, func(_ *user, in *admin.RewindRequest) { in.Time = nil }, []string{"Exactly one moment"}},
		"a bad name":    {backedUpDB, func(_ *user, in *admin.RewindRequest) { in.KeepAs = "1" }, []string{"snapshot"}},
		"a stopped one": {stoppedDB, nil, []string{"stopped"}},
		"with a replica": {func(u *user) {
			backedUpDB(u)
			having("CreateDBInstanceReadReplica?DBInstanceIdentifier=copy&SourceDBInstanceIdentifier=db")(u)
		}, nil, []string{"read replicas (copy)", "promote"}},
		"a replica": {func(u *user) {
			backedUpDB(u)
			having("CreateDBInstanceReadReplica?DBInstanceIdentifier=copy&SourceDBInstanceIdentifier=db")(u)
		}, func(_ *user, in *admin.RewindRequest) { in.Name = "copy" }, []string{"read replica", "source"}},
		"data of somebody else": {func(u *user) {
			backedUpDB(u)
			having(with(newDB, "DBInstanceIdentifier=other", "MasterUsername=chief"), "CreateDBSnapshot?DBInstanceIdentifier=other&DBSnapshotIdentifier=theirs")(u)
		}, func(_ *user, in *admin.RewindRequest) { in.RestorePoint = admin.RestorePoint{Snapshot: "theirs"} }, []string{"master user is boss", "chief"}},
		"larger data": {func(u *user) {
			backedUpDB(u)
			having(with(newDB, "DBInstanceIdentifier=other", "AllocatedStorage=40"), "CreateDBSnapshot?DBInstanceIdentifier=other&DBSnapshotIdentifier=theirs")(u)
		}, func(_ *user, in *admin.RewindRequest) { in.RestorePoint = admin.RestorePoint{Snapshot: "theirs"} }, []string{"20 GiB", "40 GiB"}},
		"no backups": {having(with(newDB, "BackupRetentionPeriod=0")), nil, []string{"no automated backups", "howdah snapshot list"}},
	} {
		t.Run(name, func(t *testing.T) {
			u := newWorld(t).user(t)
			u.backups()
			c.setup(u)
			in := u.back(2 * hour)
			if c.in != nil {
				c.in(u, &in)
			}
			_, err := u.rewind(in)
			if err == nil {
				t.Fatal("it began")
			}
			text := err.Error()
			if e, ok := errors.AsType[*admin.Error](err); ok {
				text += " " + e.Hint
			} else if e, ok := errors.AsType[*wire.Error](err); ok {
				text += " " + e.Hint
			}
			for _, word := range c.want {
				if !strings.Contains(text, word) {
					t.Errorf("%s says nothing of %q", text, word)
				}
			}
			if len(u.hidden()) > 0 {
				t.Error("something was made")
			}
		})
	}
}

func stoppedDB(u *user) {
	u.Helper()
	backedUpDB(u)
	having("StopDBInstance?DBInstanceIdentifier=db")(u)
}

// The data of a snapshot, also of one that had the place before; the password is that of now.
func TestARewindToASnapshot(t *testing.T) {
	u := newWorld(t).user(t)
	u.backups()
	having(newDB, newSnap)(u)
	u.see("db", func(s *scene) {
		s.each(func(r *member.Report) { r.LSN = 3 << 24 })
	})
	own := admin.RewindRequest{ID: "rewind-own", Name: "db", RestorePoint: admin.RestorePoint{Snapshot: "snap"}, DryRun: true}
	p, err := u.rewind(own)
	if err != nil || p.To != "the snapshot snap" || p.LostBytes != 1<<24 || p.LostAtMost {
		t.Errorf("%+v, %v", p, err)
	}
	having(dropDB, newDB)(u)
	other := own
	other.ID, other.DryRun = "rewind-other", false
	p, err = u.rewind(other)
	if err != nil || p.FromID == p.ResourceID || p.LostBytes != -1 {
		t.Fatalf("%+v, %v", p, err)
	}
	db, h := u.instanceRecord("db"), u.hidden()[0]
	if h.PasswordSerial <= db.PasswordSerial || h.Verifier != db.Verifier {
		t.Errorf("the password of the snapshot may stay: %+v", h)
	}
}

func TestAnEncryptedOneGoesBackEncrypted(t *testing.T) {
	u := newWorld(t).user(t)
	u.backups()
	u.encrypts("a", "b", "c")
	having(with(newDB, backed, "StorageEncrypted=true"))(u)
	u.backedUp("db", 3*hour)
	p, err := u.rewind(u.back(2 * hour))
	if err != nil {
		t.Fatal(err)
	}
	if db, h := u.instanceRecord("db"), u.hidden()[0]; h.StorageKey == "" || h.StorageKey != db.StorageKey {
		t.Errorf("%q, %q", db.StorageKey, h.StorageKey)
	}
	if _, _, there := u.server.Cache.Raw(state.StorageKey(p.NextResourceID)); !there {
		t.Error("it has no key of its own")
	}
}

// While it is closed, an instance is being modified, and takes no requests.
func TestWhatAClosedInstanceShows(t *testing.T) {
	u := newWorld(t).user(t)
	u.backups()
	backedUpDB(u)
	u.begin("rewind-1", "db", nil)
	i := u.instanceRecord("db")
	i.ClosedBy = "rewind-1"
	u.put(state.Put(state.Instance(i.Account, i.Region, i.Name), i))
	u.do(showDB).has("DBInstances/DBInstance/DBInstanceStatus=modifying", "DBInstances/DBInstance/Endpoint/Port#1")
	u.try("CreateDBSnapshot?DBInstanceIdentifier=db&DBSnapshotIdentifier=late").is(badState, "modifying")
}

// What an operation left that was abandoned, or that was under way when the home was restored, is a
// user's from then on.
func TestWhatARewindLeaves(t *testing.T) {
	u := newWorld(t).user(t)
	u.backups()
	backedUpDB(u)
	p, err := u.rewind(u.back(2 * hour))
	if err != nil {
		t.Fatal(err)
	}
	i := u.instanceRecord("db")
	i.ClosedBy = p.Operation
	u.put(state.Put(state.Instance(i.Account, i.Region, i.Name), i))
	u.server.rds.Upkeep.House().Keep(t.Context())
	if len(u.hidden()) != 1 || u.instanceRecord("db").ClosedBy == "" {
		t.Error("the operation is under way, and what is its own is taken from it")
	}
	r, err := state.Load[operation.Record](u.server.Cache, state.Operation(p.Operation))
	if err != nil {
		t.Fatal(err)
	}
	u.put(state.Put(r.Key, r.Value.Forget(u.now())))
	u.server.rds.Upkeep.House().Keep(t.Context())
	if err := u.server.client.Fresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	names := u.do("DescribeDBInstances").result().texts("DBInstances/DBInstance/DBInstanceIdentifier")
	if len(names) != 2 || !slices.Contains(names, "db") || !strings.HasPrefix(strings.Join(names, " "), "db db-rewind-") {
		t.Errorf("there are %v", names)
	}
	if u.instanceRecord("db").ClosedBy != "" {
		t.Error("it is closed")
	}
	having(with(dropDB, "DBInstanceIdentifier="+names[1]))(u)
}
