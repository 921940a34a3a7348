package tpcc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"howdah/internal/lab/own"
	"howdah/internal/lab/tpcc/layout"
)

func TestBuild(t *testing.T) {
	l := startLab(t)
	config := l.empty(t)
	conn := connect(t, config)
	t.Run("two warehouses", func(t *testing.T) { testBuild(t, config, conn) })
	t.Run("anew, in another form", func(t *testing.T) { testBuildAgain(t, config, conn) })
	t.Run("broken off", func(t *testing.T) { testBrokenOff(t, config, conn) })
}

// A build has the exact rows, tells how far it is, and is consistent.
func testBuild(t *testing.T, config *pgx.ConnConfig, conn *pgx.Conn) {
	var told []Progress
	began := time.Now()
	if err := Build(t.Context(), config, BuildOptions{Warehouses: 2, Workers: 3, Mode: Compatible, Seed: 5}, func(p Progress) { told = append(told, p) }); err != nil {
		t.Fatal(err)
	}
	t.Logf("2 warehouses in %s", time.Since(began))
	var phases []Phase
	for i, p := range told {
		phases = append(phases, p.Phase)
		if i > 0 && (p.Rows < told[i-1].Rows || p.Elapsed < told[i-1].Elapsed) {
			t.Errorf("%+v after %+v", p, told[i-1])
		}
	}
	if diff := cmp.Diff([]Phase{Creating, Loading, Indexing, Analyzing, Finished}, slices.Compact(phases)); diff != "" {
		t.Errorf("phases: %s", diff)
	}
	sum := 0.0
	for _, table := range layout.Tables() {
		want := float64(table.Rows)
		switch {
		case table.Name == "order_line":
			want = number(t, conn, "SELECT sum(o_ol_cnt) FROM lab.orders")
		case !table.Distribution.Reference:
			want *= 2
		}
		if got := number(t, conn, "SELECT count(*) FROM lab."+table.Name); got != want {
			t.Errorf("%s has %.0f rows, not %.0f", table.Name, got, want)
		}
		if analyzed := number(t, conn, "SELECT reltuples FROM pg_class WHERE oid = 'lab."+table.Name+"'::regclass"); analyzed < want*0.9 {
			t.Errorf("%s was analyzed with %.0f rows", table.Name, analyzed)
		}
		sum += want
	}
	last := told[len(told)-1]
	if float64(last.Rows) != sum || float64(last.Of) < sum*0.99 || float64(last.Of) > sum*1.01 {
		t.Errorf("at the end %d of %d rows, and there are %.0f", last.Rows, last.Of, sum)
	}
	mustHold(t, conn)
	about, err := Look(t.Context(), conn, "")
	if err != nil || about.Warehouses != 2 || about.Mode != Compatible || about.Seed != 5 || about.Finished.Before(about.Began) {
		t.Errorf("%+v (%v)", about, err)
	}
	// All customers of a district have one order each, and names are those of their numbers.
	if n := number(t, conn, "SELECT count(DISTINCT (o_w_id, o_d_id, o_c_id)) FROM lab.orders"); n != 60000 {
		t.Errorf("%.0f customers have an order", n)
	}
	if n := number(t, conn, "SELECT count(*) FROM lab.customer WHERE c_id = 372 AND c_last = 'PRICALLYOUGHT'"); n != 20 {
		t.Errorf("%.0f of the customers 372 have their name", n)
	}
}

// A database of ours is built anew, whatever it was.
func testBuildAgain(t *testing.T, config *pgx.ConnConfig, conn *pgx.Conn) {
	o := BuildOptions{Warehouses: 1, Workers: 2, Mode: Specification, Unlogged: true, Fillfactor: 80}
	if err := Build(t.Context(), config, o, nil); err != nil {
		t.Fatal(err)
	}
	mustHold(t, conn)
	if n := number(t, conn, "SELECT count(*) FROM lab.warehouse"); n != 1 {
		t.Errorf("%.0f warehouses", n)
	}
	tables := number(t, conn, `SELECT count(*) FROM pg_class WHERE relnamespace = 'howdah_lab'::regnamespace AND relkind = 'r'
		AND relpersistence = 'u' AND reloptions = '{fillfactor=80}'`)
	if tables != 9 {
		t.Errorf("%.0f tables are unlogged and have the fillfactor", tables)
	}
	about, err := Look(t.Context(), conn, "")
	if err != nil || about.Mode != Specification || !about.Unlogged || about.Fillfactor != 80 {
		t.Errorf("%+v (%v)", about, err)
	}
}

// What is left of a build that was broken off is no database, and can be built again.
func testBrokenOff(t *testing.T, config *pgx.ConnConfig, conn *pgx.Conn) {
	ctx, cancel := context.WithCancel(t.Context())
	err := Build(ctx, config, BuildOptions{Warehouses: 1, Mode: Compatible}, func(p Progress) {
		if p.Phase == Loading {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("it ended with %v", err)
	}
	about, err := Look(t.Context(), conn, "")
	if err != nil || !about.Finished.IsZero() {
		t.Errorf("%+v (%v)", about, err)
	}
	if _, err := Run(t.Context(), config, short(Compatible, Procedures)); !errors.Is(err, ErrUnfinished) {
		t.Errorf("a run: %v", err)
	}
	if _, err := Check(t.Context(), conn, ""); !errors.Is(err, ErrUnfinished) {
		t.Errorf("a check: %v", err)
	}
	if err := Drop(t.Context(), conn, ""); err != nil {
		t.Error(err)
	}
	if err := Drop(t.Context(), conn, ""); err != nil {
		t.Errorf("once more: %v", err)
	}
	if n := number(t, conn, "SELECT count(*) FROM pg_class WHERE relnamespace = 'howdah_lab'::regnamespace"); n != 0 {
		t.Errorf("%.0f relations are still there", n)
	}
	if _, err := Run(t.Context(), config, short(Compatible, Procedures)); !errors.Is(err, ErrNone) {
		t.Errorf("a run on nothing: %v", err)
	}
}

// Nothing is changed that is not ours.
func TestForeign(t *testing.T) {
	l := startLab(t)
	conn := connect(t, l.Config())
	ours := "COMMENT ON SCHEMA howdah_lab IS '" + own.Mark + "'"
	for name, sql := range map[string]string{
		"a schema without a comment":   "",
		"a schema of theirs":           "COMMENT ON SCHEMA howdah_lab IS 'our books'",
		"a table in the lab's schema":  ours,
		"a comment that is not a mark": ours + "; COMMENT ON TABLE howdah_lab.warehouse IS '" + mark + "{'",
	} {
		t.Run(name, func(t *testing.T) {
			execute(t, conn, "CREATE SCHEMA howdah_lab", "CREATE TABLE howdah_lab.warehouse AS SELECT 1 AS theirs", sql)
			if err := Build(t.Context(), l.Config(), BuildOptions{Warehouses: 1, Mode: Compatible}, nil); !errors.Is(err, ErrForeign) {
				t.Errorf("a build: %v", err)
			}
			if err := Drop(t.Context(), conn, ""); !errors.Is(err, ErrForeign) {
				t.Errorf("a drop: %v", err)
			}
			if _, err := Run(t.Context(), l.Config(), short(Compatible, Procedures)); !errors.Is(err, ErrForeign) {
				t.Errorf("a run: %v", err)
			}
			if _, err := Check(t.Context(), conn, ""); !errors.Is(err, ErrForeign) {
				t.Errorf("a check: %v", err)
			}
			if n := number(t, conn, "SELECT theirs FROM lab.warehouse"); n != 1 {
				t.Errorf("their table has %.0f", n)
			}
			execute(t, conn, "DROP SCHEMA howdah_lab CASCADE")
		})
	}
	// Another table of ours is in the way, and stays.
	execute(t, conn, "CREATE SCHEMA howdah_lab", ours, "CREATE TABLE howdah_lab.stock AS SELECT 1 AS theirs")
	if err := Build(t.Context(), l.Config(), BuildOptions{Warehouses: 1, Mode: Compatible}, nil); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("a build beside a table stock: %v", err)
	}
	if n := number(t, conn, "SELECT theirs FROM lab.stock"); n != 1 {
		t.Errorf("their table has %.0f", n)
	}
}

// A drop leaves what others made of ours, and what else is in the schema.
func TestDropLeavesOthers(t *testing.T) {
	l := startLab(t)
	conn := connect(t, l.Config())
	execute(t, conn, "CREATE SCHEMA howdah_lab", "COMMENT ON SCHEMA howdah_lab IS '"+own.Mark+"'", "CREATE TABLE howdah_lab.pgbench_branches (n integer)")
	schema(t, conn)
	for what, sql := range map[string][2]string{
		"a view elsewhere":    {"CREATE VIEW public.rich AS SELECT * FROM howdah_lab.customer", "DROP VIEW public.rich"},
		"a foreign key to it": {"CREATE TABLE public.o (i integer REFERENCES howdah_lab.item)", "DROP TABLE public.o"},
	} {
		execute(t, conn, sql[0])
		if err := Drop(t.Context(), conn, ""); err == nil || !strings.Contains(err.Error(), "depend") {
			t.Errorf("%s: %v", what, err)
		}
		if n := number(t, conn, "SELECT count(*) FROM pg_class WHERE relnamespace = 'howdah_lab'::regnamespace AND relkind = 'r'"); n < 10 {
			t.Errorf("%s: %.0f tables are left", what, n)
		}
		execute(t, conn, sql[1])
	}
	if err := Drop(t.Context(), conn, ""); err != nil {
		t.Error(err)
	}
	if n := number(t, conn, "SELECT count(*) FROM lab.pgbench_branches"); n != 0 {
		t.Errorf("%.0f rows", n)
	}
}

// schema makes a schema of ours that nobody has loaded, but that is finished.
func schema(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	about := About{Version: version, Mode: Compatible, Warehouses: 1, Began: time.Now(), Finished: time.Now()}
	b := &builder{o: BuildOptions{Schema: DefaultSchema, Mode: Compatible}}
	if err := b.create(t.Context(), conn, about); err != nil {
		t.Fatal(err)
	}
	if err := b.index(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
}

// Empty tables, as they are after a crash if they are unlogged, hold no condition.
func TestNothingHoldsNothing(t *testing.T) {
	l := startLab(t)
	conn := connect(t, l.Config())
	schema(t, conn)
	all, err := Check(t.Context(), conn, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.Holds() || c.Checked != 0 || c.Violations != 0 {
			t.Errorf("%+v", c)
		}
	}
}

// Each condition finds what breaks it, and tells where.
func TestCheckFindsViolations(t *testing.T) {
	l := startLab(t, Compatible)
	conn := connect(t, l.copy(t, Compatible))
	for _, c := range []struct {
		damage  string
		broken  []int
		example string
	}{
		{"UPDATE lab.warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2", []int{1, 8}, `{"w": 2, "districts": 300000.00, "warehouse": 300001.00}`},
		{"UPDATE lab.district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 4", []int{2}, `{"d": 4, "w": 1, "next": 3002, "order": 3000, "new_order": 3000}`},
		{"DELETE FROM lab.new_order WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 2500", []int{3}, `{"d": 1, "w": 1, "last": 3000, "count": 899, "first": 2101}`},
		{"DELETE FROM lab.new_order WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 3000", []int{2}, `{"d": 1, "w": 1, "next": 3001, "order": 3000, "new_order": 2999}`},
		{"DELETE FROM lab.new_order WHERE no_w_id = 1 AND no_d_id = 1", nil, ""},
		{"DELETE FROM lab.order_line WHERE ol_w_id = 2 AND ol_d_id = 9 AND ol_o_id = 5 AND ol_number = 1", []int{4}, ""},
		{"DELETE FROM lab.order_line", []int{4}, ""},
		{"UPDATE lab.district SET d_ytd = d_ytd + 5 WHERE d_w_id = 1 AND d_id = 4", []int{1, 9}, `{"w": 1, "districts": 300005.00, "warehouse": 300000.00}`},
		{"DELETE FROM lab.history WHERE h_w_id = 1 AND h_d_id = 3 AND h_c_id = 7", []int{8, 9}, `{"w": 1, "history": 299990.00, "warehouse": 300000.00}`},
	} {
		// Check has a transaction of its own, so the damage is done to the data in it.
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		execute(t, conn, strings.ReplaceAll(c.damage, "lab.", "howdah_lab."))
		var broken []int
		example := ""
		for _, condition := range conditions {
			found, err := check(t.Context(), tx, quoted(DefaultSchema), condition)
			if err != nil {
				t.Fatal(err)
			}
			if !found.Holds() {
				broken = append(broken, found.Number)
				if example == "" && len(found.Examples) > 0 {
					example = found.Examples[0]
				}
				if len(found.Examples) > 5 || int64(len(found.Examples)) > found.Violations {
					t.Errorf("%s: %d examples of %d", c.damage, len(found.Examples), found.Violations)
				}
			}
		}
		if diff := cmp.Diff(c.broken, broken); diff != "" {
			t.Errorf("%s: %s", c.damage, diff)
		}
		if c.example != "" && example != c.example {
			t.Errorf("%s: %s", c.damage, example)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	mustHold(t, conn)
}

// Whoever works on a schema keeps others away from it.
func TestBusy(t *testing.T) {
	l := startLab(t)
	first, second := connect(t, l.Config()), connect(t, l.Config())
	claimed := func(conn *pgx.Conn, shared bool) (func(), error) { return claim(t.Context(), conn, "some", shared) }
	for _, c := range []struct{ first, second, works bool }{{true, true, true}, {true, false, false}, {false, true, false}, {false, false, false}} {
		release, err := claimed(first, c.first)
		if err != nil {
			t.Fatal(err)
		}
		again, err := claimed(second, c.second)
		if (err == nil) != c.works || err != nil && !errors.Is(err, ErrBusy) {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil {
			again()
		}
		other, err := claim(t.Context(), second, "other", false)
		if err != nil {
			t.Errorf("another schema: %v", err)
		} else {
			other()
		}
		release()
	}
	release, err := claim(t.Context(), first, DefaultSchema, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := Build(t.Context(), l.Config(), BuildOptions{Warehouses: 1, Mode: Compatible}, nil); !errors.Is(err, ErrBusy) {
		t.Errorf("a build while something runs: %v", err)
	}
	if err := Drop(t.Context(), second, ""); !errors.Is(err, ErrBusy) {
		t.Errorf("a drop while something runs: %v", err)
	}
	release()
	if err := Drop(t.Context(), second, ""); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// More workers than the server takes are refused before anything is changed.
func TestBuildNeedsRoom(t *testing.T) {
	l := startLab(t)
	conn := connect(t, l.Config())
	err := Build(t.Context(), l.Config(), BuildOptions{Warehouses: 1, Workers: 38, Mode: Compatible}, nil)
	if !errors.Is(err, ErrNoRoom) {
		t.Error(err)
	}
	if n := number(t, conn, "SELECT count(*) FROM pg_namespace WHERE nspname = 'howdah_lab'"); n != 0 {
		t.Error("there is a schema")
	}
	execute(t, conn, "ALTER DATABASE rdsadmin SET default_transaction_read_only = on")
	err = Build(t.Context(), l.Config(), BuildOptions{Warehouses: 1, Mode: Compatible}, nil)
	if !errors.Is(err, ErrStandby) || !strings.Contains(fmt.Sprint(err), "read only") {
		t.Error(err)
	}
}
