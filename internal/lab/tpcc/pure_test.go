package tpcc

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"howdah/internal/lab/seats"
	"howdah/internal/lab/tpcc/form"
	"howdah/internal/lab/tpcc/meter"
)

func TestSchemaNames(t *testing.T) {
	for name, want := range map[string]string{
		"": DefaultSchema, "lab": "lab", "_x9": "_x9", "order": "order",
		"Lab": "", "9x": "", "a b": "", `a"b`: "", "a$b": "", "pg_lab": "", "information_schema": "", strings.Repeat("x", 64): "",
	} {
		got, err := checkSchema(name)
		if want == "" && !errors.Is(err, ErrOption) || want != "" && err != nil || got != want {
			t.Errorf("%q became %q (%v)", name, got, err)
		}
	}
}

func TestBuildOptions(t *testing.T) {
	good := BuildOptions{Warehouses: 1, Mode: Compatible, Workers: 3}
	if o, err := good.checked(); err != nil || o.Schema != DefaultSchema || o.Workers != 3 {
		t.Errorf("%+v: %v", o, err)
	}
	unsaid := good
	unsaid.Workers = 0
	if o, err := unsaid.checked(); err != nil || o.Workers < 1 {
		t.Errorf("%+v: %v", o, err)
	}
	for name, spoil := range map[string]func(*BuildOptions){
		"no warehouse":        func(o *BuildOptions) { o.Warehouses = 0 },
		"fewer warehouses":    func(o *BuildOptions) { o.Warehouses = -3 },
		"too many warehouses": func(o *BuildOptions) { o.Warehouses = MostWarehouses + 1 },
		"too many workers":    func(o *BuildOptions) { o.Workers = MostWorkers + 1 },
		"fewer workers":       func(o *BuildOptions) { o.Workers = -1 },
		"fillfactor 9":        func(o *BuildOptions) { o.Fillfactor = 9 },
		"fillfactor 101":      func(o *BuildOptions) { o.Fillfactor = 101 },
		"schema":              func(o *BuildOptions) { o.Schema = "pg_catalog" },
		"mode":                func(o *BuildOptions) { o.Mode = "fast" },
	} {
		o := good
		spoil(&o)
		if _, err := o.checked(); !errors.Is(err, ErrOption) && !errors.Is(err, form.ErrMode) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRunOptions(t *testing.T) {
	config := &pgx.ConnConfig{}
	good := RunOptions{Users: 1, Mode: Compatible, Call: Procedures, Measure: time.Second}
	o, err := good.checked(config)
	if err != nil || o.Schema != DefaultSchema || o.SpawnEvery != spawnEvery || len(o.Targets) != 1 || o.Targets[0] != config {
		t.Errorf("%+v: %v", o, err)
	}
	for name, spoil := range map[string]func(*RunOptions){
		"no user":           func(o *RunOptions) { o.Users = 0 },
		"too many users":    func(o *RunOptions) { o.Users = MostUsers + 1 },
		"no time":           func(o *RunOptions) { o.Measure = 0 },
		"too little time":   func(o *RunOptions) { o.Measure = time.Second - 1 },
		"ramp-up":           func(o *RunOptions) { o.RampUp = -1 },
		"schema":            func(o *RunOptions) { o.Schema = "Lab" },
		"mode":              func(o *RunOptions) { o.Mode = "" },
		"way to call":       func(o *RunOptions) { o.Call = "functions" },
		"no way to call it": func(o *RunOptions) { o.Call = "" },
	} {
		o := good
		spoil(&o)
		_, err := o.checked(config)
		if !errors.Is(err, ErrOption) && !errors.Is(err, form.ErrMode) && !errors.Is(err, form.ErrCall) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The mark of a database is a statement that cannot be broken out of, and says all again.
func TestMark(t *testing.T) {
	about := About{Version: version, Mode: "it's", Warehouses: 3, Seed: 1 << 63, Unlogged: true, Fillfactor: 70, Began: time.Unix(5, 0).UTC()}
	sql, err := about.comment("lab")
	if err != nil {
		t.Fatal(err)
	}
	text, ok := strings.CutPrefix(sql, `COMMENT ON TABLE "lab".warehouse IS '`+mark)
	if !ok || strings.Contains(strings.ReplaceAll(strings.TrimSuffix(text, "'"), "''", ""), "'") {
		t.Fatal(sql)
	}
	var back About
	if err := json.Unmarshal([]byte(strings.ReplaceAll(strings.TrimSuffix(text, "'"), "''", "'")), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(about, back); diff != "" {
		t.Error(diff)
	}
}

func TestUsable(t *testing.T) {
	good := About{Version: version, Mode: Compatible, Finished: time.Unix(9, 0)}
	for _, c := range []struct {
		spoil func(*About)
		want  error
	}{
		{func(*About) {}, nil},
		{func(a *About) { a.Finished = time.Time{} }, ErrUnfinished},
		{func(a *About) { a.Version++ }, ErrUnfinished},
		{func(a *About) { a.Mode = Specification }, ErrOtherMode},
	} {
		a := good
		c.spoil(&a)
		if err := a.usable(Compatible); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, not %v", a, err, c.want)
		}
	}
}

func TestFits(t *testing.T) {
	s := seats.Server{Most: 100, Reserved: 3, InUse: 7}
	if err := fits(s, 90); err != nil {
		t.Error(err)
	}
	if err := fits(s, 91); !errors.Is(err, ErrNoRoom) || !strings.Contains(err.Error(), "there is room for 90") {
		t.Error(err)
	}
}

// Counts go by the time that was measured, and not by the one that was asked for.
func TestCount(t *testing.T) {
	begin := time.Unix(100, 0)
	first := reading{at: begin, orders: 6000, transactions: 1000, commits: 500, rollbacks: 5, server: "a"}
	last := reading{at: begin.Add(90 * time.Second), orders: 6300, transactions: 1690, commits: 1100, rollbacks: 9, server: "a"}
	r := Result{Asked: time.Minute}
	r.count(first, last)
	if r.NOPM != 200 || r.TPM != 460 || r.Orders != 300 || r.Transactions != 690 || r.Commits != 600 || r.Rollbacks != 4 || r.Ratio() != 2.3 || r.ServerChanged {
		t.Errorf("%+v", r)
	}
	r.CPU = meter.CPU{User: 30 * time.Second, System: 15 * time.Second}
	if r.Processors() != 0.5 {
		t.Errorf("it kept %v processors busy", r.Processors())
	}
	for _, spoil := range []func(*reading){func(l *reading) { l.server = "b" }, func(l *reading) { l.transactions = 10 }} {
		other := last
		spoil(&other)
		r := Result{}
		r.count(first, other)
		if r.NOPM != 200 || r.TPM != 0 || r.Commits != 0 || !r.ServerChanged {
			t.Errorf("%+v", r)
		}
	}
	var nothing Result
	nothing.count(first, first)
	if nothing.NOPM != 0 || nothing.Ratio() != 0 || nothing.Processors() != 0 {
		t.Errorf("%+v", nothing)
	}
}

func TestSharedHomes(t *testing.T) {
	for _, c := range []struct {
		homes []int
		want  int
	}{{nil, 0}, {[]int{1}, 0}, {[]int{3, 1, 2}, 0}, {[]int{3, 1, 3}, 2}, {[]int{2, 2, 2, 1}, 3}, {[]int{1, 2, 1, 2}, 4}} {
		if got := sharedHomes(c.homes); got != c.want {
			t.Errorf("%v: %d, not %d", c.homes, got, c.want)
		}
	}
}

// Later code distributes the tables by what the layout says of them.
func TestLayout(t *testing.T) {
	spread := map[string]string{}
	for _, table := range Layout() {
		spread[table.Name] = table.Distribution.Column
	}
	want := map[string]string{
		"warehouse": "w_id", "district": "d_w_id", "customer": "c_w_id", "history": "h_w_id", "orders": "o_w_id",
		"new_order": "no_w_id", "order_line": "ol_w_id", "stock": "s_w_id", "item": "",
	}
	if diff := cmp.Diff(want, spread); diff != "" {
		t.Error(diff)
	}
}
