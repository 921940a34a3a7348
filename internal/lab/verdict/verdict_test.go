package verdict

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"howdah/internal/observe/series"
)

// observed makes a summary of means.
func observed(means ...map[string]float64) series.Summary {
	s := series.Summary{Columns: map[string]series.Stat{}}
	for _, each := range means {
		for name, mean := range each {
			s.Columns[name] = series.Stat{Mean: mean, Min: mean, Max: mean, Seconds: 60}
		}
	}
	return s
}

// waits makes the columns of active sessions, by event.
func waits(events map[string]float64) map[string]float64 {
	columns := map[string]float64{series.Active: 0}
	for name, class := range map[string]string{
		"CPU": series.ActiveCPU, "IO:DataFileRead": series.ActiveIO, "IO:DataFileExtend": series.ActiveIO, "IO:BufFileWrite": series.ActiveIO, "IO:AioIoCompletion": series.ActiveIO,
		"IO:WALSync": series.ActiveWAL, "LWLock:WALWrite": series.ActiveWAL, "LWLock:WALInsert": series.ActiveWAL, "Lock:transactionid": series.ActiveLock, "Lock:tuple": series.ActiveLock,
		"Lock:relation": series.ActiveLock, "Lock:extend": series.ActiveLock, "LWLock:BufferMapping": series.ActiveLWLock, "LWLock:LockManager": series.ActiveLWLock,
		"IPC:SyncRep": series.ActiveIPC, "IPC:ParallelFinish": series.ActiveIPC, "Client:ClientRead": series.ActiveClient, "Timeout:PgSleep": series.ActiveTimeout,
	} {
		columns[class] += events[name]
		columns[series.Active] += events[name]
		if events[name] > 0 {
			columns[series.WaitPrefix+name] = events[name]
		}
	}
	return columns
}

func with(columns, more map[string]float64) map[string]float64 {
	all := maps.Clone(columns)
	maps.Copy(all, more)
	return all
}

type numbers = map[string]float64

// two is a machine of two CPUs, on which nothing disturbs.
var two = numbers{series.MachineCPUs: 2, series.MachineCPU: 1, series.MachineForeign: 0.01, series.MachineSteal: 0, series.DeviceFreeShare: 0.5}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name    string
		load    Load
		columns numbers
		sweep   []Step
		cause   Cause
		subject string
		says    string // a part of a reason
	}{
		{
			name: "nothing is known", cause: Unknown,
		},
		{
			name: "strangers use the machine", columns: with(waits(numbers{"Lock:transactionid": 9}), numbers{series.MachineCPUs: 2, series.MachineForeign: 0.6}),
			cause: Noise, says: "Other programs used 30 % of the machine's CPUs; 3.0 % are allowed.",
		},
		{
			name: "a few strangers are allowed", columns: with(waits(numbers{"Lock:transactionid": 9}), numbers{series.MachineCPUs: 2, series.MachineForeign: 0.05}),
			cause: RowLock, subject: "Lock:transactionid",
		},
		{
			name: "others use the server", columns: with(waits(numbers{"CPU": 1}), numbers{series.SessionsForeign: 2}),
			cause: Noise, says: "On average 2.00 sessions of others were active on the server; 0.250 may be.",
		},
		{
			name: "others use the server for moments", columns: with(waits(numbers{"Lock:transactionid": 9}), numbers{series.SessionsForeign: 0.1}), cause: RowLock,
		},
		{
			name: "the hypervisor takes CPU", columns: with(waits(numbers{"CPU": 1}), numbers{series.MachineCPUs: 2, series.MachineSteal: 0.04}),
			cause: Noise, says: "2.0 % of the machine's CPUs to others",
		},
		{
			name: "the disk is nearly full", columns: with(waits(numbers{"CPU": 1}), numbers{series.DeviceFreeShare: 0.12}), cause: Noise, says: "Only 12 % of the disk was free",
		},
		{
			name: "the clock was stepped back", columns: with(waits(numbers{"CPU": 1}), numbers{series.ObserverClockStep: -2000}), cause: Noise, says: "stepped by 2000 ms",
		},
		{
			name: "transactions failed", load: Load{ErrorShare: 0.02}, columns: waits(numbers{"CPU": 1}), cause: Noise, says: "2.0 % of the transactions failed",
		},
		{
			name: "the generator has no CPU left", load: Load{Clients: 16, Cores: 1}, columns: with(waits(numbers{"CPU": 3}), with(two, numbers{series.GeneratorCPU: 0.9, series.ServerCPU: 1})),
			cause: Client, subject: "CPU", says: "90 % of the 1.00 CPUs",
		},
		{
			name: "the generator sends by a rate", load: Load{Clients: 16, Cores: 2, TPS: 100, LatencyMS: 2},
			columns: with(waits(numbers{"CPU": 0.1, "IO:WALSync": 0.1}), with(two, numbers{series.ServerCPU: 0.1, series.Sessions: 16, series.ObserverRoundTrip: 0.1})),
			cause:   Client, subject: "rate", says: "a transaction under way in 1.2 % of the time",
		},
		{
			name: "the generator thinks within its transactions", load: Load{Clients: 10, Cores: 2, TPS: 100, LatencyMS: 100, RoundTrips: 5},
			columns: with(waits(numbers{"CPU": 0.3}), with(two, numbers{series.ServerCPU: 0.2, series.Sessions: 10, series.ObserverRoundTrip: 0.1})),
			cause:   Client, subject: "rate", says: "3.0 % of the clients had a session that was active",
		},
		{
			name: "a generator that says nothing of itself, and a server elsewhere", columns: waits(numbers{"CPU": 0.2}), cause: None,
		},
		{
			name: "sessions that are idle, on a server elsewhere", columns: with(waits(numbers{"CPU": 0.2}), numbers{series.Sessions: 20}), cause: Client, subject: "rate",
		},
		{
			name: "the clients do not take what is sent", load: Load{Clients: 4}, columns: with(waits(numbers{"Client:ClientRead": 3, "CPU": 1}), with(two, numbers{series.ServerCPU: 0.5})),
			cause: Client, subject: "rate", says: "75 % of the active sessions waited for their client",
		},
		{
			name: "others take the reads", load: Load{Clients: 10, Cores: 2, TPS: 5000, LatencyMS: 1.9, RoundTrips: 1, Beyond: true},
			columns: with(waits(numbers{"CPU": 0.3}), with(two, numbers{series.ServerCPU: 0.2, series.Sessions: 10, series.ObserverRoundTrip: 0.1})),
			cause:   Unknown, says: "3.0 % of the clients had a session that was active",
		},
		{
			name: "a pooler takes the CPUs", load: Load{Clients: 10, Cores: 2, TPS: 5000, LatencyMS: 1.9, RoundTrips: 1, Beyond: true, Pooler: 0.9},
			columns: with(waits(numbers{"CPU": 0.3}), with(two, numbers{series.ServerCPU: 0.4, series.MachineCPU: 1.96, series.Sessions: 10})),
			cause:   Pooler, subject: "CPU", says: "used 98 % of the machine's CPUs, and pgpool-II 45 %",
		},
		{
			name: "a pooler takes less than the server", load: Load{Clients: 10, Cores: 2, Beyond: true, Pooler: 0.7},
			columns: with(waits(numbers{"CPU": 6}), with(two, numbers{series.ServerCPU: 1.2, series.MachineCPU: 1.96, series.Sessions: 10})),
			cause:   CPU, subject: "machine",
		},
		{
			name: "round trips", load: Load{Clients: 4, Cores: 2, TPS: 50, LatencyMS: 79, RoundTrips: 7},
			columns: with(waits(numbers{"CPU": 0.2}), with(two, numbers{series.ServerCPU: 0.1, series.ObserverRoundTrip: 10})),
			cause:   Network, says: "7.00 round trips of 10.0 ms each are 89 % of the latency of 79.0 ms",
		},
		{
			name: "round trips, whose number is not known", load: Load{Clients: 4, Cores: 2, TPS: 50, LatencyMS: 79},
			columns: with(waits(numbers{"CPU": 0.2}), with(two, numbers{series.ServerCPU: 0.1, series.ObserverRoundTrip: 10})),
			cause:   Network, says: "A round trip to the server takes 10.0 ms.",
		},
		{
			name: "the class's CPUs", load: Load{Clients: 8, Cores: 2}, columns: with(waits(numbers{"CPU": 6, "IO:WALSync": 1}), with(two, numbers{series.ServerCPU: 0.49, series.ServerCPULimit: 0.5, series.ServerThrottled: 9})),
			cause: CPU, subject: "class", says: "98 % of its 0.500 CPUs",
		},
		{
			name: "the class's CPUs, in bursts", load: Load{Clients: 8, Cores: 2}, columns: with(waits(numbers{"CPU": 6}), with(two, numbers{series.ServerCPU: 0.4, series.ServerCPULimit: 0.5, series.ServerThrottled: 5})),
			cause: CPU, subject: "class", says: "held it back 5.00 times",
		},
		{
			name: "the class's CPUs, so few that sessions are seen only as they take statements", load: Load{Clients: 4, Cores: 2},
			columns: with(waits(numbers{"CPU": 0.1, "Client:ClientRead": 0.1}), with(two, numbers{series.ServerCPU: 0.1, series.ServerCPULimit: 0.1, series.ServerThrottled: 9, series.Sessions: 4})),
			cause:   CPU, subject: "class", says: "held it back 9.00 times",
		},
		{
			name: "locks in a class of few CPUs", load: Load{Clients: 8, Cores: 2}, columns: with(waits(numbers{"CPU": 1, "Lock:tuple": 5}), with(two, numbers{series.ServerCPU: 0.49, series.ServerCPULimit: 0.5, series.ServerThrottled: 9})),
			cause: RowLock,
		},
		{
			name: "the machine's CPUs", load: Load{Clients: 8, Cores: 2}, columns: with(waits(numbers{"CPU": 6}), with(two, numbers{series.ServerCPU: 1.9, series.MachineCPU: 1.95})),
			cause: CPU, subject: "machine", says: "6.00 sessions wanted 2.00 CPUs",
		},
		{
			name: "the machine's CPUs, of which the generator has a part", load: Load{Clients: 16, Cores: 2}, columns: with(waits(numbers{"CPU": 6}), with(two, numbers{series.ServerCPU: 1.2, series.GeneratorCPU: 0.75, series.MachineCPU: 1.96})),
			cause: CPU, subject: "machine", says: "All programs together used 98 % of the machine's CPUs, and the server 60 %.",
		},
		{
			name: "a full machine does not excuse sessions that wait for locks", load: Load{Clients: 16, Cores: 2}, columns: with(waits(numbers{"CPU": 2, "Lock:tuple": 12}), with(two, numbers{series.ServerCPU: 1.9, series.MachineCPU: 2})),
			cause: RowLock, subject: "Lock:tuple",
		},
		{
			name: "commits", load: Load{Clients: 8}, columns: with(waits(numbers{"LWLock:WALWrite": 4, "IO:WALSync": 1, "CPU": 2}), numbers{series.WALSyncs: 500, series.CommitsPerSync: 3.2, series.WALSyncLatency: 1.8, series.WALPosition: 4e6}),
			cause: WAL, subject: "LWLock:WALWrite", says: "There were 500 flushes a second, and 3.20 transactions for each, those that only read among them.",
		},
		{
			name: "places in the WAL buffers", load: Load{Clients: 64}, columns: waits(numbers{"LWLock:WALInsert": 30, "IO:WALSync": 1, "CPU": 9}), cause: WAL, subject: "LWLock:WALInsert",
			says: "Most waited for LWLock:WALInsert",
		},
		{
			name: "rows, with the table's name", load: Load{Clients: 16}, columns: with(waits(numbers{"Lock:transactionid": 2, "Lock:tuple": 9, "IO:WALSync": 2}), numbers{series.LockOnPrefix + "pgbench_branches": 10, series.LockOnPrefix + "pgbench_tellers": 1}),
			cause: RowLock, subject: "pgbench_branches", says: "Of the others, who may hold the locks, most were in IO:WALSync.",
		},
		{
			name: "a whole table", load: Load{Clients: 8}, columns: with(waits(numbers{"Lock:relation": 7, "Lock:tuple": 1, "CPU": 1}), numbers{series.LockOnPrefix + "t": 7}),
			cause: Lock, subject: "t", says: "Most waited for Lock:relation: 7.00 sessions on average.",
		},
		{
			name: "another lock", load: Load{Clients: 8}, columns: waits(numbers{"Lock:extend": 4, "CPU": 2}), cause: Lock, subject: "Lock:extend",
		},
		{
			name: "reads", load: Load{Clients: 8}, columns: with(waits(numbers{"IO:DataFileRead": 6, "CPU": 1}), numbers{series.HitRatio: 0.8, series.DeviceReadOps: 100, series.DeviceReadLatency: 61.5}),
			cause: ReadIO, subject: "IO:DataFileRead", says: "The disks did 100 reads a second, and one took 61.5 ms.",
		},
		{
			name: "reads that are limited", load: Load{Clients: 8}, columns: with(waits(numbers{"IO:DataFileRead": 6, "CPU": 1}), numbers{series.ServerReadOps: 99, series.ServerReadLimit: 100}),
			cause: IOLimit, says: "The server may do 100 reads a second, and did 99.0.",
		},
		{
			name: "commits whose writes are limited", load: Load{Clients: 8}, columns: with(waits(numbers{"LWLock:WALWrite": 4}), numbers{series.ServerWriteOps: 49, series.ServerWriteLimit: 50}),
			cause: IOLimit, says: "The server may do 50.0 writes a second, and did 49.0.",
		},
		{
			name: "locks whose holders wait for writes that are limited", load: Load{Clients: 16},
			columns: with(waits(numbers{"Lock:tuple": 14, "IO:WALSync": 1, "CPU": 0.1}), numbers{series.ServerWriteOps: 49, series.ServerWriteLimit: 50}),
			cause:   IOLimit, says: "Of the active sessions that waited for no lock, 91 % waited for data files or WAL.",
		},
		{
			name: "locks whose holders compute while others write", load: Load{Clients: 16},
			columns: with(waits(numbers{"Lock:tuple": 14, "IO:WALSync": 0.1, "CPU": 1}), numbers{series.ServerWriteOps: 49, series.ServerWriteLimit: 50}), cause: RowLock,
		},
		{
			name: "locks, and writes far below their limit", load: Load{Clients: 16},
			columns: with(waits(numbers{"Lock:tuple": 14, "IO:WALSync": 1}), numbers{series.ServerWriteOps: 20, series.ServerWriteLimit: 50}), cause: RowLock,
		},
		{
			name: "all wait for locks", load: Load{Clients: 16}, columns: with(waits(numbers{"Lock:tuple": 14}), numbers{series.ServerWriteOps: 49, series.ServerWriteLimit: 50}), cause: RowLock,
		},
		{
			name: "reads by helpers, as version 18 does", load: Load{Clients: 8}, columns: waits(numbers{"IO:AioIoCompletion": 6, "CPU": 1}), cause: ReadIO, subject: "IO:AioIoCompletion",
		},
		{
			name: "reads that are seen by the pressure", load: Load{Clients: 8}, columns: with(waits(numbers{"IO:DataFileRead": 1.5, "CPU": 5}), numbers{series.HitRatio: 0.9, series.MachinePSIIO: 0.4}),
			cause: ReadIO, says: "In 40 % of the time some task waited for I/O.",
		},
		{
			name: "a pressure of which the server's own group knows nothing", load: Load{Clients: 8}, columns: with(waits(numbers{"IO:DataFileRead": 1.5, "CPU": 5}), numbers{series.HitRatio: 0.9, series.MachinePSIIO: 0.4, series.ServerPSIIO: 0.01}),
			cause: Unknown,
		},
		{
			name: "writes", load: Load{Clients: 8}, columns: waits(numbers{"IO:DataFileExtend": 4, "CPU": 2}), cause: WriteIO, subject: "IO:DataFileExtend",
		},
		{
			name: "sorts on disk", load: Load{Clients: 8}, columns: waits(numbers{"IO:BufFileWrite": 4, "CPU": 2}), cause: Temporary,
		},
		{
			name: "a standby", load: Load{Clients: 8}, columns: with(waits(numbers{"IPC:SyncRep": 6, "CPU": 1}), numbers{
				"standby.a.sync": 1, "standby.a.flush_lag_seconds": 0.002, "standby.b.sync": 1, "standby.b.flush_lag_seconds": 0.02, "standby.c.sync": 0, "standby.c.flush_lag_seconds": 9,
				"standby.a.replay_lag_seconds": 5, series.Commits: 300,
			}),
			cause: Replication, subject: "b", says: "A commit waited 20.0 ms for it.",
		},
		{
			name: "a standby that replays late", load: Load{Clients: 8}, columns: with(waits(numbers{"IPC:SyncRep": 6, "CPU": 1}), numbers{
				"standby.a.sync": 1, "standby.a.flush_lag_seconds": 0.002, "standby.a.replay_lag_seconds": 0.05, "standby.b.sync": 1, "standby.b.flush_lag_seconds": 0.003, "standby.b.replay_lag_seconds": 0.01,
				series.Commits: 120,
			}),
			cause: Replication, subject: "a", says: "The standby a had flushed after 2.00 ms, and replayed after 50.0 ms.",
		},
		{
			name: "a standby of which nothing is known", load: Load{Clients: 8}, columns: waits(numbers{"IPC:SyncRep": 6, "CPU": 1}), cause: Replication,
		},
		{
			name: "a lock inside of the server", load: Load{Clients: 8}, columns: waits(numbers{"LWLock:BufferMapping": 3, "LWLock:LockManager": 1, "CPU": 3}), cause: LWLock, subject: "LWLock:BufferMapping",
		},
		{
			name: "checkpoints", load: Load{Clients: 8, CheckpointTPS: 0.5}, columns: waits(numbers{"CPU": 5, "IO:WALSync": 2}), cause: Checkpoint, says: "50 % of the throughput",
		},
		{
			name: "images of pages", load: Load{Clients: 8}, columns: with(waits(numbers{"CPU": 5, "IO:WALSync": 2}), numbers{series.FPIShare: 0.8}), cause: Checkpoint, says: "At most 80 % of the WAL",
		},
		{
			name: "images of pages that hold nobody up", load: Load{Clients: 8}, columns: with(waits(numbers{"CPU": 5, "IO:WALSync": 0.1}), numbers{series.FPIShare: 0.8}), cause: Unknown,
		},
		{
			name: "another wait", load: Load{Clients: 8}, columns: waits(numbers{"Timeout:PgSleep": 6, "CPU": 1}), cause: Wait, subject: "Timeout:PgSleep",
		},
		{
			name: "round trips on one machine", load: Load{Clients: 4, Cores: 2, TPS: 7000, LatencyMS: 0.55, RoundTrips: 7},
			columns: with(waits(numbers{"CPU": 0.4}), with(two, numbers{series.ServerCPU: 0.5, series.ObserverRoundTrip: 0.06})),
			cause:   Client, subject: "turns", says: "7.00 round trips of 0.060 ms each are 76 % of the latency of 0.550 ms",
		},
		{
			name: "throughput rises at first", load: Load{Clients: 2}, columns: with(waits(numbers{"CPU": 2}), numbers{series.MachineCPUs: 8, series.ServerCPU: 2}), sweep: []Step{{8, 181}, {4, 180}, {2, 100}},
			cause: None, says: "Between 2 and 4 clients, twice as many gave 80 % more.",
		},
		{
			name: "throughput rises no more", load: Load{Clients: 4}, columns: with(waits(numbers{"CPU": 2}), numbers{series.MachineCPUs: 8, series.ServerCPU: 2}), sweep: []Step{{8, 181}, {4, 180}, {2, 100}},
			cause: None, says: "The server used 25 % of its CPUs.",
		},
		{
			name: "throughput still rises", load: Load{Clients: 4}, columns: with(waits(numbers{"CPU": 2}), numbers{series.MachineCPUs: 8, series.ServerCPU: 2}), sweep: []Step{{4, 180}, {2, 100}},
			cause: None, says: "Between 2 and 4 clients, twice as many gave 80 % more.",
		},
		{
			name: "too few sessions", load: Load{Clients: 2}, columns: with(waits(numbers{"CPU": 2}), numbers{series.MachineCPUs: 8, series.ServerCPU: 2}), cause: None, says: "The server used 25 % of its CPUs.",
		},
		{
			name: "nobody is there", columns: waits(nil), cause: None, says: "On average 0 sessions were active: none.",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Judge(Evidence{Observed: observed(c.columns), Load: c.load, Sweep: c.sweep})
			if v.Cause != c.cause || v.Subject != c.subject && c.subject != "" {
				t.Errorf("%s of %q, want %s of %q: %+v", v.Cause, v.Subject, c.cause, c.subject, v)
			}
			if text := texts(v.Finding); c.says != "" && !strings.Contains(text, c.says) {
				t.Errorf("it says:\n%s\nwant: %s", text, c.says)
			}
			proper(t, v)
		})
	}
}

func texts(f Finding) string {
	var all []string
	for _, r := range f.Reasons {
		all = append(all, r.Text)
	}
	return strings.Join(all, "\n")
}

// proper: a verdict is sentences with figures, and can be kept as JSON.
func proper(t *testing.T, v Verdict) {
	t.Helper()
	for _, f := range append([]Finding{v.Finding}, v.Also...) {
		sentences := []string{f.Sentence}
		for _, r := range f.Reasons {
			sentences = append(sentences, r.Text)
			if r.Key == "" || len(r.Figures) == 0 {
				t.Errorf("a reason without figures: %+v", r)
			}
		}
		for _, s := range sentences {
			if !strings.HasSuffix(s, ".") || strings.Contains(s, "%!") {
				t.Errorf("%q is no sentence", s)
			}
		}
		if len(f.Reasons) == 0 && f.Cause != Unknown {
			t.Errorf("%s has no reasons", f.Cause)
		}
	}
	text, err := json.Marshal(v)
	if err != nil || !strings.Contains(string(text), `"sentence":`) {
		t.Errorf("%v: %s", err, text)
	}
}

// Sessions that compute say that nothing limits the server only where its CPUs are seen, and some are left.
func TestSessionsThatCompute(t *testing.T) {
	for name, c := range map[string]struct {
		cpu   float64
		more  numbers
		cause Cause
		key   string
	}{
		"CPUs that nobody sees":         {cpu: 64, cause: Unknown, key: "unknown_cpu"},
		"less than one, of unseen CPUs": {cpu: 0.5, cause: None, key: "none_computes"},
		"half of the CPUs":              {cpu: 1, more: with(two, numbers{series.ServerCPU: 1}), cause: None, key: "none_computes"},
		"most of the CPUs":              {cpu: 6, more: with(two, numbers{series.ServerCPU: 1.7}), cause: None, key: "none"},
		"a class on a full machine": {
			cpu: 6, more: with(two, numbers{series.MachineCPU: 2, series.ServerCPULimit: 1, series.ServerCPU: 0.6}), cause: CPU, key: "cpu_machine",
		},
	} {
		v := Judge(Evidence{Observed: observed(with(waits(numbers{"CPU": c.cpu}), c.more)), Load: Load{Clients: 1}})
		if v.Cause != c.cause || v.Key != c.key {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// Of a server on another machine nothing is said by the CPU of the load generator's.
func TestAServerElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		columns numbers
		load    Load
		cause   Cause
		key     string
		says    string
	}{
		"the generator's machine is full": {
			columns: with(waits(numbers{"CPU": 6}), numbers{series.MachineCPUs: 2, series.MachineCPU: 1.95, series.GeneratorCPU: 0.5}), load: Load{Clients: 8, Cores: 2},
			cause: Client, key: "client_machine", says: "All programs together used 98 % of the CPUs of the load generator's machine.",
		},
		"it is not": {
			columns: with(waits(numbers{"CPU": 6}), numbers{series.MachineCPUs: 2, series.MachineCPU: 1.8}), load: Load{Clients: 8, Cores: 2}, cause: Unknown, key: "unknown_cpu",
		},
		"sessions are idle, and the generator's machine is busy": {
			columns: with(waits(numbers{"CPU": 0.2}), numbers{series.MachineCPUs: 2, series.MachineCPU: 1.85}), load: Load{Clients: 8, Cores: 2}, cause: Client, key: "client_rate",
		},
		"its hypervisor": {
			columns: with(waits(numbers{"CPU": 6}), numbers{series.MachineCPUs: 2, series.MachineCPU: 1, series.MachineSteal: 0.4}), cause: Noise, key: "noise",
			says: "The hypervisor gave 20 % of the CPUs of the load generator's machine to others; 1.0 % are allowed.",
		},
		"its pressure": {
			columns: with(waits(numbers{"IO:DataFileRead": 1.5, "CPU": 5}), numbers{series.HitRatio: 0.9, series.MachinePSIIO: 0.4}), cause: Unknown, key: "unknown_cpu",
		},
	} {
		v := Judge(Evidence{Observed: observed(c.columns), Load: c.load, Elsewhere: true})
		if v.Cause != c.cause || v.Key != c.key || !strings.Contains(texts(v.Finding), c.says) {
			t.Errorf("%s: %+v", name, v)
		}
		proper(t, v)
	}
}

// What waits for a place in the WAL buffers does not wait for the disk, and no sentence says so.
func TestWALHasTwoSentences(t *testing.T) {
	for event, key := range map[string]string{"LWLock:WALInsert": "wal_insert", "LWLock:WALWrite": "wal", "IO:WALSync": "wal"} {
		v := Judge(Evidence{Observed: observed(waits(numbers{event: 6, "CPU": 1}))})
		if v.Key != key || strings.Contains(v.Sentence, "on the disk") != (key == "wal") {
			t.Errorf("%s: %+v", event, v.Finding)
		}
	}
}

// Under noise the rest is told, too: it may hold when the noise is gone.
func TestWhatElseMatchesIsTold(t *testing.T) {
	noisy := numbers{series.MachineCPUs: 2, series.MachineForeign: 1}
	v := Judge(Evidence{Observed: observed(with(waits(numbers{"Lock:tuple": 6, "LWLock:BufferMapping": 5, "CPU": 1}), noisy))})
	if v.Cause != Noise || v.Limit().Cause != RowLock || len(v.Also) != 2 || v.Also[1].Cause != LWLock {
		t.Errorf("%+v", v)
	}
	v = Judge(Evidence{Observed: observed(with(waits(numbers{"CPU": 1}), noisy))})
	if v.Cause != Noise || v.Limit().Cause != Unknown {
		t.Errorf("%+v", v)
	}
	v = Judge(Evidence{Observed: observed(noisy)})
	if v.Cause != Noise || v.Limit().Cause != Unknown {
		t.Errorf("%+v", v)
	}
	v = Judge(Evidence{Observed: observed(waits(numbers{"CPU": 1}))})
	if v.Limit().Cause != v.Cause || len(v.Also) != 0 {
		t.Errorf("%+v", v)
	}
}

// A column that is absent decides nothing: whatever is left out of some evidence, no rule begins to
// match that depends on it.
func TestWhatIsNotKnownDecidesNothing(t *testing.T) {
	full := with(waits(numbers{"CPU": 6}), with(two, numbers{series.ServerCPU: 1.9, series.GeneratorCPU: 0.1, series.ObserverRoundTrip: 0.1}))
	load := Load{Clients: 8, Cores: 2, TPS: 1000, LatencyMS: 8}
	if v := Judge(Evidence{Observed: observed(full), Load: load}); v.Cause != CPU {
		t.Fatalf("%+v", v)
	}
	for name := range full {
		less := maps.Clone(full)
		delete(less, name)
		v := Judge(Evidence{Observed: observed(less), Load: load})
		if v.Cause != CPU && v.Cause != None && v.Cause != Unknown {
			t.Errorf("without %s it is %s: %s", name, v.Cause, texts(v.Finding))
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	for value, want := range map[float64]string{0: "0", 0.0123: "0.012", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 12345: "12345", -1.5: "-1.50"} {
		if got := number(value); got != want {
			t.Errorf("%v is written %s, want %s", value, got, want)
		}
	}
	for share, want := range map[float64]string{0: "0 %", 0.005: "0.5 %", 0.099: "9.9 %", 0.1: "10 %", 1: "100 %", -0.2: "-20 %"} {
		if got := percent(share); got != want {
			t.Errorf("%v is written %s, want %s", share, got, want)
		}
	}
}
