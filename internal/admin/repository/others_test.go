package repository_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/admin"
	"howdah/internal/repository/store"
	"howdah/internal/testkit/s3test"
)

// Two homes want one place, a directory and a bucket. The second one is refused with the reason, and
// changes nothing there, with and without a key of its own. With the first one's key it may have it.
func TestARepositoryOfAnotherHome(t *testing.T) {
	first, second := newWorld(t), newWorld(t)
	server := s3test.Start(t)
	bucket := admin.RepositoryAddRequest{
		Name: "far", Endpoint: server.Endpoint, Bucket: s3test.Bucket, Prefix: "howdah", CA: server.CA, AccessKey: s3test.AccessKey, Secret: s3test.Secret,
	}
	own := must[admin.Repository](second, admin.VerbRepositoryAdd, admin.RepositoryAddRequest{Name: "own", Path: second.dir("own")})
	wrong := must[admin.RepositoryKeyAnswer](second, admin.VerbRepositoryKeyExport, admin.RepositoryRequest{Name: own.Name}).Text
	for kind, in := range map[string]admin.RepositoryAddRequest{"a directory": {Name: "near", Path: first.dir("shared")}, "a bucket": bucket} {
		made := must[admin.Repository](first, admin.VerbRepositoryAdd, in)
		key := must[admin.RepositoryKeyAnswer](first, admin.VerbRepositoryKeyExport, admin.RepositoryRequest{Name: in.Name}).Text
		top := in.Path
		if top == "" {
			top = filepath.Join(server.Dir, s3test.Bucket, "howdah")
		}
		if err := os.MkdirAll(filepath.Join(top, "db-1", "backup"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, "db-1", "backup", "backup.info"), []byte(kind), 0o600); err != nil {
			t.Fatal(err)
		}
		before := content(t, top)
		second.refused(admin.VerbRepositoryAdd, in, admin.CodeRepositoryRefused, made.ID, "of the home "+first.Home.ID, "--adopt")
		in.Unencrypted = true
		second.refused(admin.VerbRepositoryAdd, in, admin.CodeRepositoryRefused, made.ID)
		in.Unencrypted, in.KeySecret = false, wrong
		second.refused(admin.VerbRepositoryAdd, in, admin.CodeRepositoryRefused, made.ID)
		in.Adopt = true
		second.refused(admin.VerbRepositoryAdd, in, admin.CodeRepositoryKey, "does not open it")
		second.refused(admin.VerbRepositoryKeyImport, admin.RepositoryKeyRequest{Name: "own", KeySecret: key}, admin.CodeRepositoryKey, "does not open it")
		if len(second.list()) != 2 {
			t.Errorf("%s: %+v", kind, second.list())
		}
		if after := content(t, top); after != before {
			t.Errorf("%s: it has %s\nafter %s", kind, after, before)
		}
		in.KeySecret = key
		if got := must[admin.Repository](second, admin.VerbRepositoryAdd, in); got.ID != made.ID {
			t.Errorf("%s: adopted as %+v", kind, got)
		}
		must[admin.RepositoryRemoveAnswer](second, admin.VerbRepositoryRemove, admin.RepositoryRemoveRequest{Name: in.Name})
		if after := content(t, top); after != before {
			t.Errorf("%s: adopted and left, it has %s\nafter %s", kind, after, before)
		}
	}
}

// content is what a directory has, but for probes.
func content(t *testing.T, top string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(top, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all.WriteString(strings.TrimPrefix(path, top) + ": " + string(text) + "\n")
		return err
	})
	if err != nil || !strings.Contains(all.String(), store.MarkerKey) {
		t.Fatalf("%s, %v", all.String(), err)
	}
	return all.String()
}

// An S3 server that answers each PUT with 403 becomes no repository, and the hint says which rights are
// missing.
func TestABucketThatMayOnlyBeRead(t *testing.T) {
	w, server := newWorld(t), s3test.Start(t, "--readonly")
	in := admin.RepositoryAddRequest{
		Name: "far", Endpoint: server.Endpoint, Bucket: s3test.Bucket, Prefix: "howdah", CA: server.CA, AccessKey: s3test.AccessKey, Secret: s3test.Secret,
	}
	w.refused(admin.VerbRepositoryAdd, in, admin.CodeRepositoryRefused, "cannot be written to", "read, write and delete objects")
	if left, err := os.ReadDir(filepath.Join(server.Dir, s3test.Bucket)); err != nil || len(left) > 0 || len(w.list()) != 1 {
		t.Errorf("it left %v, %v, and %+v", left, err, w.list())
	}
}
