package postgres

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"howdah/internal/testkit/pgversion"
)

func TestExtensions(t *testing.T) {
	install, err := Find(pgversion.Major())
	if err != nil {
		t.Fatal(err)
	}
	has, err := install.Extensions()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"citext", "plpgsql", "pg_stat_statements", "uuid-ossp"} {
		if has[name] == "" {
			t.Errorf("%s is not found: %v", name, has)
		}
	}
	if version, found := has["auto_explain"]; !found || version != "" {
		t.Errorf("auto_explain, which is no extension: %q, %v", version, found)
	}
	for _, name := range []string{"file_fdw", "pg_repack", "adminpack"} {
		if _, found := has[name]; found {
			t.Errorf("%s is offered", name)
		}
	}
}

// A package that is installed, or removed, is noticed.
func TestExtensionsComeAndGo(t *testing.T) {
	prefix := t.TempDir()
	install := Install{Major: 15, BinDir: filepath.Join(prefix, "bin"), Full: "15.18"}
	if _, err := install.Extensions(); err == nil {
		t.Error("found extensions where nothing is")
	}
	share := filepath.Join(prefix, "share/extension")
	for _, dir := range []string{share, filepath.Join(prefix, "lib")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Now().Add(-time.Hour)
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(prefix, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Minute) // whatever the clock of the file system can tell apart
		if err := os.Chtimes(filepath.Dir(filepath.Join(prefix, path)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(name, version string, found bool) {
		t.Helper()
		has, err := install.Extensions()
		if got, there := has[name]; err != nil || there != found || got != version {
			t.Errorf("%s: %q, %v, %v", name, got, there, err)
		}
	}
	write("share/extension/plpgsql.control", "default_version = '1.0'\n")
	expect("plpgsql", "1.0", true)
	expect("hll", "", false)
	write("share/extension/hll.control", "# comment\ncomment = 'x'\n  default_version = '2.17'\n")
	expect("hll", "2.17", true)
	write("share/extension/pg_cron.control", "default_version = '1.4-1'\n")
	expect("pg_cron", "", false) // without its library
	write("lib/pg_cron.so", "")
	expect("pg_cron", "1.4-1", true)
	if err := os.Remove(filepath.Join(share, "hll.control")); err != nil {
		t.Fatal(err)
	}
	write("share/extension/x", "")
	expect("hll", "", false)
}
