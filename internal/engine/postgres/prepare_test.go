package postgres

import (
	"context"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"howdah/internal/system/owner"
	"howdah/internal/testkit"
)

// testUser returns the user that PostgreSQL runs as in tests, as it refuses to run as root.
func testUser(t *testing.T) *owner.User {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		testkit.Missing(t, "the user postgres: run scripts/install")
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return &owner.User{Name: "postgres", UID: uid, GID: gid}
}

// ownedDir returns a directory that PostgreSQL's user may use. A test's own directory is in one
// that only root may enter.
func ownedDir(t *testing.T, u *owner.User) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "howdah-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if u != nil {
		if err := os.Chown(dir, u.UID, u.GID); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func newestInstall(t *testing.T) Install {
	t.Helper()
	all, err := Installed()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		testkit.Missing(t, "PostgreSQL: run scripts/install")
	}
	return all[0]
}

func TestPrepareMakesACleanClusterOfItsOwn(t *testing.T) {
	install, u := newestInstall(t), testUser(t)
	dir := ownedDir(t, u)
	ids := map[uint64]bool{}
	for _, name := range []string{"one", "two"} {
		data := filepath.Join(dir, name)
		if err := Prepare(t.Context(), install, u, data); err != nil {
			t.Fatal(err)
		}
		control, err := ReadControl(data)
		if err != nil {
			t.Fatal(err)
		}
		if !control.State.Clean() {
			t.Errorf("%s was left %s", name, control.State)
		}
		ids[control.SystemID] = true
	}
	if len(ids) != 2 {
		t.Error("two clusters with one system identifier")
	}
	out, err := run(t.Context(), u, nil, install.Program("pg_controldata"), filepath.Join(dir, "one"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "Data page checksum version:           1"; !strings.Contains(out, want) {
		t.Errorf("no checksums in:\n%s", out)
	}
}

func TestPrepareFindsErrorsOfTheSQL(t *testing.T) {
	install, u := newestInstall(t), testUser(t)
	data := filepath.Join(ownedDir(t, u), "x")
	if err := Prepare(t.Context(), install, u, data); err != nil {
		t.Fatal(err)
	}
	err := single(t.Context(), install, u, data, "", "postgres", "SELECT 1/0;\n\n")
	if !errors.Is(err, errBootstrap) && err == nil {
		t.Errorf("a failing statement: %v", err)
	}
	if err := Prepare(t.Context(), install, u, data); err == nil {
		t.Error("prepared over a cluster that exists")
	}
}

func TestPrepareEndsWithItsContext(t *testing.T) {
	install, u := newestInstall(t), testUser(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := Prepare(ctx, install, u, filepath.Join(ownedDir(t, u), "x")); err == nil {
		t.Error("went on after its context ended")
	}
}

func TestReadControlOfNothing(t *testing.T) {
	if _, err := ReadControl(t.TempDir()); !errors.Is(err, ErrNoData) {
		t.Errorf("%v, want ErrNoData", err)
	}
}

func TestPostmaster(t *testing.T) {
	cases := map[string]int{"1234\n/data\n": 1234, "-77\n": 77}
	for text, want := range cases {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "postmaster.pid"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Postmaster(dir); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	if got, err := Postmaster(t.TempDir()); got != 0 || err != nil {
		t.Errorf("no file: %d, %v", got, err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "postmaster.pid"), []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Postmaster(dir); err == nil {
		t.Error("junk was read")
	}
}

func TestTheLifeOfAServer(t *testing.T) {
	dir := t.TempDir()
	if got, err := Life(dir); got != "" || err != nil {
		t.Errorf("no file: %q, %v", got, err)
	}
	for text, want := range map[string]string{
		"31\n/data\n1790000000\n5432\n/run\n": "31 since 1790000000", "31\n/data\n1790000009\n5432\n": "31 since 1790000009", "31\n/data\n179": "", "": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, "postmaster.pid"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Life(dir); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func TestFindAndExtension(t *testing.T) {
	install := newestInstall(t)
	if _, err := Find(install.Major); err != nil {
		t.Error(err)
	}
	if _, err := Find(9); !errors.Is(err, ErrNoVersion) {
		t.Errorf("version 9: %v", err)
	}
	if !install.Extension("libpqwalreceiver") || install.Extension("no_such_module") {
		t.Error("wrong about installed modules")
	}
}
