package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/host/pace"
	"howdah/internal/lab/address"
	"howdah/internal/lab/experiment"
	"howdah/internal/lab/pgbench"
	"howdah/internal/lab/pgpool"
	"howdah/internal/lab/result"
	"howdah/internal/lab/target"
	"howdah/internal/testkit"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/pgtest"
)

// pair is a target that knows its standby, as a Howdah does.
type pair struct {
	*target.Address
	standby address.Server
}

func (p pair) Able() []string { return append(p.Address.Able(), experiment.NeedHowdah) }

func (p pair) Nodes(context.Context) ([]target.Node, error) {
	return []target.Node{{Name: "standby", Server: p.standby}}, nil
}

func (p pair) Reader(context.Context) (address.Server, error) { return p.standby, nil }

const balanced = `
name: balanced
title: {en: Balanced}
question: {en: Balanced}
factors: [{name: through, title: {en: Way}, levels: [direct, reader, pgpool]}]
runs: 1
each:
  - init: {scale: 1}
  - pgbench: {scripts: [{builtin: select-only}], through: $through, stale: 2, clients: 2, seconds: 2}
quick: {}
`

const writing = `
name: writing
title: {en: Writing}
question: {en: Writing}
factors: [{name: through, title: {en: Way}, levels: [direct, pgpool]}]
runs: 1
each:
  - init: {scale: 1}
  - pgbench: {scripts: [{builtin: tpcb-like}], through: $through, stale: 1, clients: 2, seconds: 2}
quick: {}
`

func TestWays(t *testing.T) {
	t.Parallel()
	if _, err := pgpool.Find(); err != nil {
		testkit.Missing(t, "pgpool")
	}
	s := pgtest.Start(t, pgtest.Options{})
	standby := s.Follow("reader", pgtest.Options{})
	for _, source := range []string{balanced, writing} {
		o := given(t, s, source)
		o.Target = pair{Address: o.Target.(*target.Address), standby: addressOf(t, standby)} //nolint:forcetypeassert // given made it
		r, err := Run(t.Context(), o)
		if err != nil || len(r.Points) != len(o.Experiment.Settings()) {
			t.Fatalf("%+v, %v", r, err)
		}
		for _, p := range r.Points {
			f := p.Figures
			if p.Struck != "" || f["tps"] <= 0 || f["checked_reads"] <= 0 {
				t.Errorf("%s: %+v", p.Setting, p)
			}
			pooled := strings.Contains(p.Setting, "pgpool")
			if _, has := f["pgpool_cpu"]; has != pooled || strings.Contains(strings.Join(p.Commands, " "), "# pgpool-II version") != pooled {
				t.Errorf("%s: %+v", p.Setting, p)
			}
			if strings.Contains(p.Setting, "direct") && f["stale_reads"] != 0 {
				t.Errorf("the primary gave %v stale reads", f["stale_reads"])
			}
			t.Logf("%s: %.0f TPS, %.1f %% of %.0f reads stale, oldest %.2f ms, pgpool %.2f cores", p.Setting, f["tps"], f["stale_percent"], f["checked_reads"], f["stale_age_ms"], f["pgpool_cpu"])
		}
	}
}

const paused = `
name: paused
title: {en: Paused}
question: {en: Paused}
factors: [{name: through, title: {en: Way}, levels: [direct, reader, pgpool]}]
runs: 1
each:
  - init: {scale: 1}
  - pgbench: {scripts: [{builtin: select-only}], through: $through, stale: 1, clients: 1, seconds: 4}
quick: {}
`

// lagging is a pair whose standby replays nothing from the moment on that rows are written, until the next
// point.
func lagging(t *testing.T, s, standby *pgtest.Server) {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), standby.Config())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		defer conn.Close(context.WithoutCancel(t.Context()))
		for pace.Sleep(t.Context(), 50*time.Millisecond) {
			var written int64
			if err := conn.QueryRow(t.Context(), "SELECT n FROM howdah_lab.stale_reads").Scan(&written); err != nil || written < 3 {
				continue
			}
			for _, sql := range []string{"SELECT pg_wal_replay_pause()", "SELECT pg_sleep(1.5)", "SELECT pg_wal_replay_resume()"} {
				if _, err := conn.Exec(t.Context(), sql); err != nil {
					return
				}
			}
		}
	}()
}

// A standby that replays nothing for a while gives stale reads, which are counted, and as old as they are.
func TestAPausedStandbyGivesStaleReads(t *testing.T) {
	depth.Deep(t)
	t.Parallel()
	if _, err := pgpool.Find(); err != nil {
		testkit.Missing(t, "pgpool")
	}
	s := pgtest.Start(t, pgtest.Options{})
	standby := s.Follow("reader", pgtest.Options{})
	o := given(t, s, paused)
	o.Target = pair{Address: o.Target.(*target.Address), standby: addressOf(t, standby)} //nolint:forcetypeassert // given made it
	lagging(t, s, standby)
	r, err := Run(t.Context(), o)
	if err != nil || len(r.Points) != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, p := range r.Points {
		f, old := p.Figures, !strings.Contains(p.Setting, "direct")
		if p.Struck != "" || (f["stale_reads"] > 0) != old || old && f["stale_age_ms"] < 1000 {
			t.Errorf("%s: %+v", p.Setting, p)
		}
		t.Logf("%s: %.1f %% of %.0f reads stale, oldest %.0f ms, %.0f writes", p.Setting, f["stale_percent"], f["checked_reads"], f["stale_age_ms"], f["stale_writes"])
	}
}

// A standby that dies strikes the point, with what pgpool said, and nothing of pgpool is left.
func TestAStandbyThatDies(t *testing.T) {
	t.Parallel()
	if _, err := pgpool.Find(); err != nil {
		testkit.Missing(t, "pgpool")
	}
	s := pgtest.Start(t, pgtest.Options{})
	standby := s.Follow("reader", pgtest.Options{})
	o := given(t, s, strings.Replace(strings.Replace(paused, "[direct, reader, pgpool]", "[pgpool]", 1), "seconds: 4", "seconds: 20", 1))
	o.Target = pair{Address: o.Target.(*target.Address), standby: addressOf(t, standby)} //nolint:forcetypeassert // given made it
	ended := make(chan error, 1)
	var r *result.Result
	go func() {
		var err error
		r, err = Run(t.Context(), o)
		ended <- err
	}()
	testkit.Eventually(t, time.Minute, func() error {
		conn, err := pgx.ConnectConfig(t.Context(), standby.Config())
		if err != nil {
			return err
		}
		defer conn.Close(t.Context())
		var written int64
		if err := conn.QueryRow(t.Context(), "SELECT n FROM howdah_lab.stale_reads").Scan(&written); err != nil || written < 3 {
			return fmt.Errorf("%w: %d writes", errBehind, written)
		}
		return nil
	})
	standby.Kill()
	if err := <-ended; err != nil || len(r.Points) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	p := r.Points[0]
	t.Logf("%s; %q", p.Struck, p.Errors)
	// It is told by clients that fail, or by sessions that pgpool began without the standby.
	said := strings.Contains(strings.Join(p.Errors, " "), "pgpool: ") || strings.Contains(p.Struck, "pgpool left a server out")
	if p.Struck == "" || p.Figures["checked_reads"] == 0 || !said {
		t.Errorf("%+v", p)
	}
	if _, err := os.Stat(filepath.Join(o.Dir, "pgpool")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it left something: %v", err)
	}
}

// A server that stands still keeps the lab for a while, and not for ever.
func TestClientsThatWaitForEver(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	s.Exec("CREATE TABLE held ()")
	conn, err := pgx.ConnectConfig(t.Context(), s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE held"); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "held.sql")
	if err := os.WriteFile(script, []byte("SELECT FROM held;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := way{read: addressOf(t, s), beyond: true, patience: time.Second}
	_, err = w.load(t.Context(), pgbench.Options{
		Program: given(t, s, small).PGBench, Scripts: []pgbench.Script{{File: script}}, Clients: 1, Time: time.Second, Protocol: "simple", Dir: t.TempDir(),
	})
	if !errors.Is(err, errStands) {
		t.Errorf("%v", err)
	}
}

func addressOf(t *testing.T, s *pgtest.Server) address.Server {
	t.Helper()
	server, err := address.Parse("postgresql://"+s.User+"@"+s.Addr+"/"+s.Database+"?sslmode=disable", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func TestAWayThatATargetHasNot(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	if _, err := Run(t.Context(), given(t, s, balanced)); !errors.Is(err, target.ErrUnable) {
		t.Errorf("%v", err)
	}
}

// Without pgpool nothing runs.
func TestAMissingPGPool(t *testing.T) {
	t.Parallel()
	_, missing := pgpool.Find()
	for source, needs := range map[string]bool{writing: true, small: false} {
		e, err := experiment.Read([]byte(source))
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckPrograms(e); needs && !errors.Is(err, missing) || !needs && err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
}
