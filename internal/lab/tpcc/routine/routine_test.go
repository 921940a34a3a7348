package routine

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"howdah/internal/lab/tpcc/form"
)

var made = regexp.MustCompile(`CREATE (?:PROCEDURE|FUNCTION) "our_lab"\.(\w+)`)

// All routines are in the schema, and use nothing that is not in it.
func TestSQL(t *testing.T) {
	for mode, want := range map[form.Mode][]string{
		form.Compatible:    {"pick", "neword", "payment", "delivery", "slev", "ostat"},
		form.Specification: {"neword", "payment", "delivery", "slev", "ostat"},
	} {
		sql, err := SQL(mode, `"our_lab"`)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, found := range made.FindAllStringSubmatch(sql, -1) {
			names = append(names, found[1])
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s makes %v", mode, names)
		}
		for _, name := range names {
			if !slices.Contains(Names(), name) {
				t.Errorf("%s makes %s, which is never dropped", mode, name)
			}
		}
		if strings.Contains(sql, "{{") || regexp.MustCompile(`(^|[^_])\blab\.`).MatchString(sql) {
			t.Errorf("%s is not filled in:\n%s", mode, sql)
		}
		for _, text := range []string{"s_dist_01", "s_dist_10"} {
			if strings.Count(sql, text) != 1 {
				t.Errorf("%s has %s %d times", mode, text, strings.Count(sql, text))
			}
		}
		// An exception block is a subtransaction, which only the compatible mode must pay for in writes.
		blocks := strings.Count(sql, "EXCEPTION WHEN")
		if want := map[form.Mode]int{form.Compatible: 4, form.Specification: 1}[mode]; blocks != want {
			t.Errorf("%s has %d exception blocks, not %d", mode, blocks, want)
		}
	}
}

func TestIn(t *testing.T) {
	if got := In("x", "SELECT lab.a, collab.b, 'lab' FROM lab.c"); got != "SELECT x.a, collab.b, 'lab' FROM x.c" {
		t.Error(got)
	}
}

func TestDist(t *testing.T) {
	got := Dist("$1")
	if !strings.HasPrefix(got, "CASE $1 WHEN 1 THEN s_dist_01 WHEN 2") || !strings.HasSuffix(got, "WHEN 10 THEN s_dist_10 END") {
		t.Error(got)
	}
}
