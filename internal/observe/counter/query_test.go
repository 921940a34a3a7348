package counter

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/observe/series"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden has the queries of a version, and below a line of dashes the columns that a server of that
// version gave them.
func golden(t *testing.T, major int) (queries, columns string) {
	t.Helper()
	text, err := os.ReadFile(goldenFile(major))
	if err != nil {
		t.Fatal(err)
	}
	queries, columns, _ = strings.Cut(string(text), "----\n")
	return queries, columns
}

func goldenFile(major int) string {
	return filepath.Join("testdata", fmt.Sprintf("%d.txt", major))
}

func write(t *testing.T, major int, queries, columns string) {
	t.Helper()
	if err := os.WriteFile(goldenFile(major), []byte(queries+"----\n"+columns), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestQueriesOfEveryVersion(t *testing.T) {
	for major := Oldest; major <= Newest; major++ {
		queries, err := Queries(major)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		names := map[string]bool{}
		for _, q := range queries {
			if names[q.Name] {
				t.Errorf("%d: two queries are called %s", major, q.Name)
			}
			names[q.Name] = true
			if !q.Gauges && !strings.Contains(q.SQL, " AS epoch") {
				t.Errorf("%d: %s has no epoch", major, q.Name)
			}
			if q.Keyed && !strings.Contains(q.SQL, " AS key") {
				t.Errorf("%d: %s has no key", major, q.Name)
			}
			fmt.Fprintf(&text, "-- %s\n%s;\n", q.Name, q.SQL)
		}
		kept, columns := golden(t, major)
		if *update {
			write(t, major, text.String(), columns)
		} else if kept != text.String() {
			t.Errorf("the queries of %d are not those of %s: run go test -update, and read the difference", major, goldenFile(major))
		}
	}
}

// What a server of each version answered is explained, and the columns that all versions have are
// the same.
func TestColumnsOfEveryVersion(t *testing.T) {
	had := map[string]bool{}
	for major := Oldest; major <= Newest; major++ {
		_, text := golden(t, major)
		has := map[string]bool{}
		for _, column := range strings.Fields(text) {
			has[column] = true
			if _, known := series.Explain(column); !known {
				t.Errorf("%d: %s is not explained", major, column)
			}
		}
		for column := range had {
			if !has[column] {
				t.Errorf("%d has no %s, which the version before has", major, column)
			}
		}
		for _, column := range []string{
			series.Commits, series.Rollbacks, series.BlocksRead, series.BlocksHit, series.Deadlocks, series.WALBytes, series.WALRecords,
			series.WALImages, series.WALBuffersFull, series.WALWrites, series.WALWriteTime, series.WALSyncs, series.WALSyncTime, series.WALPosition,
		} {
			if !has[column] {
				t.Errorf("%d has no %s", major, column)
			}
		}
		had = has
	}
}

func TestOtherVersions(t *testing.T) {
	if _, err := Queries(Oldest - 1); !errors.Is(err, ErrOld) {
		t.Errorf("%v", err)
	}
	newest, _ := Queries(Newest)
	next, err := Queries(Newest + 1)
	if err != nil || len(next) != len(newest) {
		t.Errorf("%d queries, %v", len(next), err)
	}
}

func TestColumnNames(t *testing.T) {
	for _, c := range []struct {
		query     Query
		key, name string
		want      string
	}{
		{Query{Name: "db"}, "", "commits", "db.commits"},
		{Query{Name: "wal_io", Prefix: "wal"}, "", "syncs", "wal.syncs"},
		{Query{Name: "standby", Keyed: true}, "m2", "sync", "standby.m2.sync"},
		{Query{Name: "standby", Keyed: true}, "", "sync", "standby..sync"},
	} {
		if got := c.query.Column(c.key, c.name); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
