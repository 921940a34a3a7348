package repository_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/client/testserver"
	"howdah/internal/identity/repository"
	"howdah/internal/model/backup"
	"howdah/internal/model/spec"
	"howdah/internal/repository/store"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

// world is a home on one machine, whose hosts cannot be asked.
type world struct {
	*testing.T
	*testserver.Server
	top string // of directories
}

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{t, testserver.Start(t, testserver.Options{NoHosts: true, Permanent: true}), ""}
	var err error
	if w.top, err = filepath.EvalSymlinks(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if len(w.list()) == 0 {
			return errors.New("there is no default repository")
		}
		return nil
	})
	return w
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

func (w world) list() []admin.Repository {
	w.Helper()
	return must[admin.RepositoryListAnswer](w, admin.VerbRepositoryList, admin.Nothing{}).Repositories
}

func (w world) dir(name string) string {
	w.Helper()
	dir := filepath.Join(w.top, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.Fatal(err)
	}
	return dir
}

func (w world) codes() (codes []string) {
	w.Helper()
	for _, p := range must[admin.Status](w, admin.VerbStatus, admin.Nothing{}).Problems {
		codes = append(codes, p.Code)
	}
	return codes
}

func (w world) put(ops ...state.Op) {
	w.Helper()
	if _, err := w.Store.Commit(context.Background(), ops...); err != nil {
		w.Fatal(err)
	}
}

func TestTheDefaultRepository(t *testing.T) {
	w := newWorld(t)
	all := w.list()
	if len(all) != 1 || all[0].Name != "default" || !all[0].Default || !all[0].Encrypted || all[0].Path != filepath.Join(w.Home.Dir, "repository") {
		t.Fatalf("%+v", all)
	}
	info, err := os.Stat(all[0].Path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	shown := must[admin.Repository](w, admin.VerbRepositoryShow, admin.RepositoryRequest{Name: "default"})
	if shown.Trouble != "" || shown.Size == 0 || shown.Free == 0 || shown.ID != all[0].ID {
		t.Errorf("%+v", shown)
	}
	if slices.Contains(w.codes(), admin.ProblemKeyAtHome) {
		t.Error("the key of an empty repository is missed")
	}
	w.put(state.Put(state.Backup("db-1", "default", "20261124-1F"), backup.Backup{Database: "db-1", Repository: "default", Label: "20261124-1F", Stored: 7}))
	if codes := w.codes(); !slices.Contains(codes, admin.ProblemKeyAtHome) {
		t.Errorf("%v", codes)
	}
	answer := must[admin.RepositoryKeyAnswer](w, admin.VerbRepositoryKeyExport, admin.RepositoryRequest{Name: "default"})
	key, err := repository.Parse(answer.Text)
	if err != nil || key.ID != all[0].ID {
		t.Errorf("%q: %v", answer.Text, err)
	}
	opened, err := store.OpenDirectory(all[0].Path, all[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := store.ReadMarker(t.Context(), opened); err != nil || m.Home != w.Home.ID || !repository.Proved(key.Key, m.ID, m.Proof) {
		t.Errorf("%+v, %v", m, err)
	}
	if slices.Contains(w.codes(), admin.ProblemKeyAtHome) || w.list()[0].Exported.IsZero() || w.list()[0].Stored != 7 {
		t.Errorf("after the key was exported: %v, %+v", w.codes(), w.list())
	}
	w.refused(admin.VerbRepositoryRemove, admin.RepositoryRemoveRequest{Name: "default"}, admin.CodeRepositoryInUse, "db-1", "1 backups")
}

func TestRepositoriesAreAddedAndRemoved(t *testing.T) {
	w := newWorld(t)
	add := func(name string, change func(*admin.RepositoryAddRequest)) admin.RepositoryAddRequest {
		in := admin.RepositoryAddRequest{Name: name, Path: w.dir(name)}
		if change != nil {
			change(&in)
		}
		return in
	}
	if got := must[admin.Repository](w, admin.VerbRepositoryAdd, add("far", func(in *admin.RepositoryAddRequest) { in.DryRun, in.Copies = true, true })); !got.Copies || got.Default {
		t.Errorf("%+v", got)
	}
	if left, err := os.ReadDir(filepath.Join(w.top, "far")); err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool { return e.Name() == store.MarkerKey }) || len(w.list()) != 1 {
		t.Errorf("a dry run leaves %v, %v", left, err)
	}
	far := must[admin.Repository](w, admin.VerbRepositoryAdd, add("far", func(in *admin.RepositoryAddRequest) { in.Copies = true }))
	plain := must[admin.Repository](w, admin.VerbRepositoryAdd, add("plain", func(in *admin.RepositoryAddRequest) { in.Unencrypted = true }))
	if !far.Encrypted || plain.Encrypted || far.ID == plain.ID {
		t.Errorf("%+v, %+v", far, plain)
	}
	w.refused(admin.VerbRepositoryAdd, add("far", nil), admin.CodeRepositoryExists)
	w.refused(admin.VerbRepositoryAdd, admin.RepositoryAddRequest{Name: "again", Path: far.Path}, admin.CodeRepositoryRefused, "far is at this place")
	w.refused(admin.VerbRepositoryAdd, admin.RepositoryAddRequest{Name: "inside", Path: w.dir("far/inside")}, admin.CodeRepositoryRefused, "far is at this place")
	w.refused(admin.VerbRepositoryAdd, admin.RepositoryAddRequest{Name: "home", Path: w.Home.Dir}, admin.CodeRepositoryRefused)
	w.refused(admin.VerbRepositoryAdd, admin.RepositoryAddRequest{Name: "lost", Path: filepath.Join(w.top, "lost")}, admin.CodeRepositoryRefused, "make it")
	w.refused(admin.VerbRepositoryAdd, add("Bad_Name", nil), admin.CodeInvalidRequest)
	w.refused(admin.VerbRepositoryAdd, admin.RepositoryAddRequest{Name: "none"}, admin.CodeInvalidRequest, "exactly one")
	w.refused(admin.VerbRepositoryAdd, admin.RepositoryAddRequest{Name: "s3", Endpoint: "ftp://x", Bucket: "b-1", AccessKey: "k", Secret: "s"}, admin.CodeInvalidRequest, "URL")
	w.refused(admin.VerbRepositoryAdd, admin.RepositoryAddRequest{Name: "s3", Endpoint: "https://x", Bucket: "b-1", AccessKey: "k"}, admin.CodeInvalidRequest, "secret")
	w.refused(admin.VerbRepositoryAdd, add("full", func(in *admin.RepositoryAddRequest) {
		if err := os.WriteFile(filepath.Join(in.Path, "photo.jpg"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}), admin.CodeRepositoryRefused, "photo.jpg", "empty")

	// What is to be encrypted is backed up to no place in the clear.
	w.put(state.Put(state.Instance("1", "us-east-1", "secret"), spec.Instance{Common: spec.Common{Name: "secret", ResourceID: "db-2", StorageKey: "key-1"}}))
	w.refused(admin.VerbRepositoryDefault, admin.RepositoryRequest{Name: "plain"}, admin.CodeRepositoryRefused, "plain encrypts nothing", "the storage of secret is encrypted")
	w.refused(admin.VerbRepositoryAdd, add("bare", func(in *admin.RepositoryAddRequest) { in.Unencrypted, in.Default = true, true }), admin.CodeRepositoryRefused, "the storage of secret")
	must[admin.Repository](w, admin.VerbRepositoryAdd, add("beside", func(in *admin.RepositoryAddRequest) { in.Unencrypted = true }))
	must[admin.RepositoryRemoveAnswer](w, admin.VerbRepositoryRemove, admin.RepositoryRemoveRequest{Name: "beside"})
	w.put(state.Delete(state.Instance("1", "us-east-1", "secret")))

	must[admin.Repository](w, admin.VerbRepositoryDefault, admin.RepositoryRequest{Name: "plain"})
	for _, r := range w.list() {
		if r.Default != (r.Name == "plain") {
			t.Errorf("%+v", r)
		}
	}
	w.refused(admin.VerbRepositoryRemove, admin.RepositoryRemoveRequest{Name: "plain"}, admin.CodeRepositoryInUse, "repository default")
	w.refused(admin.VerbRepositoryKeyExport, admin.RepositoryRequest{Name: "plain"}, admin.CodeInvalidRequest, "no key")
	w.refused(admin.VerbRepositoryShow, admin.RepositoryRequest{Name: "../x"}, admin.CodeRepositoryNotFound)

	checked := must[admin.RepositoryCheckAnswer](w, admin.VerbRepositoryCheck, admin.RepositoryRequest{Name: "far"})
	if len(checked.Looks) != 1 || checked.Looks[0].Trouble != "" {
		t.Errorf("%+v", checked)
	}
	must[admin.RepositoryRemoveAnswer](w, admin.VerbRepositoryRemove, admin.RepositoryRemoveRequest{Name: "far", DryRun: true})
	must[admin.RepositoryRemoveAnswer](w, admin.VerbRepositoryRemove, admin.RepositoryRemoveRequest{Name: "far"})
	if _, err := os.Stat(filepath.Join(far.Path, store.MarkerKey)); err != nil {
		t.Errorf("its files went with it: %v", err)
	}
	must[admin.Repository](w, admin.VerbRepositoryDefault, admin.RepositoryRequest{Name: "default"})
	if got := must[admin.RepositoryRemoveAnswer](w, admin.VerbRepositoryRemove, admin.RepositoryRemoveRequest{Name: "plain", DeleteFiles: true}); got.Objects != 0 {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(plain.Path, store.MarkerKey)); !os.IsNotExist(err) {
		t.Errorf("its marker stays: %v", err)
	}
}

// A repository that a home forgot, or that is of another home, is taken with its key, and with no
// other.
func TestARepositoryIsAdopted(t *testing.T) {
	w := newWorld(t)
	in := admin.RepositoryAddRequest{Name: "far", Path: w.dir("far")}
	far := must[admin.Repository](w, admin.VerbRepositoryAdd, in)
	near := must[admin.Repository](w, admin.VerbRepositoryAdd, admin.RepositoryAddRequest{Name: "near", Path: w.dir("near")})
	key := must[admin.RepositoryKeyAnswer](w, admin.VerbRepositoryKeyExport, admin.RepositoryRequest{Name: "far"}).Text
	wrong := must[admin.RepositoryKeyAnswer](w, admin.VerbRepositoryKeyExport, admin.RepositoryRequest{Name: "near"}).Text
	must[admin.RepositoryRemoveAnswer](w, admin.VerbRepositoryRemove, admin.RepositoryRemoveRequest{Name: "far"})
	opened, err := store.OpenDirectory(far.Path, far.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened.Put(t.Context(), "db-1/backup.info", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	w.refused(admin.VerbRepositoryAdd, in, admin.CodeRepositoryRefused, far.ID, "--adopt")
	in.Adopt = true
	w.refused(admin.VerbRepositoryAdd, in, admin.CodeRepositoryKey, "its key is needed", "--key-file")
	in.KeySecret = wrong
	w.refused(admin.VerbRepositoryAdd, in, admin.CodeRepositoryKey, "does not open it")
	in.KeySecret = strings.Replace(key, "check: ", "check: A", 1)
	w.refused(admin.VerbRepositoryAdd, in, admin.CodeRepositoryKey, "cannot be read")
	in.KeySecret = key
	if again := must[admin.Repository](w, admin.VerbRepositoryAdd, in); again.ID != far.ID || !again.Encrypted {
		t.Errorf("%+v", again)
	}
	if got := must[admin.RepositoryKeyAnswer](w, admin.VerbRepositoryKeyExport, admin.RepositoryRequest{Name: "far"}).Text; got != key {
		t.Errorf("another key: %q", got)
	}
	w.refused(admin.VerbRepositoryAdd, admin.RepositoryAddRequest{Name: "no", Path: w.dir("no"), Adopt: true, KeySecret: key}, admin.CodeRepositoryRefused, "no repository to adopt")

	w.refused(admin.VerbRepositoryKeyImport, admin.RepositoryKeyRequest{Name: "near", KeySecret: key}, admin.CodeRepositoryKey, "does not open it")
	must[admin.Repository](w, admin.VerbRepositoryKeyImport, admin.RepositoryKeyRequest{Name: "near", KeySecret: wrong})
	record, err := state.Get[backup.Repository](t.Context(), w.Store, state.Repository("near"))
	if err != nil || record.Value.ID != near.ID {
		t.Fatal(err)
	}
	record.Value.Key[3] ^= 1
	w.put(state.Put(record.Key, record.Value))
	w.refused(admin.VerbRepositoryKeyExport, admin.RepositoryRequest{Name: "near"}, admin.CodeRepositoryKey, "key import")
	must[admin.Repository](w, admin.VerbRepositoryKeyImport, admin.RepositoryKeyRequest{Name: "near", KeySecret: wrong})
	if got := must[admin.RepositoryKeyAnswer](w, admin.VerbRepositoryKeyExport, admin.RepositoryRequest{Name: "near"}).Text; got != wrong {
		t.Errorf("another key: %q", got)
	}
}

func TestStatusesOfRefusals(t *testing.T) {
	for code, status := range map[string]int{admin.CodeRepositoryNotFound: http.StatusNotFound, admin.CodeRepositoryInUse: http.StatusConflict, admin.CodeRepositoryKey: http.StatusBadRequest} {
		if got := admin.NewError(code, "", "").Status; got != status {
			t.Errorf("%s: %d", code, got)
		}
	}
}
