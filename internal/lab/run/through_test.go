package run

import (
	"context"
	"errors"
	"strings"
	"testing"

	"howdah/internal/lab/address"
	"howdah/internal/lab/experiment"
	"howdah/internal/lab/pgpool"
	"howdah/internal/lab/target"
	"howdah/internal/testkit"
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
		server, err := address.Parse("postgresql://"+s.User+"@"+standby.Addr+"/"+s.Database+"?sslmode=disable", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		o.Target = pair{Address: o.Target.(*target.Address), standby: server} //nolint:forcetypeassert // given made it
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
