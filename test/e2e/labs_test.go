package e2e

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/admin/client"
	"howdah/internal/lab/result"
	"howdah/internal/testkit/depth"
)

// small is an experiment that is built in, made so small that it says only whether it works.
type small struct {
	// changes are pairs: what stands in its file, and what stands there instead.
	changes []string
	check   func(t *testing.T, points []result.Point)
}

var smalls = map[string]small{
	"e1": {
		changes: []string{"scale: 3, seconds: 5, warmup: 1", "scale: 2, seconds: 3, warmup: 1", "class: [db.m3.medium, db.m3.large], clients", "class: [db.m3.medium], clients"},
		check: func(t *testing.T, points []result.Point) {
			t.Helper()
			much, little := of(t, points, "iops", 1000), of(t, points, "iops", 200)
			if much["tps"] <= little["tps"] && points[0].Struck == "" || much["restore_s"] == 0 || little["restore_s"] == 0 {
				t.Errorf("with 1000 IOPS: %v; with 200: %v", much, little)
			}
		},
	},
	"e2": {
		changes: []string{"scale: 3, clients: 8, seconds: 4, warmup: 1, rows: 200000", "scale: 1, clients: 4, seconds: 2, warmup: 1, rows: 20000", "nodes: [1, 2, 3]", "nodes: [1, 2]"},
		check: func(t *testing.T, points []result.Point) {
			t.Helper()
			two := of(t, points, "nodes", 2)
			for _, name := range []string{"tps", "load_s", "update_s", "vacuum_s", "behind_tps_s", "behind_load_s", "behind_update_s", "behind_vacuum_s", "rows_1000_update_s", "rows_50000_behind_update_s"} {
				if _, has := two[name]; !has {
					t.Errorf("with a standby there is no %s: %v", name, two)
				}
			}
		},
	},
	"e2-balance": {
		changes: []string{"scale: 3, clients: 8, seconds: 4, warmup: 1, pairs: 2", "scale: 1, clients: 4, seconds: 3, warmup: 1, pairs: 2"},
		check: func(t *testing.T, points []result.Point) {
			t.Helper()
			for _, way := range []string{"reader", "pgpool"} {
				if f := of(t, points, "through", way); f["tps"] <= 0 || f["checked_reads"] <= 0 {
					t.Errorf("%s: %v", way, f)
				}
			}
		},
	},
	"e2-pgpool": {
		changes: []string{"scale: 3, clients: 8, seconds: 4, warmup: 1, pairs: 2", "scale: 1, clients: 4, seconds: 3, warmup: 1, pairs: 2", "nodes: [2, 3]", "nodes: [2]"},
		check: func(t *testing.T, points []result.Point) {
			t.Helper()
			direct, pooled := of(t, points, "through", "direct"), of(t, points, "through", "pgpool")
			if direct["tps"] <= 0 || direct["stale_reads"] > 0 || pooled["tps"] <= 0 || pooled["checked_reads"] <= 0 || pooled["standby_reads_percent"] <= 0 {
				t.Errorf("direct: %v; through pgpool: %v", direct, pooled)
			}
		},
	},
	"e3": {
		changes: []string{"scale: 3, seconds: 4, warmup: 1", "scale: 1, seconds: 2, warmup: 1"},
		check: func(t *testing.T, points []result.Point) {
			t.Helper()
			logged, unlogged := of(t, points, "tables", "logged"), of(t, points, "tables", "unlogged")
			if logged["rows_after"] != logged["rows_before"] || unlogged["rows_after"] != 0 || unlogged["rows_before"] == 0 {
				t.Errorf("logged: %v; unlogged: %v", logged, unlogged)
			}
		},
	},
	"e4": {
		changes: []string{"scale: 10, clients: 8, before: 6, after: 10, warmup: 5, within: 20", "scale: 2, clients: 4, before: 3, after: 6, warmup: 2, within: 20"},
		check: func(t *testing.T, points []result.Point) {
			t.Helper()
			for _, warm := range []any{false, true} {
				if f := of(t, points, "ccm", warm); f["outage_s"] <= 0 || f["tps_before"] <= 0 || f["back_s"] <= 0 || f["cached_primary"] <= 0 {
					t.Errorf("ccm %v: %v", warm, f)
				}
			}
		},
	},
	"e5-class": {
		changes: []string{"warehouses: 2, fresh: false, ramp_up: 1, seconds: 4", "warehouses: 1, fresh: false, ramp_up: 1, seconds: 2"},
		check: func(t *testing.T, points []result.Point) {
			t.Helper()
			if f := of(t, points, "class", "db.m3.large"); f["nopm"] <= 0 {
				t.Errorf("db.m3.large: %v", f)
			}
		},
	},
}

// of returns the figures of the first point at a level.
func of(t *testing.T, points []result.Point, factor string, level any) map[string]float64 {
	t.Helper()
	i := slices.IndexFunc(points, func(p result.Point) bool {
		number, is := p.Levels[factor].(float64) // as JSON has it
		return p.Levels[factor] == level || is && level == int(number)
	})
	if i < 0 {
		t.Fatalf("no point has %s %v", factor, level)
	}
	return points[i].Figures
}

// Every experiment that is built in runs through on a Howdah, writes its reports, and leaves nothing.
func TestALabsExperiments(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.does(90*time.Second, "up", "--detach")
	dir := filepath.Dir(c.home)
	drawn := depth.Some(t, 2, slices.Sorted(maps.Keys(smalls)))
	names := make([]string, 0, len(drawn))
	for _, name := range drawn {
		s := smalls[name]
		path := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(path, []byte(s.of(t, c.does(20*time.Second, "lab", "show", name))), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, path)
	}
	out := filepath.Join(dir, "lab")
	c.does(10*time.Minute, append([]string{"lab", "run", "--quick", "--allow-faults", "--lang", "both", "--out", out}, names...)...)
	for _, name := range drawn {
		s := smalls[name]
		r, err := result.Read(filepath.Join(out, name))
		problems := slices.DeleteFunc(r.Problems, func(p string) bool { return strings.Contains(p, "nothing limits them here") }) // a home in memory
		if err != nil || len(problems) > 0 {
			t.Errorf("%s: %q, %v", name, problems, err)
			continue
		}
		s.check(t, r.Points)
		for _, file := range []string{"report.html", "report.ja.html", "series.csv"} {
			if info, err := os.Stat(filepath.Join(out, name, file)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %s: %v", name, file, err)
			}
		}
	}
	if listed := reads[[]struct{ Name string }](c, "db", "list"); len(listed) > 0 {
		t.Errorf("it left %+v", listed)
	}
	c.hasNoGroups()
	c.well(30 * time.Second)
}

// hasNoGroups expects that the lab removed the parameter groups that it made.
func (c *cli) hasNoGroups() {
	c.Helper()
	api, _, err := client.Find(c.home, true, func(string) string { return "" })
	if err != nil {
		c.Fatal(err)
	}
	var one rds.DBParameterGroupsMessage
	var all rds.DBClusterParameterGroupsMessage
	err = errors.Join(
		api.RDS(c.Context(), "DescribeDBParameterGroups", &rds.DescribeDBParameterGroupsMessage{}, &one),
		api.RDS(c.Context(), "DescribeDBClusterParameterGroups", &rds.DescribeDBClusterParameterGroupsMessage{}, &all),
	)
	if err != nil {
		c.Fatal(err)
	}
	var names []string
	for _, g := range one.DBParameterGroups {
		names = append(names, *g.DBParameterGroupName)
	}
	for _, g := range all.DBClusterParameterGroups {
		names = append(names, *g.DBClusterParameterGroupName)
	}
	if left := slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "default.") }); len(left) > 0 {
		c.Errorf("it left the groups %q", left)
	}
}

// of returns the file of an experiment, smaller. Every setting is measured once.
func (s small) of(t *testing.T, text string) string {
	t.Helper()
	for pair := range slices.Chunk(s.changes, 2) {
		if !strings.Contains(text, pair[0]) {
			t.Fatalf("%q is not in\n%s", pair[0], text)
		}
		text = strings.Replace(text, pair[0], pair[1], 1)
	}
	head, quick, _ := strings.Cut(text, "\nquick:\n")
	if !strings.Contains(quick, "  runs: ") {
		quick = strings.TrimRight(quick, "\n") + "\n  runs: 1\n"
	}
	return head + "\nquick:\n" + quick
}
