package run

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"howdah/internal/lab/experiment"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/pgtest"
)

// survives runs a load beside a server that is killed and started again meanwhile.
func survives(t *testing.T, a experiment.Fault) *doing {
	t.Helper()
	s := pgtest.Start(t, pgtest.Options{})
	d := &doing{Options: given(t, s, small), tell: func(string) {}}
	if err := os.MkdirAll(d.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := d.Target.Prepare(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	load, err := d.beside(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer load.remove()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	var failed error
	running.Go(func() { failed = load.run(ctx) })
	time.Sleep(3 * time.Second) //nolint:forbidigo // so long a load runs, of which seconds are counted
	began := time.Now()
	s.Kill()
	s.Up()
	testkit.Eventually(t, patience.For(20*time.Second), func() error {
		_, err := d.askRows(t.Context(), map[bool]string{true: "pgbench_accounts", false: "warehouse"}[a.Load != nil])
		return err
	})
	whole := time.Now()
	time.Sleep(4 * time.Second) //nolint:forbidigo // as above
	stop()
	running.Wait()
	if failed != nil {
		t.Fatal(failed)
	}
	if err := load.found(t.Context(), d, began, whole); err != nil {
		t.Fatal(err)
	}
	if d.point.Struck != "" || len(d.point.Errors) == 0 || len(d.ticks) < 5 {
		t.Errorf("%+v, %d seconds", d.point, len(d.ticks))
	}
	// A fault that began before anything ran says nothing of the load.
	if err := load.found(t.Context(), &doing{Options: d.Options}, began.Add(-time.Hour), whole); !errors.Is(err, errNoLoad) {
		t.Error(err)
	}
	return d
}

// pgbench ends when its sessions are cut, and is started again. That it is told to end is no error.
func TestPGBenchBesideAFault(t *testing.T) {
	t.Parallel()
	a := experiment.Fault{Scale: 1, Seconds: 60, Load: &experiment.PGBench{
		Scripts: []experiment.Script{{Builtin: "tpcb-like", Weight: 2}, {SQL: "SELECT 1", Weight: 1}}, Clients: 2, Protocol: "prepared",
	}}
	d := survives(t, a)
	f := d.point.Figures
	if f["load_tps_before"] <= 0 || f["load_tps_after"] <= 0 || f["load_cut"] < 1 || len(d.point.Commands) == 0 {
		t.Errorf("%v, %q", f, d.point.Commands)
	}
}

// Virtual users begin sessions anew. What they wrote is consistent afterwards.
func TestVirtualUsersBesideAFault(t *testing.T) {
	t.Parallel()
	a := experiment.Fault{Seconds: 60, TPCC: &experiment.TPCC{Warehouses: 1, Users: 2, Mode: "compatible", Calls: "procedures", AllWarehouses: true}}
	d := survives(t, a)
	f := d.point.Figures
	if f["load_nopm_before"] <= 0 || f["load_nopm_after"] <= 0 || f["load_reconnected"] < 2 {
		t.Errorf("%v", f)
	}
}

// Without a load the ledger is alone.
func TestNothingBesideAFault(t *testing.T) {
	t.Parallel()
	load, err := (&doing{}).beside(t.Context(), experiment.Fault{})
	if err != nil || load.run(t.Context()) != nil || load.found(t.Context(), nil, time.Time{}, time.Time{}) != nil {
		t.Error(load, err)
	}
	load.remove()
}
