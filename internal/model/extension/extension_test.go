package extension

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The module's own list is this one.
func TestTheModuleAllowsWhatTheTableSays(t *testing.T) {
	text, err := os.ReadFile("../../../extensions/howdah/src/howdah.c")
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?s)default_extensions\[\] =\n(.*?);`).FindSubmatch(text)
	if match == nil {
		t.Fatal("howdah.c has no default_extensions")
	}
	list := strings.Join(regexp.MustCompile(`"([^"]*)"`).FindAllString(string(match[1]), -1), "")
	names := regexp.MustCompile(`[\w-]+`).FindAllString(strings.ReplaceAll(list, `"`, ""), -1)
	if want := Names(); !slices.Equal(names, want) {
		t.Errorf("howdah.c lists\n%q\nand the table\n%q", names, want)
	}
}

func TestGeneratedFilesAreNew(t *testing.T) {
	for path, want := range map[string]string{"../../../docs/guide/extensions.md": Guide(), "../../../scripts/extensions.txt": InstallList()} {
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%s is old: run `make generate`, or go run ./cmd/howdah gen-extensions: %v", path, err)
		}
	}
}

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range All() {
		if seen[e.Name] || e.Name == "" || e.For == "" {
			t.Errorf("%+v is there twice, or not described", e)
		}
		seen[e.Name] = true
		// A plugin of logical slots is a library that nobody preloads.
		if (e.Library == "") != (e.Preload == Never) && !e.bare() {
			t.Errorf("%s: library %q, preload %q", e.Name, e.Library, e.Preload)
		}
		if strings.HasSuffix(e.Refused, ".") || strings.HasSuffix(e.Note, ".") || strings.HasSuffix(e.For, ".") {
			t.Errorf("%s: a text ends in a full stop", e.Name)
		}
		if e.Package != "" && !strings.Contains(e.Package, "N") {
			t.Errorf("%s: the package %s is for no version", e.Name, e.Package)
		}
	}
}

func TestFind(t *testing.T) {
	cron, ok := Find("pg_cron")
	if !ok || cron.DebianPackage(17) != "postgresql-17-cron" || !cron.Creatable() {
		t.Errorf("%+v", cron)
	}
	if _, ok := Find("nothing"); ok {
		t.Error("found nothing")
	}
	if explain, _ := Find("auto_explain"); explain.Creatable() {
		t.Error("auto_explain is no extension")
	}
	if old, _ := Find("adminpack"); old.In(17) || !old.In(16) {
		t.Error("adminpack ended with 16")
	}
}

// What is refused is neither created nor loaded nor installed.
func TestRefused(t *testing.T) {
	for _, e := range All() {
		if e.Refused == "" {
			continue
		}
		if slices.Contains(Names(), e.Name) || slices.Contains(Libraries(), e.Name) || strings.Contains(InstallList(), "\n"+e.Name+" ") {
			t.Errorf("%s is refused, and offered", e.Name)
		}
	}
	if libraries := Libraries(); slices.Contains(libraries, "pglogical") || !slices.Contains(libraries, "pg_cron") {
		t.Errorf("libraries %q", libraries)
	}
	if sessions := SessionLibraries(); slices.Contains(sessions, "pg_cron") || !slices.Contains(sessions, "auto_explain") {
		t.Errorf("libraries of sessions %q", sessions)
	}
}

func TestMissing(t *testing.T) {
	for _, test := range []struct {
		hosts [][]string
		want  []string
	}{
		{nil, nil},
		{[][]string{{"hll", "rum"}, {"hll", "rum"}}, nil},
		{[][]string{{"hll", "rum"}, {"hll"}, {"ip4r", "hll"}}, []string{"ip4r", "rum"}},
		{[][]string{{"hll"}, nil}, nil},
		{[][]string{{"hll"}, {}}, []string{"hll"}},
	} {
		if got := Missing(test.hosts...); !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, not %q", test.hosts, got, test.want)
		}
	}
}
