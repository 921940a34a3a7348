package drivers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

// arm is a program that writes into a database of its own while something happens to the cluster.
type arm struct {
	*program
	database string
	took     []time.Duration // from what happened to the next statement that worked
}

// arm starts a program that writes. Without plugins it has the plain driver.
func (f *fleet) arm(l language, command []string, name, plugins string, more ...string) *arm {
	f.Helper()
	a := &arm{database: l.name + "_" + name}
	f.exec("postgres", "CREATE DATABASE "+a.database)
	f.exec(a.database, "CREATE TABLE ledger (id bigint PRIMARY KEY)")
	a.program = start(f.T, a.database, append(slices.Clone(command), "write"), f.environment(l, a.database, plugins, more...))
	return a
}

// ready waits until all arms write, and the cluster could lose its primary.
func (f *fleet) ready(arms []*arm) {
	f.Helper()
	for _, a := range arms {
		testkit.Eventually(f.T, patience.For(2*time.Minute), func() error { _, err := a.doneAfter(time.Now().Add(-time.Second)); return err })
	}
	f.settled()
}

// wrote notes when an arm did something again after something happened, as soon as it has. What it says in
// the time that is left to it was on its way.
func (f *fleet) wrote(a *arm, happened time.Time, left time.Duration) error {
	done, err := a.doneAfter(happened.Add(left))
	if err == nil {
		a.took = append(a.took, done.Sub(happened))
		f.Logf("%s: %d, after %.2f s", a.database, len(a.took), done.Sub(happened).Seconds())
	}
	return err
}

// failovers kills the primary again and again, under the program with the wrapper and with the plain
// driver. What they were told is done is there at the end.
func (f *fleet) failovers(l language, command []string, times int) {
	f.Helper()
	arms := []*arm{f.arm(l, command, "wrapper", l.failover), f.arm(l, command, "plain", "")}
	for range times {
		f.ready(arms)
		_, m := f.leader()
		f.must(m.KillPostgres())
		killed := time.Now()
		for _, a := range arms {
			testkit.Eventually(f.T, patience.For(time.Minute), func() error { return f.wrote(a, killed, 100*time.Millisecond) })
		}
	}
	f.finish(arms)
}

// finish ends the arms, tells what they took, and looks for what they were told is done.
func (f *fleet) finish(arms []*arm) {
	f.Helper()
	for _, a := range arms {
		a.finish(patience.For(30 * time.Second))
		f.Logf("%s: %s", a.database, figures(a.took))
		f.kept(a.database, a.program)
	}
}

func figures(took []time.Duration) string {
	sorted := slices.Sorted(slices.Values(took))
	if len(sorted) == 0 {
		return "it never worked again"
	}
	var text []string
	for _, d := range sorted {
		text = append(text, fmt.Sprintf("%.2f", d.Seconds()))
	}
	return fmt.Sprintf("%d failovers, the next statement after %.2f s (median), %.2f s at most: %s",
		len(sorted), sorted[len(sorted)/2].Seconds(), sorted[len(sorted)-1].Seconds(), strings.Join(text, " "))
}

// kept: all that was done is there.
func (f *fleet) kept(database string, p *program) {
	f.Helper()
	config, err := f.rig.ClusterConfig(f.Context(), "shop")
	f.must(err)
	config.Database = database
	text, err := query(f.Context(), config, "SELECT coalesce(string_agg(id::text, ' '), '') FROM ledger")
	f.must(err)
	there := map[string]bool{}
	for _, id := range strings.Fields(text) {
		there[id] = true
	}
	done := p.all("done")
	for _, l := range done {
		if !there[l.more] {
			f.Errorf("%s was done at %s, and is lost", l.more, l.at.Format(time.TimeOnly))
		}
	}
	f.Logf("%s: %d rows, %d statements failed", database, len(done), len(p.all("failed")))
}
