package address

import (
	"errors"
	"net/url"
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
	if !strings.HasSuffix(in.Address(), "&options=-c%20search_path%3Dlab&sslmode=disable") || in.Config().RuntimeParams["search_path"] != "lab" {
		t.Errorf("it is %s", in.Address())
	}
	as := in.As("one's own")
	if !strings.Contains(as.Address(), "?application_name=one%27s%20own&options=-c%20search_path%3Dlab&") || as.Config().RuntimeParams["application_name"] != "one's own" {
		t.Errorf("it is %s", as.Address())
	}
	if s.Config().RuntimeParams["application_name"] != "x" {
		t.Error("the server itself was changed")
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

// libpq prefers the options of an address to those of the environment.
func TestTheSchemaStandsBesideOptions(t *testing.T) {
	t.Setenv("PGOPTIONS", "-c geqo=off")
	for uri, want := range map[string]string{
		"postgresql://a@h/d": "-c geqo=off -c search_path=lab",
		"postgresql://a@h/d?options=endpoint%3Dx%20-c%20a%3Db": "endpoint=x -c a=b -c search_path=lab",
	} {
		s, err := Parse(uri, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(s.In("lab").Address())
		if err != nil || u.Query().Get("options") != want || strings.Contains(u.RawQuery, "+") {
			t.Errorf("%s becomes %v, %v", uri, u, err)
		}
		if env, err := s.Environment(); err != nil || slices.ContainsFunc(env, func(pair string) bool { return strings.Contains(pair, "search_path") }) {
			t.Errorf("%q, %v", env, err)
		}
	}
}

// Secrets beside the password would be in arguments and results.
func TestParametersThatAreNotTaken(t *testing.T) {
	for _, name := range []string{"sslpassword", "oauth_client_secret", "passfile", "scram_client_key"} {
		if _, err := Parse("postgresql://a@h/d?"+name+"=hidden", t.TempDir()); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsNoAddress(t *testing.T) {
	for _, uri := range []string{"", "127.0.0.1", "mysql://x", "host=x password=secret", "postgresql://app:secret@host:port/x", "postgresql://app:secret@[::1/x"} {
		if _, err := Parse(uri, t.TempDir()); !errors.Is(err, ErrForm) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", uri, err)
		}
	}
}
