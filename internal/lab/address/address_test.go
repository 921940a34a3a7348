package address

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	s, err := Parse("postgresql://app:p%40ss:w%5Crd@db.example:6543/shop?sslmode=disable&application_name=x", dir)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(s.Address(), "p%40ss") || s.Address() != "postgresql://app@db.example:6543/shop?application_name=x&sslmode=disable" {
		t.Errorf("it is %s", s.Address())
	}
	if c := s.Config(); c.Password != `p@ss:w\rd` || c.Port != 6543 || c.Database != "shop" || c.TLSConfig != nil {
		t.Errorf("%+v", c)
	}
	if s.Name() != "db.example:6543/shop" {
		t.Errorf("its name is %s", s.Name())
	}
	env, err := s.Environment()
	if err != nil || !strings.Contains(strings.Join(env, " "), "PGPASSFILE="+filepath.Join(dir, "pgpass")) || strings.Contains(strings.Join(env, " "), "p@ss") {
		t.Errorf("%q, %v", env, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "pgpass"))
	if err != nil || string(text) != `*:*:*:*:p@ss\:w\\rd`+"\n" {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "pgpass")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	in := s.In("lab")
	if env, err := in.Environment(); err != nil || !slices.Contains(env, "PGOPTIONS=-c search_path=lab") || in.Config().RuntimeParams["search_path"] != "lab" {
		t.Errorf("%q, %v", env, err)
	}
	if s.Config().RuntimeParams["search_path"] != "" {
		t.Error("the server itself was changed")
	}
	if s.Config().Host = "other"; s.Config().Host != "db.example" {
		t.Error("a change of the configuration changed the server")
	}
}

func TestAddressesWithoutAPassword(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("PGPASSWORD", "")
	s, err := Parse("postgres://app@127.0.0.1/shop", dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "pgpass")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file of no password: %v", err)
	}
	if env, err := s.Environment(); err != nil || strings.Contains(strings.Join(env, " "), "PGPASSFILE="+dir) {
		t.Errorf("%q, %v", env, err)
	}
	// A password in the query is one, too.
	s, err = Parse("postgres://app@127.0.0.1/shop?password=secret", dir)
	if err != nil || strings.Contains(s.Address(), "secret") || s.Config().Password != "secret" {
		t.Errorf("%s, %v", s.Address(), err)
	}
}

func TestWhatIsNoAddress(t *testing.T) {
	for _, uri := range []string{"", "127.0.0.1", "mysql://x", "host=x password=secret", "postgresql://app:secret@host:port/x", "postgresql://app:secret@[::1/x"} {
		if _, err := Parse(uri, t.TempDir()); !errors.Is(err, ErrForm) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", uri, err)
		}
	}
}
