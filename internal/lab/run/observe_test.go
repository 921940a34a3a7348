package run

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/lab/address"
	"howdah/internal/lab/experiment"
	"howdah/internal/lab/result"
	"howdah/internal/lab/target"
	"howdah/internal/lab/tpcc"
	"howdah/internal/lab/verdict"
	"howdah/internal/observe"
	"howdah/internal/observe/series"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

const watched = `
name: watched
title: {en: Watched}
question: {en: Watched}
factors: [{name: clients, title: {en: Clients}, levels: [1, 8]}]
runs: 1
prepare: [{init: {scale: 1}}]
each:
  - pgbench: {scripts: [{builtin: tpcb-like}], clients: $clients, warmup: 1, seconds: 5}
quick: {}
`

// Eight clients that change one row wait for it, and the report says so.
func TestAPointIsObserved(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	server.Follow("second", pgtest.Options{})
	o := given(t, server, watched)
	sleeps(t, server)
	r, err := Run(t.Context(), o)
	if err != nil || len(r.Points) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	p := r.Points[1]
	if len(p.Observed) != 1 || p.Observed[0].Failed != "" {
		t.Fatalf("%+v", p.Observed)
	}
	seen := p.Observed[0]
	// The warm-up is left out, and so is what is less than a row at the end.
	if rows := seen.Observed.Rows; rows < 3 || rows > 6 {
		t.Errorf("%d rows of 5 s", rows)
	}
	if f := seen.Verdict.Limit(); f.Cause != verdict.RowLock {
		t.Errorf("%s: %s; %+v", f.Cause, f.Sentence, seen)
	}
	if l := seen.Load; l.Clients != 8 || l.TPS <= 0 || l.LatencyMS <= 0 || l.RoundTrips != 7 || l.Cores < 1 {
		t.Errorf("the load is %+v", l)
	}
	// Another program's session is no part of the load, and is told.
	if others, _ := seen.Observed.Mean(series.SessionsForeign); others < 0.9 || seen.Verdict.Cause != verdict.Noise || seen.Observed.Columns["wait.Timeout:PgSleep"].Mean > 0 {
		t.Errorf("%v sessions of others, %s", others, seen.Verdict.Cause)
	}
	// What the counters say is what pgbench says, but for what connecting and observing take.
	commits := seen.Counters["db.commits"]
	if made := p.Figures["transactions"]; commits.After-commits.Before < made || commits.After-commits.Before > made+500 {
		t.Errorf("%v commits, and %v transactions", commits, made)
	}
	for _, name := range []string{"aas", "aas_lock", "server_cpu_percent", "machine_cpu_percent", "wal_mb_s", "wal_bytes_tx", "hit_percent"} {
		if p.Figures[name] <= 0 {
			t.Errorf("%s is %v", name, p.Figures[name])
		}
	}
	if s := seen.Standbys["second"]; s["streaming"] != 1 || s["replay_lsn"] == 0 {
		t.Errorf("the standby is %v", seen.Standbys)
	}
	if _, known := p.Figures["replay_lag_mb"]; !known {
		t.Error("how far the standby is behind is not known")
	}
	if s := r.Settings[1]; len(s.Limits) != 1 || s.Limits[0].Cause != verdict.RowLock || s.Limits[0].Agree != 1 {
		t.Errorf("%+v", s.Limits)
	}
	if sweeps := r.Sweeps(o.Experiment); len(sweeps) != 1 || len(sweeps[0].Steps) != 2 || sweeps[0].Steps[1].Clients != 8 {
		t.Errorf("%+v", sweeps)
	}
	ticks, err := result.ReadSeries(o.Dir)
	if err != nil || !slices.ContainsFunc(ticks, func(t result.Tick) bool { return t.Point == 1 && t.Name == series.ActiveLock && t.Value > 0 }) {
		t.Errorf("%d ticks, %v", len(ticks), err)
	}
}

// sleeps has another program's session at work until the test ends.
func sleeps(t *testing.T, server *pgtest.Server) {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), server.Config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var sleeping sync.WaitGroup
	sleeping.Go(func() { _, _ = conn.Exec(ctx, "SELECT pg_sleep(1000)") }) // it is ended by the test
	t.Cleanup(func() { cancel(); sleeping.Wait(); conn.Close(context.WithoutCancel(ctx)) })
}

// A target that cannot be observed is measured all the same. So is one that nobody wants to observe.
func TestWhatCannotBeObserved(t *testing.T) {
	t.Parallel()
	server, err := address.Parse("postgresql://nobody@"+testkit.FreeAddr(t)+"/none?sslmode=disable", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &doing{Options: Options{Target: &target.Address{Server: server}}}
	ran := 0
	do := func(load interval) (verdict.Load, error) {
		load.begin(observe.Processes{Own: true})
		load.end()
		ran++
		return verdict.Load{}, nil
	}
	if err := d.observed(t.Context(), "", do); err != nil || ran != 1 || len(d.point.Observed) != 1 || d.point.Observed[0].Failed == "" {
		t.Errorf("%v, %+v", err, d.point)
	}
	d.Blind = true
	if err := d.observed(t.Context(), "", do); err != nil || ran != 2 || len(d.point.Observed) != 1 {
		t.Errorf("%v, %+v", err, d.point)
	}
}

var errLoad = errors.New("the load failed")

// A load that fails, or never begins, leaves no observation.
func TestALoadThatFails(t *testing.T) {
	t.Parallel()
	d := &doing{Options: given(t, pgtest.Start(t, pgtest.Options{}), watched)}
	err := d.observed(t.Context(), "", func(load interval) (verdict.Load, error) {
		load.begin(observe.Processes{Own: true})
		return verdict.Load{}, errLoad
	})
	if !errors.Is(err, errLoad) || len(d.point.Observed) != 0 {
		t.Errorf("%v, %+v", err, d.point)
	}
	err = d.observed(t.Context(), "", func(interval) (verdict.Load, error) { return verdict.Load{}, nil })
	if err != nil || len(d.point.Observed) != 0 {
		t.Errorf("%v, %+v", err, d.point)
	}
	// One that ends at once was not seen.
	err = d.observed(t.Context(), "", func(load interval) (verdict.Load, error) {
		load.begin(observe.Processes{Own: true})
		return verdict.Load{}, nil
	})
	if err != nil || len(d.point.Observed) != 1 || d.point.Observed[0].Failed == "" {
		t.Errorf("%v, %+v", err, d.point)
	}
}

// What is done after a load, such as reading its files, is no part of what was seen of it.
func TestALoadEndsWhenItSaysSo(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	d := &doing{Options: given(t, server, watched)}
	var ended time.Time
	err := d.observed(t.Context(), "", func(load interval) (verdict.Load, error) {
		load.begin(observe.Processes{Own: true})
		load.end()
		ended = time.Now()
		server.Exec("SELECT pg_sleep(0.05)")
		return verdict.Load{}, nil
	})
	if err != nil || len(d.point.Observed) != 1 || d.point.Observed[0].Observed.To > ended.UnixMilli() {
		t.Errorf("%v, ended at %d: %+v", err, ended.UnixMilli(), d.point.Observed)
	}
}

func TestTheLoadOfUsers(t *testing.T) {
	t.Parallel()
	began := time.Unix(1790000000, 0)
	r := tpcc.Result{From: began, To: began.Add(10 * time.Second), Transactions: 9000, Kinds: []tpcc.KindResult{{Calls: 300}, {Calls: 200}}}
	if l := orderLoad(experiment.TPCC{Users: 1}, r); l.TPS != 50 {
		t.Errorf("of 500 transactions in 10 s, and others of other databases: %+v", l)
	}
}

func TestRoundTrips(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scripts []experiment.Script
		want    float64
	}{
		{[]experiment.Script{{Builtin: "tpcb-like", Weight: 1}}, 7},
		{[]experiment.Script{{Builtin: "simple-update", Weight: 1}, {Builtin: "select-only", Weight: 3}}, 2},
		{[]experiment.Script{{SQL: "BEGIN; SELECT 1;\nEND;\n", Weight: 1}}, 3},
		{[]experiment.Script{{SQL: "SELECT 1", Weight: 1}}, 1},
		{[]experiment.Script{{SQL: "\\set a 1\nSELECT :a;", Weight: 1}}, 0},
		{[]experiment.Script{{SQL: "DO $$ BEGIN; END; $$", Weight: 1}}, 0},
		{nil, 0},
	} {
		if got := roundTrips(c.scripts); got != c.want {
			t.Errorf("%+v: %v, want %v", c.scripts, got, c.want)
		}
	}
}

func TestLimitsThatAServerLacks(t *testing.T) {
	t.Parallel()
	row := func(columns ...string) []series.Row {
		values := map[string]float64{}
		for _, c := range columns {
			values[c] = 1
		}
		return []series.Row{{}, {Values: values}}
	}
	for _, tt := range []struct {
		what  string
		iops  int
		rows  []series.Row
		lacks bool
	}{
		{"none was asked for", 0, row(series.ServerCPU), false},
		{"it is there", 1000, row(series.ServerCPU, series.ServerReadLimit), false},
		{"it is not there", 1000, row(series.ServerCPU), true},
		{"the server runs elsewhere", 1000, row(series.Commits), false},
		{"nothing was seen", 1000, nil, false},
	} {
		if said := lacks(experiment.Wanted{IOPS: tt.iops}, tt.rows); (said != "") != tt.lacks {
			t.Errorf("%s: %q", tt.what, said)
		}
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	reading := func(epoch string, values map[string]float64) series.Reading {
		r := series.NewReading()
		r.Add("f", epoch, time.Time{}, values)
		return r
	}
	before := reading("1", map[string]float64{"grew": 1, "same": 2, "fell": 3})
	after := map[string]float64{"grew": 5, "same": 2, "fell": 1, "new": 9}
	if got := changes(before, reading("1", after)); len(got) != 1 || got["grew"] != (result.Change{Before: 1, After: 5}) {
		t.Errorf("%v", got)
	}
	if got := changes(before, reading("2", after)); len(got) != 0 {
		t.Errorf("over a restart: %v", got)
	}
	if got := anew(before, reading("2", after)); !slices.Equal(got, []string{"f"}) || len(anew(before, reading("1", after))) > 0 {
		t.Errorf("over a restart: %v", got)
	}
	// That there was no checkpoint is known, or not.
	quiet := reading("1", map[string]float64{"checkpoint.timed": 3, "checkpoint.requested": 1})
	for what, c := range map[string]struct {
		after series.Reading
		known bool
	}{"none": {quiet, true}, "they were reset": {reading("2", map[string]float64{"checkpoint.timed": 0, "checkpoint.requested": 0}), false}} {
		if n, known := checkpoints(result.Observation{Counters: changes(quiet, c.after)}); n != 0 || known != c.known {
			t.Errorf("%s: %v, %t", what, n, known)
		}
	}
}

// Sessions under another name are not taken for no sessions.
func TestSessionsThatAreHidden(t *testing.T) {
	t.Parallel()
	seen := func(sessions, tps float64) result.Observation {
		return result.Observation{Load: verdict.Load{TPS: tps}, Observed: series.Summary{Columns: map[string]series.Stat{
			series.Sessions: {Mean: sessions}, series.Active: {}, series.ActiveCPU: {}, series.SessionsForeign: {Mean: 8}, series.LockWaiting: {}, series.Commits: {Mean: 9},
		}}}
	}
	for what, c := range map[string]struct {
		o       result.Observation
		columns int
	}{"none of the load's": {seen(0, 100), 1}, "some": {seen(4, 100), 6}, "a load that did nothing": {seen(0, 0), 6}} {
		hidden(&c.o)
		if len(c.o.Observed.Columns) != c.columns || (len(c.o.Missing) == 1) != (c.columns == 1) {
			t.Errorf("%s: %+v", what, c.o)
		}
	}
}

// What a machine does is the server's, or the load generator's.
func TestTheMachineOfAFigure(t *testing.T) {
	t.Parallel()
	columns := map[string]series.Stat{series.MachineCPU: {Mean: 1}, series.MachineCPUs: {Mean: 2}}
	for elsewhere, want := range map[bool]string{false: "machine_cpu_percent", true: "client_machine_cpu_percent"} {
		got := map[string]float64{}
		for _, f := range figures {
			if value, known := f.of(result.Observation{Elsewhere: elsewhere, Observed: series.Summary{Columns: columns}}); known {
				got[f.name] = value
			}
		}
		if len(got) != 1 || got[want] != 50 {
			t.Errorf("%t: %v", elsewhere, got)
		}
	}
}

// Gaps in what is known of sessions are told: a server that answers late has most to do then.
func TestSecondsThatNobodySaw(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		length int64
		seen   float64
		says   string
	}{{60, 59, ""}, {60, 55.5, ""}, {60, 20, "was seen in 20 of 60 seconds"}, {2, 1, ""}, {600, 560, "560 of 600"}} {
		s := series.Summary{To: 1000 * c.length, Columns: map[string]series.Stat{series.Active: {Seconds: c.seen}}}
		if got := unseen(s); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%v of %d: %q", c.seen, c.length, got)
		}
	}
	if got := unseen(series.Summary{To: 60000}); got != "" {
		t.Errorf("a login that sees no sessions: %q", got)
	}
}

func TestStandbysByName(t *testing.T) {
	t.Parallel()
	got := standbys(map[string]float64{"standby.db.a#2.replay_lag_bytes": 7, "standby.b.sync": 1, "slot.x.active": 1})
	if len(got) != 2 || got["db.a#2"]["replay_lag_bytes"] != 7 || got["b"]["sync"] != 1 {
		t.Errorf("%v", got)
	}
	if value, known := lag(result.Observation{Standbys: got}); !known || value != 7e-6 {
		t.Errorf("%v, %t", value, known)
	}
}

// Seconds with a checkpoint are told from the others by the rows that they are in.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	var rows []series.Row
	var ticks []result.Tick
	for second := range int64(20) {
		running, tps := 0.0, 100.0
		if second >= 10 {
			running, tps = 1, 40
		}
		rows = append(rows, series.Row{At: 1000 * (second + 1), Seconds: 1, Values: map[string]float64{series.CheckpointRunning: running}})
		ticks = append(ticks, result.Tick{At: time.UnixMilli(1000*(second+1) + 200), Name: "tps", Value: tps}, result.Tick{Point: 1, Name: "tps"})
	}
	if got := checkpointTPS(rows, ticks, 0, "tps"); got != 0.4 {
		t.Errorf("%v", got)
	}
	if got := checkpointTPS(rows[:12], ticks, 0, "tps"); got != 0 {
		t.Errorf("of two seconds: %v", got)
	}
}

func TestWhatIsKeptOfEachSecond(t *testing.T) {
	t.Parallel()
	row := series.Row{Values: map[string]float64{"aas": 1, "aas.cpu": 1, "aasx": 1, "wait.CPU": 1, "io.client.reads": 1, "standby.s.replay_lag_bytes": 0, "server.cpu": 1, "server.psi.io": 0}}
	want := []string{"aas", "aas.cpu", "server.cpu", "standby.s.replay_lag_bytes", "wait.CPU"}
	if got := kept(row); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
