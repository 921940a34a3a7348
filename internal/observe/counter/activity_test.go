package counter

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/observe/series"
	"howdah/internal/observe/wait"
)

func client(state, event string, count float64) Session {
	return Session{Backend: clientBackend, State: state, Event: wait.Parse(event), Count: count}
}

// expect compares what is not 0.
func expect(t *testing.T, load *Load, want map[string]float64) {
	t.Helper()
	got := map[string]float64{}
	load.Take(got)
	for _, name := range always {
		if value, known := got[name]; known && value == 0 {
			delete(got, name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLoad(t *testing.T) {
	var load Load
	load.Add([]Session{
		client("active", "CPU", 2), client("active", "IO:WALSync", 1), client("active", "Lock:transactionid", 3),
		client("idle", "Client:ClientRead", 4), client("idle in transaction", "Client:ClientRead", 1), client("idle in transaction (aborted)", "Client:ClientRead", 1),
		client("active", "Activity:WalSenderMain", 9), client("disabled", "CPU", 1),
		{Backend: parallelWorker, State: "active", Event: wait.Parse("CPU"), Count: 2},
		{Backend: checkpointer, Event: wait.Parse("Timeout:CheckpointWriteDelay"), Count: 1},
		{Backend: vacuumWorker, State: "active", Event: wait.Parse("Timeout:VacuumDelay"), Count: 1},
		{Backend: "logical replication worker", State: "active", Count: 5},
		{Backend: clientBackend, State: "active", Event: wait.Parse("Lock:relation"), Count: 6, Foreign: true},
		{Backend: parallelWorker, State: "active", Event: wait.Parse("CPU"), Count: 1, Foreign: true},
		{Backend: clientBackend, State: "idle", Event: wait.Parse("Client:ClientRead"), Count: 9, Foreign: true},
	})
	load.Add([]Session{{Backend: checkpointer, Event: wait.Parse("Activity:CheckpointerMain"), Count: 1}})
	expect(t, &load, map[string]float64{
		series.Active: 4, series.ActiveCPU: 2, series.ActiveWAL: 0.5, series.ActiveLock: 1.5, series.LockWaiting: 1.5,
		"wait.CPU": 2, "wait.IO:WALSync": 0.5, "wait.Lock:transactionid": 1.5,
		series.SessionsForeign: 3.5, series.Sessions: 11, series.SessionsIdle: 2, series.SessionsInTrans: 1, series.CheckpointRunning: 0.5, series.VacuumWorkers: 0.5,
	})
}

// Nobody active is 0. Nobody who looked is not known.
func TestALoadThatWasNotSampledIsNotKnown(t *testing.T) {
	var load Load
	values := map[string]float64{}
	load.Take(values)
	if len(values) != 0 {
		t.Errorf("%v", values)
	}
	load.Add(nil)
	load.Take(values)
	for _, name := range always {
		if value, known := values[name]; !known || value != 0 {
			t.Errorf("%s is %v (%t)", name, value, known)
		}
	}
	expect(t, &load, map[string]float64{}) // it began anew
}

func TestEveryColumnOfALoadIsExplained(t *testing.T) {
	for _, name := range append(always, series.WaitPrefix+"CPU", series.LockOnPrefix+"t") {
		if _, known := series.Explain(name); !known {
			t.Errorf("%s is not explained", name)
		}
	}
}

func TestLocksAreAskedForOnlyIfSomebodyWaits(t *testing.T) {
	if locksWaited([]Session{client("active", "LWLock:WALWrite", 1), client("idle", "Client:ClientRead", 1)}) {
		t.Error("nobody waits for a lock")
	}
	if locksWaited([]Session{{Backend: clientBackend, State: "active", Event: wait.Parse("Lock:relation"), Foreign: true}}) {
		t.Error("only somebody else waits for a lock")
	}
	if !locksWaited([]Session{client("active", "CPU", 1), client("active", "Lock:relation", 1)}) {
		t.Error("somebody waits for a lock")
	}
}
