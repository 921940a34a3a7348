package snapshot_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/admin/client/testserver"
	"howdah/internal/model/backup"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/state/format"
	"howdah/internal/testkit"
)

// world is a home with snapshots, whose hosts pretend: they copy nothing.
type world struct {
	*testing.T
	*testserver.Server
}

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{t, testserver.Start(t, testserver.Options{})}
	testkit.Eventually(t, 20*time.Second, func() error {
		var out admin.RepositoryListAnswer
		if err := w.Client.Admin(t.Context(), admin.VerbRepositoryList, admin.Nothing{}, &out); err != nil || len(out.Repositories) == 0 {
			return errors.Join(errors.New("there is no default repository"), err)
		}
		return nil
	})
	// Nobody opens these: that is for hosts.
	w.put(
		// The hosts say nothing of the records that they read.
		state.Put(state.Control("c1"), format.Said{Reads: format.Newest, Format: format.Newest, Release: "test"}),
		state.Put(state.Repository("far"), backup.Repository{Name: "far", ID: "repo-far", Kind: backup.Directory, Path: "/far", Key: []byte("sealed"), Copies: true}),
		state.Put(state.Repository("plain"), backup.Repository{Name: "plain", ID: "repo-plain", Kind: backup.Directory, Path: "/plain"}),
	)
	now := time.Now().UTC()
	for _, b := range []backup.Backup{
		{Label: "F", Kind: backup.Full, Stored: 40, Size: 100},
		{Label: "F_I", Kind: backup.Incremental, Needs: []string{"F"}, Stored: 2, Size: 110},
	} {
		b.Database, b.Repository, b.Major, b.Start, b.Stop, b.Operation = "db-GONE", "default", 15, now, now, "of-"+b.Label
		w.put(state.Put(state.Backup(b.Database, b.Repository, b.Label), b))
	}
	w.snapshot("last", nil)
	w.snapshot("broken", func(s *backup.Snapshot) { s.State, s.Reason = backup.Failed, "the repository is full" })
	return w
}

func (w world) put(ops ...state.Op) {
	w.Helper()
	if _, err := w.Store.Commit(context.Background(), ops...); err != nil {
		w.Fatal(err)
	}
}

func (w world) snapshot(name string, change func(*backup.Snapshot)) {
	w.Helper()
	i := spec.Instance{}
	i.Name, i.Scope = "old", w.scope()
	s := backup.Snapshot{
		Scope: i.Scope, Name: name, State: backup.Available, Instance: &i, Database: "db-GONE", Repository: "default", Label: "F_I",
		Asked: time.Now(), Taken: time.Now(), Done: time.Now(), Tags: []spec.Tag{{Key: "team", Value: "sales"}},
	}
	if change != nil {
		change(&s)
	}
	key := state.Snapshot(s.Account, s.Region, name)
	if s.Cluster != nil {
		key = state.ClusterSnapshot(s.Account, s.Region, name)
	}
	w.put(state.Put(key, s))
}

func (w world) copies(in admin.SnapshotCopyRequest) admin.SnapshotCopy {
	w.Helper()
	var out admin.SnapshotCopy
	if err := w.Client.Admin(w.Context(), admin.VerbSnapshotCopy, in, &out); err != nil {
		w.Fatalf("%+v: %v", in, err)
	}
	return out
}

// refuses checks that a copy is refused with a code, and with words in the message or the hint.
func (w world) refuses(in admin.SnapshotCopyRequest, code string, words ...string) {
	w.Helper()
	err := w.Client.Admin(w.Context(), admin.VerbSnapshotCopy, in, &admin.SnapshotCopy{})
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Code != code {
		w.Errorf("%+v: %v, want %s", in, err, code)
		return
	}
	for _, word := range words {
		if !strings.Contains(e.Message+"\n"+e.Hint, word) {
			w.Errorf("%+v: %q with %q says nothing of %q", in, e.Message, e.Hint, word)
		}
	}
}

func (w world) record(name string) (backup.Snapshot, error) {
	w.Helper()
	r, err := state.Get[backup.Snapshot](w.Context(), w.Store, state.Snapshot(w.scope().Account, w.scope().Region, name))
	return r.Value, err
}

func TestACopyIntoAnotherRepository(t *testing.T) {
	w := newWorld(t)
	in := admin.SnapshotCopyRequest{Snapshot: "Last", Name: "Last-Far", Repository: "far", DryRun: true}
	dry := w.copies(in)
	if dry.Bytes != 42 || dry.From != "last" || dry.FromRepository != "default" || dry.Snapshot.Name != "last-far" || dry.Snapshot.Repository != "far" || !dry.DryRun {
		t.Errorf("%+v", dry)
	}
	if _, err := w.record("last-far"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("a dry run copies: %v", err)
	}
	in.DryRun = false
	begun := w.copies(in)
	made, err := w.record("last-far")
	if err != nil || made.Repository != "far" || made.Part == "" || made.Operation != begun.Snapshot.Operation || len(made.Tags) != 1 || begun.Bytes != 42 {
		t.Errorf("%+v, %v; begun %+v", made, err, begun)
	}
	if begun.Snapshot.State != "copying" || !strings.HasSuffix(begun.Snapshot.CopyOf, ":snapshot:last") {
		t.Errorf("begun %+v", begun.Snapshot)
	}
	r, err := state.Get[operation.Record](t.Context(), w.Store, state.Operation(made.Operation))
	if err != nil || r.Value.Kind != backup.Copy.Name || r.Value.About.Database != made.Part {
		t.Errorf("%+v, %v", r.Value, err)
	}
	w.refuses(in, rds.ErrDBSnapshotAlreadyExists, "last-far", "choose another name")
	w.refuses(admin.SnapshotCopyRequest{Snapshot: "last-far", Name: "third"}, rds.ErrInvalidDBSnapshotState, "copying", "howdah snapshot show last-far")

	var far admin.Repository
	if err := w.Client.Admin(t.Context(), admin.VerbRepositoryShow, admin.RepositoryRequest{Name: "far"}, &far); err != nil {
		t.Fatal(err)
	}
	if len(far.Copied) != 1 || far.Copied[0].Snapshot != "last-far" || far.Copied[0].Database != "old" || far.Copied[0].State != "copying" {
		t.Errorf("the repository has %+v", far.Copied)
	}
}

func TestACopyWithinARepository(t *testing.T) {
	w := newWorld(t)
	made := w.copies(admin.SnapshotCopyRequest{Snapshot: "instance/last", Name: "second"})
	if made.Bytes != 0 || made.Snapshot.State != "available" || made.Snapshot.Repository != "default" || made.Snapshot.Label != "F_I" || made.Snapshot.Operation != "" {
		t.Errorf("%+v", made)
	}
	if r, err := w.record("second"); err != nil || r.Part != "" || r.Label != "F_I" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestRefusedCopies(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct {
		in    admin.SnapshotCopyRequest
		code  string
		words []string
	}{
		{admin.SnapshotCopyRequest{Snapshot: "nothing", Name: "x"}, rds.ErrDBSnapshotNotFound, []string{"nothing", "howdah snapshot list"}},
		{admin.SnapshotCopyRequest{Snapshot: "cluster/last", Name: "x"}, rds.ErrDBClusterSnapshotNotFound, []string{"last", "howdah snapshot list"}},
		{admin.SnapshotCopyRequest{Snapshot: "broken", Name: "x"}, rds.ErrInvalidDBSnapshotState, []string{"failed", "howdah snapshot show broken"}},
		{admin.SnapshotCopyRequest{Snapshot: "last", Name: "x", Repository: "nowhere"}, "InvalidParameterValue", []string{"nowhere", "howdah repository list"}},
		{admin.SnapshotCopyRequest{Snapshot: "last", Name: "x", Repository: "plain"}, "InvalidParameterCombination", []string{"encrypted", "default", "plain"}},
		{admin.SnapshotCopyRequest{Snapshot: "last", Name: "rds:x"}, "InvalidParameterValue", nil},
		{admin.SnapshotCopyRequest{Snapshot: "last", Name: ""}, "InvalidParameterValue", []string{"must not be blank"}},
		{admin.SnapshotCopyRequest{Snapshot: "", Name: "x"}, "InvalidParameterValue", []string{"must not be blank"}},
	} {
		w.refuses(test.in, test.code, test.words...)
	}
}

// Of two snapshots of one name, that of the instance is meant, unless the kind is said.
func TestKindsOfSnapshots(t *testing.T) {
	w := newWorld(t)
	c := spec.Cluster{}
	c.Name, c.Scope = "olds", w.scope()
	w.snapshot("last", func(s *backup.Snapshot) { s.Instance, s.Cluster = nil, &c })
	if got := w.copies(admin.SnapshotCopyRequest{Snapshot: "last", Name: "a"}).Snapshot; got.Kind != admin.KindInstance {
		t.Errorf("%+v", got)
	}
	if got := w.copies(admin.SnapshotCopyRequest{Snapshot: "cluster/last", Name: "a"}).Snapshot; got.Kind != admin.KindCluster || got.Database != "olds" {
		t.Errorf("%+v", got)
	}
}

// scope is that of the home's key.
func (w world) scope() spec.Scope {
	return spec.Scope{Account: w.Home.Account, Region: w.Home.Region}
}
