package unpack

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/model/backup"
)

// entry is one of an archive. A directory ends in a slash, and a link is of a kind of its own.
type entry struct {
	name, text string
	kind       byte
}

// archive has a note and entries. files and size are what the note says.
func archive(t *testing.T, note backup.DownloadNote, entries ...entry) *bytes.Buffer {
	t.Helper()
	text, err := json.Marshal(note)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	for _, e := range append([]entry{{name: backup.DownloadNoteName, text: string(text)}}, entries...) {
		h := &tar.Header{Name: e.name, Typeflag: tar.TypeReg, Size: int64(len(e.text)), Mode: 0o777}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if e.kind != 0 {
			h.Typeflag, h.Linkname = e.kind, "/etc/passwd"
		}
		if err := out.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(out, e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func note(files int, size int64) backup.DownloadNote {
	return backup.DownloadNote{
		Form: backup.DataDirectory, Major: 15, Superuser: "rdsadmin", Logins: []string{"boss", `o"hare`, "/regexp", "rdsadmin"}, Databases: []string{"postgres", "shop"},
		Ready: backup.Ready{Files: files, Bytes: size},
	}
}

func open(t *testing.T, dir string) *Target {
	t.Helper()
	to, err := At(dir)
	if err == nil {
		err = to.Open()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(to.Close)
	return to
}

var about = About{Snapshot: "before-sale", Database: "orders", Taken: time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC), User: "alice"}

func quiet(int64) {}

func TestADataDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "taken")
	to := open(t, dir)
	// What an earlier fetch left that was cut off goes.
	first := archive(t, note(2, 8), entry{name: "data/PG_VERSION", text: "15\n"}, entry{name: "data/old", text: "of a"})
	if _, err := to.Unpack(io.MultiReader(io.LimitReader(first, int64(first.Len()-1024)), broken{}), 8, quiet); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	var seen int64
	got, err := to.Unpack(archive(t, note(3, 12),
		entry{name: "data/"}, entry{name: "data/base/"}, entry{name: "data/base/1"},
		entry{name: "data/PG_VERSION", text: "15\n"}, entry{name: "data/postgresql.conf", text: "evil = 1\n"}), 12, func(done int64) { seen = done })
	if err != nil || seen != 12 {
		t.Fatal(seen, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is there before all is: %v", err)
	}
	if err := to.Finish(*got, about); err != nil {
		t.Fatal(err)
	}
	var names []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has the mode %s: %v", path, info.Mode(), err)
		}
		if rest, err := filepath.Rel(dir, path); err == nil && !d.IsDir() {
			names = append(names, rest)
		}
		return nil
	})
	slices.Sort(names)
	if err != nil || strings.Join(names, " ") != "PG_VERSION README.howdah base/1 pg_hba.conf pg_ident.conf postgresql.auto.conf postgresql.conf" {
		t.Errorf("%v: %v", names, err)
	}
	text := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	if got := text("pg_ident.conf"); !strings.HasSuffix(got, "owner \"alice\" \"boss\"\nowner \"alice\" \"o\"\"hare\"\nowner \"alice\" \"rdsadmin\"\n") {
		t.Errorf("it has\n%s", got)
	}
	if conf := text("postgresql.conf"); strings.Contains(conf, "evil") || !strings.Contains(conf, "listen_addresses = ''") || strings.Contains(conf, "prepared") {
		t.Errorf("it has\n%s", conf)
	}
	if readme := text(ReadMe); !strings.Contains(readme, "pg_ctl -D "+dir+" ") || !strings.Contains(readme, " -U boss postgres") || !strings.Contains(readme, "No role has a password") || !strings.Contains(readme, "rds_tools") {
		t.Errorf("it says\n%s", readme)
	}
	if _, err := At(dir); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a second download to the place: %v", err)
	}
	left, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(left) != 1 {
		t.Errorf("beside it are %v, %v", left, err)
	}
}

var errBroken = errors.New("the line is cut")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

func TestADump(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's taken")
	to := open(t, dir)
	n := note(2, 9)
	n.Form, n.Dirs = backup.Dump, map[string]string{"shop": "databases/shop", "a b": "databases/2-a+b", "postgres": "databases/postgres"}
	got, err := to.Unpack(archive(t, n, entry{name: "data/databases/"}, entry{name: "data/databases/shop", text: "dump"}, entry{name: "data/globals.sql", text: "roles"}), 9, quiet)
	if err != nil {
		t.Fatal(err)
	}
	with := about
	with.Verifiers = true
	if err := to.Finish(*got, with); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, ReadMe))
	for _, line := range []string{"psql -U rdsadmin -f globals.sql postgres", "pg_restore -U rdsadmin -C -d postgres databases/shop", "pg_restore -U rdsadmin -d postgres databases/postgres", "'databases/2-a+b'", "SCRAM verifiers"} {
		if !strings.Contains(string(text), line) {
			t.Errorf("%v: it says nothing of %q:\n%s", err, line, text)
		}
	}
	text, err = os.ReadFile(filepath.Join(dir, "globals.sql"))
	if err != nil || !strings.HasPrefix(string(text), "SELECT current_user IN ('boss', 'o\"hare', '/regexp') AS howdah_self") || !strings.HasSuffix(string(text), "\nroles") {
		t.Errorf("the roles are %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "pg_hba.conf")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a dump has a pg_hba.conf: %v", err)
	}
}

// Whatever an archive says, nothing is written outside of the place.
func TestForeignArchives(t *testing.T) {
	for name, from := range map[string]io.Reader{
		"a name above":       archive(t, note(1, 1), entry{name: "data/../../x", text: "x"}),
		"an absolute name":   archive(t, note(1, 1), entry{name: "/etc/x", text: "x"}),
		"not below data":     archive(t, note(1, 1), entry{name: "x", text: "x"}),
		"a link":             archive(t, note(1, 1), entry{name: "data/x", kind: tar.TypeSymlink}),
		"a hard link":        archive(t, note(1, 1), entry{name: "data/x", kind: tar.TypeLink}),
		"a device":           archive(t, note(1, 1), entry{name: "data/x", kind: tar.TypeChar}),
		"the mark":           archive(t, note(1, 1), entry{name: "data/" + mark, text: "x"}),
		"a file twice":       archive(t, note(2, 2), entry{name: "data/x", text: "x"}, entry{name: "data/x", text: "x"}),
		"too few files":      archive(t, note(2, 1), entry{name: "data/x", text: "x"}),
		"too few bytes":      archive(t, note(1, 2), entry{name: "data/x", text: "x"}),
		"no archive":         strings.NewReader("<html>"),
		"nothing":            strings.NewReader(""),
		"without its sum":    io.MultiReader(archive(t, note(1, 1), entry{name: "data/x", text: "x"}), broken{}),
		"another first file": bytes.NewReader(archive(t, note(0, 0)).Bytes()[512:]),
	} {
		dir := filepath.Join(t.TempDir(), "taken")
		to := open(t, dir)
		if _, err := to.Unpack(from, 1, quiet); err == nil {
			t.Errorf("%s is taken", name)
		}
		to.Close()
		if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) > 0 {
			t.Errorf("%s leaves %v, %v", name, left, err)
		}
	}
}

// A download that was killed is in nobody's way; whatever else is there stays.
func TestWhatIsInTheWay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "taken")
	if err := errors.Join(os.Mkdir(dir+".part", 0o755), os.WriteFile(filepath.Join(dir+".part", "mine"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	to, err := At(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Open(); err == nil || !strings.Contains(err.Error(), "in the way") {
		t.Errorf("what somebody else has there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir+".part", "mine")); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir+".part", mark), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if _, err := os.Stat(filepath.Join(dir+".part", "mine")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a killed download left is there: %v", err)
	}
	if info, err := os.Stat(dir + ".part"); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	second, err := At(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Open(); err == nil || !strings.Contains(err.Error(), "another download") {
		t.Errorf("two at a time: %v", err)
	}
	if _, err := At(filepath.Join(dir, "no", "where")); err == nil || !strings.Contains(err.Error(), "make it first") {
		t.Errorf("nowhere: %v", err)
	}
}

// Nobody writes to a directory that another user has put in the way: its owner could have root write
// anywhere.
func TestADirectoryOfSomebodyElse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "taken")
	refused := func(what string) {
		t.Helper()
		to, err := At(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := to.Open(); err == nil || !strings.Contains(err.Error(), "not a directory of yours") {
			to.Close()
			t.Errorf("%s: %v", what, err)
		}
	}
	theirs := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(theirs, mark), nil, 0o600), os.Symlink(theirs, dir+".part")); err != nil {
		t.Fatal(err)
	}
	refused("a link")
	if os.Geteuid() != 0 {
		return // it cannot give a directory away
	}
	if err := errors.Join(os.Remove(dir+".part"), os.Mkdir(dir+".part", 0o700), os.WriteFile(filepath.Join(dir+".part", mark), nil, 0o600), os.Chown(dir+".part", 40001, 40001)); err != nil {
		t.Fatal(err)
	}
	refused("a directory")
}

// What cannot be put in its place at the end is refused before anything is fetched.
func TestAPlaceThatCannotBeTaken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := At(dir); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Errorf("a link: %v", err)
	}
}

func TestThereHasToBeRoom(t *testing.T) {
	to := open(t, filepath.Join(t.TempDir(), "taken"))
	if _, err := to.Unpack(archive(t, note(0, 0)), 1<<60, quiet); err == nil || !strings.Contains(err.Error(), "are free") {
		t.Errorf("no room: %v", err)
	}
}
