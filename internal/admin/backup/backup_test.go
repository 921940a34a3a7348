package backup_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/admin/client/testserver"
	"howdah/internal/model/backup"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

func ptr[T any](v T) *T { return &v }

// world is a home with a database, whose hosts pretend: they make no backups.
type world struct {
	*testing.T
	*testserver.Server
	id string // resource id of orders
}

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{T: t, Server: testserver.Start(t, testserver.Options{})}
	w.create("orders", 0)
	testkit.Eventually(t, 20*time.Second, func() error {
		out := must[admin.DatabaseAnswer](w, admin.VerbDatabase, admin.DatabaseRequest{Name: "orders"})
		if len(out.Databases) != 1 || out.Databases[0].Status != "available" {
			return fmt.Errorf("%+v", out)
		}
		w.id = out.Databases[0].ResourceID
		if len(must[admin.RepositoryListAnswer](w, admin.VerbRepositoryList, admin.Nothing{}).Repositories) == 0 {
			return errors.New("there is no default repository")
		}
		return nil
	})
	return w
}

func (w world) create(name string, retention int32) {
	w.Helper()
	in := &rds.CreateDBInstanceMessage{
		DBInstanceIdentifier: &name, Engine: ptr("postgres"), DBInstanceClass: ptr("db.t3.micro"), AllocatedStorage: ptr(int32(20)),
		MasterUsername: ptr("app"), MasterUserPassword: ptr("master-password-7"), BackupRetentionPeriod: &retention,
	}
	if err := w.Client.RDS(w.Context(), "CreateDBInstance", in, &rds.CreateDBInstanceResult{}); err != nil {
		w.Fatal(err)
	}
}

func (w world) retain(days int32) {
	w.Helper()
	in := &rds.ModifyDBInstanceMessage{DBInstanceIdentifier: ptr("orders"), BackupRetentionPeriod: &days, ApplyImmediately: ptr(true)}
	if err := w.Client.RDS(w.Context(), "ModifyDBInstance", in, &rds.ModifyDBInstanceResult{}); err != nil {
		w.Fatal(err)
	}
}

func must[Out any](w world, verb string, in any) Out {
	w.Helper()
	return testserver.Must[Out](w.T, w.Server, verb, in)
}

// refused checks that a call is refused with a code, and with words in the message or the hint.
func (w world) refused(verb string, in any, code string, words ...string) {
	w.Helper()
	_ = testserver.Refused(w.T, w.Server, verb, in, code, words...)
}

func (w world) put(ops ...state.Op) {
	w.Helper()
	if _, err := w.Store.Commit(context.Background(), ops...); err != nil {
		w.Fatal(err)
	}
}

func (w world) backup(id, label string, stop time.Time, needs ...string) {
	w.Helper()
	b := backup.Backup{
		Database: id, Repository: "default", Label: label, Kind: backup.Full, Needs: needs, Major: 15, Start: stop, Stop: stop, Size: 100, Stored: 40, Operation: "of-" + label,
	}
	w.put(state.Put(state.Backup(id, "default", label), b))
}

func (w world) snapshot(id, name, label string) {
	w.Helper()
	i := spec.Instance{}
	i.Name = "old"
	s := backup.Snapshot{
		Scope: spec.Scope{Account: "123456789012", Region: "us-east-1"}, Name: name, State: backup.Available, Instance: &i, Database: id, Repository: "default",
		Label: label, Asked: time.Now(), Taken: time.Now(), Done: time.Now(), Tags: []spec.Tag{},
	}
	w.put(state.Put(state.Snapshot(s.Account, s.Region, name), s))
}

func TestBackups(t *testing.T) {
	w := newWorld(t)
	if got := must[admin.BackupsAnswer](w, admin.VerbBackups, admin.BackupsRequest{}); got.Backups == nil || len(got.Backups) != 0 {
		t.Errorf("%+v", got)
	}
	w.refused(admin.VerbBackups, admin.BackupsRequest{Name: "nobody"}, admin.CodeDatabaseNotFound, "nobody", "howdah db list")
	w.refused(admin.VerbBackupShow, admin.BackupsRequest{Name: "cluster/orders"}, admin.CodeDatabaseNotFound)
	w.refused(admin.VerbBackupDrill, admin.BackupBeginRequest{Name: "nobody", ID: "drill-1"}, admin.CodeDatabaseNotFound)

	// Of a database that is no more a snapshot tells the name, and which backups it needs.
	now := time.Now().UTC()
	w.backup("db-GONE", "F", now.Add(-2*time.Hour))
	w.backup("db-GONE", "F_I", now.Add(-time.Hour), "F")
	w.snapshot("db-GONE", "last", "F_I")
	w.backup(w.id, "G", now)
	w.put(state.Put(state.Drill(w.id), backup.DrillRecord{
		Database: w.id, Repository: "default", Operation: "drill-0", Began: now, Ended: now, Failed: "it is damaged: a page",
		Drilled: backup.Drilled{Label: "G", Faults: 1, Damaged: []string{"a page"}},
	}))
	var lines []string
	for _, b := range must[admin.BackupsAnswer](w, admin.VerbBackups, admin.BackupsRequest{}).Backups {
		lines = append(lines, fmt.Sprintf("%s %s %t %s", b.Database, b.Label, b.Deleted, strings.Join(b.Snapshots, ",")))
	}
	if got := strings.Join(lines, "; "); got != "old F_I true last; old F true last; orders G false " {
		t.Errorf("backups: %s", got)
	}
	for name, want := range map[string]int{"Orders": 1, "old": 2, "db-gone": 2, "instance/orders": 1, w.id: 1} {
		if got := must[admin.BackupsAnswer](w, admin.VerbBackups, admin.BackupsRequest{Name: name}).Backups; len(got) != want {
			t.Errorf("of %s: %+v", name, got)
		}
	}
	if all := must[admin.SnapshotsAnswer](w, admin.VerbSnapshots, admin.BackupsRequest{}).Snapshots; len(all) != 1 || all[0].Database != "old" || all[0].Label != "F_I" {
		t.Errorf("%+v", all)
	}
	if all := must[admin.DrillsAnswer](w, admin.VerbDrills, admin.BackupsRequest{Name: "orders"}).Drills; len(all) != 1 || all[0].Operation != "drill-0" || all[0].Database != "orders" {
		t.Errorf("%+v", all)
	}
	got := must[admin.BackupStatus](w, admin.VerbBackupShow, admin.BackupsRequest{Name: "orders"})
	if got.Repository != "default" || got.Short.Count != 1 || got.Newest == nil || !got.Short.Restorable.IsZero() || got.Archive != admin.ArchiveUnknown || got.Drill == nil {
		t.Errorf("%+v", got)
	}
	shown := must[admin.DatabaseAnswer](w, admin.VerbDatabase, admin.DatabaseRequest{Name: "orders"})
	if d := shown.Databases[0].Backups; d == nil || d.Count != 1 || d.Failed == "" || !d.Restorable.IsZero() {
		t.Errorf("%+v", d)
	}
	var codes []string
	for _, p := range shown.Problems {
		codes = append(codes, p.Code)
	}
	if strings.Join(codes, " ") != admin.ProblemDrill {
		t.Errorf("problems %v", codes)
	}
}

func TestADrillIsBegunOnce(t *testing.T) {
	w := newWorld(t)
	in := admin.BackupBeginRequest{Name: "orders", ID: "drill-orders-1"}
	w.refused(admin.VerbBackupDrill, in, admin.CodeBackupRefused, "no backup of orders", "howdah backup now orders")
	w.refused(admin.VerbBackupDrill, admin.BackupBeginRequest{Name: "orders", ID: "auto-1"}, admin.CodeInvalidRequest, "drill-")
	w.refused(admin.VerbBackupDrill, admin.BackupBeginRequest{Name: "orders", ID: "drill-A/b"}, admin.CodeInvalidRequest)
	w.backup(w.id, "F", time.Now().UTC())
	first := must[admin.BackupBegun](w, admin.VerbBackupDrill, in)
	if first.Operation != in.ID || first.Database != "orders" || first.ResourceID != w.id || first.Kind != backup.Drill.Name {
		t.Errorf("%+v", first)
	}
	if again := must[admin.BackupBegun](w, admin.VerbBackupDrill, in); again != first {
		t.Errorf("again: %+v, first %+v", again, first)
	}
	r, err := state.Get[operation.Record](t.Context(), w.Store, state.Operation(in.ID))
	if err != nil || !strings.Contains(string(r.Value.Args), `"asked":true`) || r.Value.About.Database != w.id {
		t.Errorf("%+v, %v", r.Value, err)
	}
	w.refused(admin.VerbBackupDrill, admin.BackupBeginRequest{Name: "orders", ID: "drill-orders-2"}, admin.CodeBackupRefused, "already", "howdah operations show drill-orders-1")
	w.create("shop", 0)
	w.refused(admin.VerbBackupDrill, admin.BackupBeginRequest{Name: "shop", ID: in.ID}, admin.CodeInvalidRequest, "another id")
	if got := must[admin.BackupStatus](w, admin.VerbBackupShow, admin.BackupsRequest{Name: "orders"}); got.Drilling != in.ID {
		t.Errorf("%+v", got)
	}
}

func TestABackupIsBegun(t *testing.T) {
	w := newWorld(t)
	in := admin.BackupBeginRequest{Name: "orders", ID: "backup-orders-1"}
	w.refused(admin.VerbBackupNow, in, admin.CodeBackupRefused, "nothing would keep", "snapshot")
	// No host says anything of the archive, so the keeper begins none by itself.
	w.retain(1)
	made := must[admin.BackupBegun](w, admin.VerbBackupNow, in)
	if again := must[admin.BackupBegun](w, admin.VerbBackupNow, in); again != made || made.Operation != in.ID {
		t.Errorf("again: %+v, first %+v", again, made)
	}
	r, err := state.Get[operation.Record](t.Context(), w.Store, state.Operation(in.ID))
	if err != nil || len(r.Value.Excludes) > 0 || !strings.Contains(string(r.Value.Args), `"automated":true`) || r.Value.Kind != backup.Take.Name {
		t.Errorf("%+v, %v", r.Value, err)
	}
	w.refused(admin.VerbBackupNow, admin.BackupBeginRequest{Name: "orders", ID: "backup-orders-2"}, admin.CodeBackupRefused, "already", "howdah operations show")
	w.refused(admin.VerbBackupDrill, admin.BackupBeginRequest{Name: "orders", ID: "drill-1"}, admin.CodeBackupRefused, "howdah operations show backup-orders-1")
}

func TestStatusesOfRefusals(t *testing.T) {
	for code, status := range map[string]int{admin.CodeDatabaseNotFound: http.StatusNotFound, admin.CodeBackupRefused: http.StatusConflict} {
		if got := admin.NewError(code, "", "").Status; got != status {
			t.Errorf("%s: %d", code, got)
		}
	}
}
