package layout

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"howdah/internal/testkit/golden"
)

// TestDDL checks the DDL against golden files, which hold the options and what they give.
func TestDDL(t *testing.T) {
	golden.Each(t, func(t *testing.T, f *golden.File) { f.Check(ddl(optionsOf(t, f.Input))) })
}

// optionsOf reads a line such as: schema=lab unlogged fillfactor=70.
func optionsOf(t *testing.T, line string) (o Options) {
	t.Helper()
	for _, word := range strings.Fields(line) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "schema":
			o.Schema = value
		case "unlogged":
			o.Unlogged = true
		case "fillfactor":
			o.Fillfactor, _ = strconv.Atoi(value)
		default:
			t.Fatalf("there is no option %q", word)
		}
	}
	return o
}

func ddl(o Options) string {
	var b strings.Builder
	for _, table := range Tables() {
		fmt.Fprintf(&b, "%s;\n%s;\n", table.Create(o), table.Copy(o.Schema))
		if after := table.CreateAfter(o); after != "" {
			b.WriteString(after + ";\n")
		}
		d := table.Distribution
		if d.Reference {
			b.WriteString("-- reference\n\n")
		} else {
			fmt.Fprintf(&b, "-- by %s with %s\n\n", d.Column, d.With)
		}
	}
	return b.String()
}

// Keys, indexes and distributions name columns of their table. A key has the column by which its
// table is spread, as a unique index over shards needs it.
func TestColumnsAreThere(t *testing.T) {
	for _, table := range Tables() {
		var names []string
		for _, c := range table.Columns {
			if slices.Contains(names, c.Name) {
				t.Errorf("%s has %s twice", table.Name, c.Name)
			}
			names = append(names, c.Name)
		}
		unique := [][]string{table.Key}
		if table.After != nil {
			unique = append(unique, table.After.Columns)
		}
		by := table.Distribution.Column
		for _, columns := range unique {
			for _, c := range columns {
				if !slices.Contains(names, c) {
					t.Errorf("%s has no column %s", table.Name, c)
				}
			}
			if len(columns) > 0 && !table.Distribution.Reference && !slices.Contains(columns, by) {
				t.Errorf("the index %v of %s lacks %s", columns, table.Name, by)
			}
		}
		if table.Distribution.Reference {
			continue
		}
		if !slices.Contains(names, by) {
			t.Errorf("%s has no column %s", table.Name, by)
		}
		if _, ok := Named(table.Distribution.With); !ok {
			t.Errorf("%s lies with %q, which is no table", table.Name, table.Distribution.With)
		}
	}
	if _, ok := Named("terminal"); ok {
		t.Error("there is a table terminal")
	}
}

func TestRows(t *testing.T) {
	const each, items = 1 + 10 + 30000 + 30000 + 30000 + 9000 + 300000 + 100000, 100000
	for warehouses, want := range map[int]int64{1: each + items, 10: 10*each + items, 5000: 5000*each + items} {
		if got := Rows(warehouses); got != want {
			t.Errorf("%d warehouses: %d rows, not %d", warehouses, got, want)
		}
	}
}
