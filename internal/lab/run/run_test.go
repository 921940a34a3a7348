package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/lab/address"
	"howdah/internal/lab/experiment"
	"howdah/internal/lab/result"
	"howdah/internal/lab/target"
	"howdah/internal/testkit/pgtest"
	"howdah/internal/testkit/pgversion"
)

// given is an experiment against a server, of which a test changes something.
func given(t *testing.T, s *pgtest.Server, source string) Options {
	t.Helper()
	e, err := experiment.Read([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	server, err := address.Parse("postgresql://"+s.User+"@"+s.Addr+"/"+s.Database+"?sslmode=disable", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	install, err := postgres.Find(pgversion.Major())
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Experiment: e, Source: source, Release: "1.2", Dir: filepath.Join(t.TempDir(), e.Name), Target: &target.Address{Server: server},
		PGBench: install.Program("pgbench"),
	}
}

const small = `
name: small
title: {en: Small}
question: {en: Small}
factors: [{name: tables, title: {en: Tables}, levels: [logged, unlogged]}]
runs: 2
prepare: [{sql: {text: CREATE TABLE prepared ()}}]
each:
  - init: {scale: 1, tables: $tables}
  - sql: {text: "SELECT count(*) FROM pgbench_accounts", value: rows}
  - sql: {text: CHECKPOINT, figure: checkpoint}
  - pgbench: {scripts: [{builtin: tpcb-like}, {sql: SELECT 1, weight: 3}], clients: 2, seconds: 2, protocol: prepared}
  - pgbench: {scripts: [{builtin: select-only}], clients: 1, transactions: 50, prefix: read_}
  - catch_up: {figure: behind, within: 5}
compare: [{factor: tables, base: logged, figure: tps}]
quick: {}
`

func TestARun(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	o := given(t, s, small)
	var told []Progress
	o.Told = func(p Progress) { told = append(told, p) }
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Points) != 4 || len(r.Problems) > 0 || r.Ended.IsZero() || len(r.Settings) != 2 || len(r.Comparisons) != 1 {
		t.Fatalf("%+v", r)
	}
	for _, p := range r.Points {
		f := p.Figures
		if p.Struck != "" || f["tps"] <= 0 || f["rows"] != 100_000 || f["read_transactions"] != 50 || f["latency_p50_ms"] <= 0 || f["latency_p99_ms"] < f["latency_p50_ms"] {
			t.Errorf("%+v", p)
		}
		if _, there := f["behind"]; there || f["client_cpu"] <= 0 || len(p.Commands) != 2 || !strings.HasPrefix(p.Commands[0], "pgbench -c 2 -j 2 ") {
			t.Errorf("%+v", p)
		}
	}
	if !strings.HasPrefix(r.PGBench, "pgbench (PostgreSQL) ") || len(r.Resumed) > 0 {
		t.Errorf("pgbench is %q, and it went on at %v", r.PGBench, r.Resumed)
	}
	if e := r.Environment; e == nil || e.Host == nil || !strings.HasPrefix(e.Database.Version, "PostgreSQL") {
		t.Errorf("the environment: %+v", e)
	}
	// Nothing says that one is faster after two runs.
	if c := r.Comparisons[0]; c.Figures.Carried {
		t.Errorf("%+v", c)
	}
	ticks, err := result.ReadSeries(o.Dir)
	if err != nil || len(ticks) == 0 || ticks[len(ticks)-1].Point != 3 {
		t.Errorf("%d ticks, %v", len(ticks), err)
	}
	if last := told[len(told)-1]; last.Point != 4 || last.Points != 4 || last.Left == 0 || last.Step != "catch_up" {
		t.Errorf("%+v", last)
	}
	// The same command has nothing more to do.
	again, err := Run(t.Context(), o)
	if err != nil || len(again.Points) != 4 {
		t.Errorf("%+v, %v", again, err)
	}
	left, err := filepath.Glob(filepath.Join(o.Dir, "pgbench-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("it leaves %q, %v", left, err)
	}
	if outside := schemas(t, s); outside != target.Schema {
		t.Errorf("tables are in %s", outside)
	}
}

// schemas lists those in which somebody has tables.
func schemas(t *testing.T, s *pgtest.Server) (names string) {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	err = conn.QueryRow(t.Context(), "SELECT coalesce(string_agg(DISTINCT schemaname, ' '), '') FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')").Scan(&names)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A run that is broken off goes on at the next point, and measures none twice.
func TestARunThatIsBrokenOffGoesOn(t *testing.T) {
	t.Parallel()
	o := given(t, pgtest.Start(t, pgtest.Options{}), strings.Replace(small, "prepare: [{sql: {text: CREATE TABLE prepared ()}}]\n", "", 1))
	ctx, cancel := context.WithCancel(t.Context())
	o.Told = func(p Progress) {
		if p.Point == 3 && p.Step == "pgbench" {
			time.AfterFunc(200*time.Millisecond, cancel)
		}
	}
	if r, err := Run(ctx, o); !errors.Is(err, context.Canceled) || len(r.Points) != 2 || !r.Ended.IsZero() {
		t.Fatalf("%+v, %v", r, err)
	}
	before, err := result.Read(o.Dir)
	if err != nil || len(before.Points) != 2 {
		t.Fatalf("%+v, %v", before, err)
	}
	o.Told = nil
	after, err := Run(t.Context(), o)
	if err != nil || len(after.Points) != 4 || after.Ended.IsZero() || !after.Points[1].Began.Equal(before.Points[1].Began) {
		t.Fatalf("%+v, %v", after, err)
	}
	if len(before.Resumed) > 0 || len(after.Resumed) != 1 || after.Resumed[0].Before(after.Points[1].Began) || after.Points[2].Began.Before(after.Resumed[0]) {
		t.Errorf("it went on at %v", after.Resumed)
	}
	// One of an older release is not gone on with: it stays as it is.
	before.Schema = result.Schema - 1
	if err := result.Write(o.Dir, before); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), o); !errors.Is(err, result.ErrOlder) {
		t.Errorf("it is of an older release: %v", err)
	}
	// A directory belongs to one experiment, in one form.
	o.Quick = true
	if _, err := Run(t.Context(), o); !errors.Is(err, ErrOther) {
		t.Errorf("another form of it: %v", err)
	}
	unlock, err := lock(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := Run(t.Context(), o); !errors.Is(err, ErrBusy) {
		t.Errorf("while another one writes: %v", err)
	}
}

// What fails is in the result, does not count, and ends the run if nothing else happens.
func TestWhatFailsIsTold(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	o := given(t, s, `
name: fails
title: {en: Fails}
question: {en: Fails}
factors: [{name: by, title: {en: By}, levels: [0, 1]}]
runs: 2
each:
  - sql: {text: "SELECT 1 / ${by}", value: one}
quick: {}
`)
	r, err := Run(t.Context(), o)
	if err != nil || len(r.Points) != 4 || len(r.Problems) != 2 || !strings.Contains(r.Problems[0], "by=0, run 1: sql failed") || !strings.Contains(r.Problems[0], "division by zero") {
		t.Fatalf("%+v, %v", r, err)
	}
	if f := r.Settings[1].Figures["one"]; f.Runs != 2 || f.Median != 1 {
		t.Errorf("%+v", f)
	}

	o = given(t, s, strings.ReplaceAll(o.Source, "levels: [0, 1]", "levels: [0]")+"values: {}\n")
	o.Experiment.Runs, o.Dir = 9, filepath.Join(t.TempDir(), "always")
	if r, err := Run(t.Context(), o); !errors.Is(err, ErrFails) || len(r.Points) != mostFailures {
		t.Errorf("it always fails: %d points, %v", len(r.Points), err)
	}
}

// Clients that are ended, and transactions that fail, strike a point.
func TestPointsThatDoNotCount(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	o := given(t, s, `
name: ended
title: {en: Ended}
question: {en: Ended}
runs: 1
each:
  - pgbench: {scripts: [{sql: "SELECT pg_terminate_backend(pg_backend_pid())"}], clients: 2, transactions: 5}
quick: {}
`)
	r, err := Run(t.Context(), o)
	if err != nil || len(r.Points) != 1 || !strings.Contains(r.Points[0].Struck, "terminating connection") || !strings.HasPrefix(r.Problems[0], "run 1: ") {
		t.Errorf("%+v, %v", r, err)
	}
}

// A point that is struck is made once more if somebody wants that, and only that one.
func TestStruckPointsAreMadeAgain(t *testing.T) {
	t.Parallel()
	o := given(t, pgtest.Start(t, pgtest.Options{}), `
name: again
title: {en: Again}
question: {en: Again}
factors: [{name: by, title: {en: By}, levels: [1, 2]}]
runs: 1
each:
  - sql: {text: "SELECT 1 / (CASE WHEN ${by} = 2 AND to_regclass('howdah_lab.mended') IS NULL THEN 0 ELSE 1 END)", value: one}
  - sql: {text: "CREATE TABLE IF NOT EXISTS howdah_lab.other ()"}
quick: {}
`)
	r, err := Run(t.Context(), o)
	if err != nil || len(r.Points) != 2 || r.Points[1].Struck == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	conn, err := pgx.ConnectConfig(t.Context(), o.Target.At().Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "CREATE TABLE howdah_lab.mended ()"); err != nil {
		t.Fatal(err)
	}
	if r, err = Run(t.Context(), o); err != nil || len(r.Points) != 2 {
		t.Errorf("nobody wants it again: %+v, %v", r, err)
	}
	o.Again = true
	for range 2 {
		r, err = Run(t.Context(), o)
		if err != nil || len(r.Points) != 3 || !r.Points[1].Again || r.Points[2].Struck != "" || r.Points[2].Run != 1 || r.Ended.IsZero() || r.Settings[1].Figures["one"].Runs != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// Rows of a point that was lost with a kill are not there twice.
func TestRowsOfALostPoint(t *testing.T) {
	t.Parallel()
	o := given(t, pgtest.Start(t, pgtest.Options{}), strings.Replace(changing, "ALTER ROLE CURRENT_USER SET work_mem = '${kb}kB'", "SELECT ${kb}", 1))
	lost := result.Tick{At: time.Unix(1, 0), Name: "tps", Value: 1}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := result.Append(o.Dir, []result.Tick{lost}); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if all, err := result.ReadSeries(o.Dir); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestWhatCannotBeRunIsRefused(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{Settings: "max_connections = 10\n"})
	o := given(t, s, strings.Replace(small, "clients: 2", "clients: 20", 1))
	r, err := Run(t.Context(), o)
	if !errors.Is(err, target.ErrClients) || len(r.Points) > 0 {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(o.Dir, result.FileName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it left a result: %v", err)
	}
	// So are data for which there is no room. Nothing is made before.
	s = pgtest.Start(t, pgtest.Options{})
	o = given(t, s, strings.Replace(small, "scale: 1,", "scale: 1000000,", 1))
	if r, err := Run(t.Context(), o); !errors.Is(err, target.ErrRoom) || len(r.Points) > 0 {
		t.Errorf("%v", err)
	}
	if there := schemas(t, s); there != "" {
		t.Errorf("it made tables in %s", there)
	}
}

func TestCommandsAsOneTypesThem(t *testing.T) {
	t.Parallel()
	for want, words := range map[string][]string{
		"pgbench -c 1 postgresql://app@h/x": {"pgbench", "-c", "1", "postgresql://app@h/x"},
		`a '' 'b c' 'it'\''s' '$x'`:         {"a", "", "b c", "it's", "$x"},
	} {
		if got := quoted(words); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// moved is an address that leads to another server after some points.
type moved struct {
	*target.Address
	points int
}

func (m *moved) Become(ctx context.Context, w experiment.Wanted) (bool, error) {
	if m.points--; m.points < 0 {
		return false, target.ErrOther
	}
	return m.Address.Become(ctx, w)
}

// A run ends where another server answers. It can go on when the right one does again.
func TestARunEndsAtAnotherServer(t *testing.T) {
	t.Parallel()
	o := given(t, pgtest.Start(t, pgtest.Options{}), `
name: moved
title: {en: Moved}
question: {en: Moved}
runs: 3
each: [{sql: {text: SELECT 1, value: one}}]
quick: {}
`)
	right := o.Target.(*target.Address) //nolint:forcetypeassert // given has made it
	o.Target = &moved{Address: right, points: 2}
	if r, err := Run(t.Context(), o); !errors.Is(err, target.ErrOther) || len(r.Points) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	o.Target = right
	r, err := Run(t.Context(), o)
	if err != nil || len(r.Points) != 3 || len(r.Problems) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A server may say what is no number. No result can have it, and the point says so.
func TestFiguresThatAreNoNumbers(t *testing.T) {
	t.Parallel()
	o := given(t, pgtest.Start(t, pgtest.Options{}), `
name: none
title: {en: None}
question: {en: None}
factors: [{name: which, title: {en: Which}, levels: [NaN, "-Infinity", "7"]}]
runs: 1
each: [{sql: {text: "SELECT '${which}'", value: one}}]
quick: {}
`)
	r, err := Run(t.Context(), o)
	if err != nil || len(r.Points) != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	for n, words := range []string{"one is no number: NaN", "one is no number: -Inf", ""} {
		p := r.Points[n]
		value, there := p.Figures["one"]
		if there != (words == "") || words != "" && (len(p.Errors) != 1 || p.Errors[0] != words) || words == "" && value != 7 {
			t.Errorf("%+v", p)
		}
	}
}
