package pgpass

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func newFile(t *testing.T) File {
	t.Helper()
	dir := t.TempDir()
	return File{Path: filepath.Join(dir, "pgpass"), Lock: filepath.Join(dir, "lock")}
}

func read(t *testing.T, f File) string {
	t.Helper()
	text, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func entry(id, host, password string) Entry {
	return Entry{ResourceID: id, Host: host, Port: "5432", User: "app", Password: password}
}

func TestPutReplacesWhatHadTheAddress(t *testing.T) {
	f := newFile(t)
	for _, e := range []Entry{entry("db-1", "127.0.0.1", "one"), entry("db-2", "127.0.0.2", "two"), entry("db-3", "127.0.0.1", "three")} {
		if err := f.Put(e); err != nil {
			t.Fatal(err)
		}
	}
	want := "# howdah db-2\n127.0.0.2:5432:*:app:two\n# howdah db-3\n127.0.0.1:5432:*:app:three\n"
	if got := read(t, f); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if f.Has("db-1") || !f.Has("db-2") || !f.Has("db-3") {
		t.Error("Has does not know what is there")
	}
	info, err := os.Stat(f.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestKeepDropsTheDeadAndNothingElse(t *testing.T) {
	f := newFile(t)
	mine := "# my own\nother:5432:*:me:mine\n"
	if err := os.WriteFile(f.Path, []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, e := range []Entry{entry("db-1", "127.0.0.1", "one"), entry("db-2", "127.0.0.2", "two")} {
		if err := f.Put(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Keep(func(id string) bool { return id == "db-2" }); err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, f), mine+"# howdah db-2\n127.0.0.2:5432:*:app:two\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestKeepOfNothingMakesNoFile(t *testing.T) {
	f := newFile(t)
	if err := f.Keep(func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.Path); !os.IsNotExist(err) {
		t.Errorf("a file was made: %v", err)
	}
}

func TestLibpqsQuoting(t *testing.T) {
	f := newFile(t)
	odd := Entry{ResourceID: "db-1", Host: "h", Port: "5432", User: `a:b\c`, Password: `p:q\r`}
	if err := f.Put(odd); err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, f), "# howdah db-1\nh:5432:*:a\\:b\\\\c:p\\:q\\\\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	all, others, err := f.read()
	if err != nil || len(all) != 1 || len(others) != 0 || all[0] != odd {
		t.Errorf("read back %#v, %q, %v", all, others, err)
	}
}

func TestManyWritersLoseNothing(t *testing.T) {
	f := newFile(t)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			if err := f.Put(entry(fmt.Sprintf("db-%d", n), fmt.Sprintf("127.0.0.%d", n), "x")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for n := range 8 {
		if !f.Has(fmt.Sprintf("db-%d", n)) {
			t.Errorf("db-%d was lost", n)
		}
	}
}

func TestPasswordsDoNotPrint(t *testing.T) {
	e := entry("db-1", "h", "topsecret")
	if text := fmt.Sprintf("%v %+v %#v %s", e, e, e, e); strings.Contains(text, "topsecret") {
		t.Errorf("printed %s", text)
	}
}

func TestGenerate(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		p := Generate()
		if len(p) != passwordLength || strings.Trim(p, alphabet) != "" || seen[p] {
			t.Fatalf("password %q", p)
		}
		seen[p] = true
	}
}

func TestMoveKeepsThePassword(t *testing.T) {
	f := newFile(t)
	for _, e := range []Entry{entry("db-1", "127.0.0.1", "one"), entry("db-2", "127.0.0.2", "two")} {
		if err := f.Put(e); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range []string{"db-1", "db-1", "db-7"} {
		if err := f.Move(from, "db-9"); err != nil {
			t.Fatal(err)
		}
	}
	if want := "# howdah db-9\n127.0.0.1:5432:*:app:one\n# howdah db-2\n127.0.0.2:5432:*:app:two\n"; read(t, f) != want {
		t.Errorf("got\n%s\nwant\n%s", read(t, f), want)
	}
}
