package postgres

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"howdah/internal/model/param"
	"howdah/internal/system/owner"
)

var update = flag.Bool("update", false, "write the catalogue that the tests of other packages use")

// databaseUser returns the user that PostgreSQL runs as if the test runs as root.
func databaseUser(t *testing.T, dir string) *owner.User {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	for d := dir; d != filepath.Dir(d); d = filepath.Dir(d) {
		if info, err := os.Stat(d); err == nil && info.Mode().Perm()&0o001 == 0 {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &owner.User{Name: u.Username, UID: uid, GID: gid}
}

// TestCatalogue reads the catalogue of every installed PostgreSQL.
func TestCatalogue(t *testing.T) {
	installs, err := Installed()
	if err != nil || len(installs) == 0 {
		t.Fatal(installs, err)
	}
	for _, install := range installs {
		dir := t.TempDir()
		owner := databaseUser(t, dir)
		data := filepath.Join(dir, "data")
		if err := Prepare(t.Context(), install, owner, data); err != nil {
			t.Fatal(err)
		}
		c, err := ReadCatalogue(t.Context(), install, owner, data, filepath.Join("/opt/howdah/lib", strconv.Itoa(install.Major)))
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Parameters) < 340 || c.Version != install.Full || len(c.Extensions) < 20 || !slices.Contains(c.Libraries, "auto_explain") {
			t.Errorf("%d parameters of %s, extensions %q, libraries %q", len(c.Parameters), c.Version, c.Extensions, c.Libraries)
		}
		for _, p := range c.Parameters {
			if strings.HasPrefix(p.Name, "howdah.") || strings.HasPrefix(p.Name, "rds.") {
				t.Errorf("%s is the platform's, and not PostgreSQL's", p.Name)
			}
		}
		family := param.Family{Engine: "postgres", Major: install.Major}
		for name, kind := range map[string]string{"work_mem": "integer", "auto_explain.log_min_duration": "integer", "pg_stat_statements.max": "integer", "wal_level": "enum", "random_page_cost": "real"} {
			if p, ok := c.Find(family, name); !ok || p.Type != kind {
				t.Errorf("%s: %+v", name, p)
			}
		}
		checkDefaults(t, c, family)
		checkPassedOn(t, c, install, family)
		if *update && install.Major == 15 {
			text, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile("../../model/param/testdata/15.json", append(text, '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// checkDefaults checks that PostgreSQL's own defaults are valid, also for parameters that Howdah
// narrows.
func checkDefaults(t *testing.T, c param.Catalogue, f param.Family) {
	t.Helper()
	for _, p := range c.All(f) {
		if param.Owned(p, f, param.Instance) != "" || p.Default == "" || narrowedDefaults[p.Name] {
			continue
		}
		if err := c.Check(p, p.Default, nil); err != nil {
			t.Error(err)
		}
	}
}

// narrowedDefaults lists parameters whose default in PostgreSQL is below Howdah's minimum. Howdah
// sets others.
var narrowedDefaults = map[string]bool{"max_wal_senders": true, "max_replication_slots": true, "wal_keep_size": true, "max_slot_wal_keep_size": true}

// PostgreSQL and Howdah must judge a value alike. Where Howdah's own check is not enough, only
// PostgreSQL's counts.
func TestCheckSetting(t *testing.T) {
	installs, err := Installed()
	if err != nil || len(installs) == 0 {
		t.Fatal(installs, err)
	}
	cases := []struct {
		name, value string
		valid       bool
	}{
		{"work_mem", "64MB", true}, {"work_mem", "1", false}, {"work_mem", "64mb", false}, {"work_mem", "x", false},
		{"datestyle", "iso, mdy", true}, {"datestyle", "foo", false}, {"timezone", "Europe/Berlin", true}, {"timezone", "Nowhere", false},
		{"search_path", "a b", false}, {"random_page_cost", "1.1", true}, {"random_page_cost", "-1", false},
		{"log_statement", "ddl", true}, {"log_statement", "some", false}, {"enable_seqscan", "true", true}, {"enable_seqscan", "o", false},
		{"statement_timeout", "1.5h", true}, {"statement_timeout", "1 week", false}, {"log_min_messages", "debug", true},
	}
	c := readTestdata(t)
	for _, test := range cases {
		err := CheckSetting(t.Context(), installs[0], test.name, test.value)
		if (err == nil) != test.valid || err != nil && !errors.Is(err, ErrSetting) {
			t.Errorf("%s=%s: %v", test.name, test.value, err)
		}
		p, ok := c.Find(param.Family{Engine: "postgres", Major: 15}, test.name)
		if !ok {
			t.Fatal(test.name)
		}
		if p.Type == "string" || test.name == "log_min_messages" {
			continue
		}
		if err := c.Check(p, test.value, nil); (err == nil) != test.valid {
			t.Errorf("PostgreSQL and we differ: %s=%s: %v", test.name, test.value, err)
		}
	}
}

func readTestdata(t *testing.T) param.Catalogue {
	t.Helper()
	text, err := os.ReadFile("../../model/param/testdata/15.json")
	if err != nil {
		t.Fatal(err)
	}
	var c param.Catalogue
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// checkPassedOn checks that groups may set only what PostgreSQL names in --describe-config: Patroni
// drops everything else.
func checkPassedOn(t *testing.T, c param.Catalogue, install Install, f param.Family) {
	t.Helper()
	out, err := run(t.Context(), nil, nil, install.Program("postgres"), "--describe-config")
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for line := range strings.Lines(out) {
		name, _, _ := strings.Cut(line, "\t")
		known = append(known, name)
	}
	for _, p := range c.Parameters {
		if !strings.Contains(p.Name, ".") && !slices.Contains(known, p.Name) && param.Owned(p, f, param.Instance) == "" {
			t.Errorf("%s can be set, and has no effect", p.Name)
		}
	}
}
