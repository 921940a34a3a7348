package repository_test

import (
	"os"
	"path/filepath"
	"testing"

	"howdah/internal/admin"
	"howdah/internal/model/backup"
	"howdah/internal/repository/store"
	"howdah/internal/state"
	"howdah/internal/testkit/s3test"
)

// A bucket of a real S3 server is a repository. Its secret is sealed, and nothing is added with a
// wrong one.
func TestABucketIsARepository(t *testing.T) {
	w, server := newWorld(t), s3test.Start(t)
	in := admin.RepositoryAddRequest{
		Name: "far", Endpoint: server.Endpoint, Bucket: s3test.Bucket, Prefix: "howdah", CA: server.CA, AccessKey: s3test.AccessKey, Secret: s3test.Secret,
	}
	wrong := in
	wrong.Secret = "wrong"
	w.refused(admin.VerbRepositoryAdd, wrong, admin.CodeRepositoryRefused, "access key")
	wrong = in
	wrong.Bucket = "nothing"
	w.refused(admin.VerbRepositoryAdd, wrong, admin.CodeRepositoryRefused)
	far := must[admin.Repository](w, admin.VerbRepositoryAdd, in)
	if far.Kind != "s3" || far.Prefix != "howdah/" || !far.Encrypted {
		t.Errorf("%+v", far)
	}
	if _, err := os.Stat(filepath.Join(server.Dir, s3test.Bucket, "howdah", store.MarkerKey)); err != nil {
		t.Error(err)
	}
	record, err := state.Get[backup.Repository](t.Context(), w.Store, state.Repository("far"))
	if err != nil || len(record.Value.Secret) == 0 || string(record.Value.Secret) == s3test.Secret {
		t.Errorf("%+v, %v", record.Value, err)
	}
	checked := must[admin.RepositoryCheckAnswer](w, admin.VerbRepositoryCheck, admin.RepositoryRequest{Name: "far"})
	if len(checked.Looks) != 1 || checked.Looks[0].Trouble != "" {
		t.Errorf("%+v", checked)
	}
	again := in
	again.Name, again.Prefix = "again", "howdah/inside"
	w.refused(admin.VerbRepositoryAdd, again, admin.CodeRepositoryRefused, "far is at this place")
	must[admin.RepositoryRemoveAnswer](w, admin.VerbRepositoryRemove, admin.RepositoryRemoveRequest{Name: "far", DeleteFiles: true})
	if _, err := os.Stat(filepath.Join(server.Dir, s3test.Bucket, "howdah", store.MarkerKey)); !os.IsNotExist(err) {
		t.Errorf("its marker stays: %v", err)
	}
}
