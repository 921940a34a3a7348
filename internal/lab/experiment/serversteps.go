package experiment

import (
	"errors"
	"slices"
	"time"
)

// ServerSteps are steps beyond loads and statements. At most one of its fields is set.
type ServerSteps struct {
	Restore  *Restore
	Reboot   *Reboot
	Failover *Failover
	Crash    *Crash
	Fault    *Fault
	BulkLoad *BulkLoad
	Vacuum   *Vacuum
	Buffers  *Buffers
}

// Restore makes the server of the setting anew, of a snapshot that is taken once after Prepare.
type Restore struct {
	Figure string `json:"figure,omitempty"` // seconds
}

// Reboot restarts the server.
type Reboot struct {
	Figure string `json:"figure,omitempty"` // seconds until it is available
}

// Failover puts a load on the server, asks for a failover in good order meanwhile, and finds out when
// the throughput is back. Its figures are outage_s, back_s, tps_before and tps_after.
type Failover struct {
	// Load is the load, whose Seconds are those before the failover.
	Load PGBench `json:"load"`
	// After is for how many seconds the load goes on afterwards.
	After int `json:"after"`
	// Share of the throughput before is what counts as back; 0 is 0.9.
	Share float64 `json:"share,omitempty"`
}

// Crash kills the primary's postmaster, and counts the rows of a table before and after. Its figures are
// rows_before, rows_after and down_s.
type Crash struct {
	Table string `json:"table"`
	// Optional says that it is left out where the hosts cannot be broken.
	Optional bool `json:"optional,omitempty"`
}

// Fault breaks something while writers write, and finds out what clients saw of it, and whether any
// acknowledged row was lost.
type Fault struct {
	Kind string `json:"kind"` // one of FaultKinds
	// Seconds is how long it lasts, where it does not end by itself.
	Seconds int `json:"seconds,omitempty"`
	// Before and After are for how many seconds writers write before the fault, and after all is whole.
	Before int `json:"before,omitempty"`
	After  int `json:"after,omitempty"`
	// Within is after how many seconds all has to be whole again.
	Within  int `json:"within,omitempty"`
	Writers int `json:"writers,omitempty"`
	// PauseMS is between a writer's rows.
	PauseMS int `json:"pause_ms,omitempty"`
	// Workload runs beside the writers: one of Workloads; none of it is "ledger". Without it that runs
	// which is given here.
	Workload string `json:"workload,omitempty"`
	// Load is that of pgbench, on tables of this Scale, which are made anew; 0: they are there.
	Load  *PGBench `json:"load,omitempty"`
	Scale int      `json:"scale,omitempty"`
	// TPCC is that of virtual users. How long both run follows from the fault.
	TPCC *TPCC `json:"tpcc,omitempty"`
}

// Workloads are what may run while something is broken. Writers with a ledger always do.
var Workloads = []string{workloadLedger, workloadPGBench, workloadTPCC}

const (
	workloadLedger  = "ledger"
	workloadPGBench = "pgbench"
	workloadTPCC    = "tpcc"
)

// AtMost is for how long the loads of a fault may run.
func (f *Fault) AtMost() time.Duration {
	return time.Duration(f.Before+f.Seconds+f.Within+f.After)*time.Second + proofs
}

// proofs is what proofs of a fault may take besides.
const proofs = time.Minute

// FaultKinds lists the faults that there are; package fault makes them.
var FaultKinds = []string{"kill", "freeze", "lost-host", "lost-etcd", "slow-disk", "full-disk", "partition", "slow-network", "clock"}

// BulkLoad copies rows into a table of its own, which is empty before.
type BulkLoad struct {
	Rows   int    `json:"rows"`
	Table  string `json:"table,omitempty"`
	Figure string `json:"figure"` // seconds
}

// Vacuum vacuums a table. A figure of the same name and _cpu has the processor's seconds.
type Vacuum struct {
	Table  string `json:"table"`
	Figure string `json:"figure"` // seconds
}

// Buffers finds out which share of a table's pages is in shared_buffers of the primary, and of each
// standby that serves reads. Its figures are cached_primary and cached_standby (the best of them), in
// percent.
type Buffers struct {
	Table string `json:"table"`
	// Within waits for so many seconds, until the best standby has half of what the primary has; 0: it
	// does not wait.
	Within int `json:"within,omitempty"`
}

// read reads the arguments of a step.
func (s *ServerSteps) read(kind string, filled any) error {
	switch kind {
	case "restore":
		s.Restore = &Restore{}
		return errors.Join(decode(filled, s.Restore), named(s.Restore.Figure))
	case "reboot":
		s.Reboot = &Reboot{}
		return errors.Join(decode(filled, s.Reboot), named(s.Reboot.Figure))
	case "failover":
		s.Failover = &Failover{}
		return errors.Join(decode(filled, s.Failover), s.Failover.check())
	case "crash":
		s.Crash = &Crash{}
		return errors.Join(decode(filled, s.Crash), tableName(s.Crash.Table))
	case "fault":
		s.Fault = &Fault{}
		return errors.Join(decode(filled, s.Fault), s.Fault.check())
	case "bulk_load":
		s.BulkLoad = &BulkLoad{}
		return errors.Join(decode(filled, s.BulkLoad), s.BulkLoad.check())
	case "vacuum":
		s.Vacuum = &Vacuum{}
		return errors.Join(decode(filled, s.Vacuum), tableName(s.Vacuum.Table), figured(s.Vacuum.Figure))
	case "buffers":
		s.Buffers = &Buffers{}
		return errors.Join(decode(filled, s.Buffers), tableName(s.Buffers.Table))
	}
	return ErrKind
}

// tableName refuses what is no plain name of a table in the lab's own schema.
func tableName(name string) error {
	if !nameForm.MatchString(name) {
		return wrong("table %q is no plain name of a table of the lab's own schema", name)
	}
	return nil
}

func figured(name string) error {
	if name == "" {
		return wrong("it needs the name of a figure")
	}
	return named(name)
}

func (f *Failover) check() error {
	if f.Share == 0 {
		f.Share = 0.9
	}
	if f.After < 1 || f.Share < 0.1 || f.Share > 1 || f.Load.Transactions > 0 {
		return wrong("a failover needs seconds before and after it, and a share from 0.1 to 1")
	}
	return f.Load.checkPlain()
}

// Defaults of faults.
const (
	faultSeconds = 15
	faultBefore  = 5
	faultAfter   = 5
	faultWithin  = 180
	faultWriters = 4
	faultPauseMS = 5
)

func (f *Fault) check() error {
	for _, d := range []struct {
		field *int
		value int
	}{{&f.Seconds, faultSeconds}, {&f.Before, faultBefore}, {&f.After, faultAfter}, {&f.Within, faultWithin}, {&f.Writers, faultWriters}, {&f.PauseMS, faultPauseMS}} {
		if *d.field < 0 || *d.field > 86_400 {
			return wrong("seconds, before, after, within, writers and pause_ms are above 0")
		}
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if !slices.Contains(FaultKinds, f.Kind) {
		return wrong("there is no fault %q: there are %q", f.Kind, FaultKinds)
	}
	return f.checkLoad()
}

// checkLoad leaves the workload that is chosen.
func (f *Fault) checkLoad() error {
	switch {
	case f.Workload == workloadLedger:
		f.Load, f.TPCC = nil, nil
	case f.Workload == workloadPGBench && f.Load != nil:
		f.TPCC = nil
	case f.Workload == workloadTPCC && f.TPCC != nil:
		f.Load = nil
	case f.Workload != "":
		return wrong("workload is %q, and not one of %q, with its load or tpcc", f.Workload, Workloads)
	case f.Load != nil && f.TPCC != nil:
		return wrong("a fault has load or tpcc, or a workload that says which")
	}
	if f.Scale < 0 || f.Scale > mostScale {
		return wrong("scale is %d, and not from 0 to %d", f.Scale, mostScale)
	}
	lasts := f.Before + f.Seconds + f.After
	if f.Load != nil {
		if f.Load.Transactions > 0 || f.Load.Prefix != "" {
			return wrong("the load of a fault has no transactions and no prefix: it runs as long as the fault")
		}
		f.Load.Seconds = lasts
		return f.Load.checkPlain()
	}
	if f.TPCC != nil {
		f.TPCC.Seconds = lasts
		return f.TPCC.check()
	}
	return nil
}

func (b *BulkLoad) check() error {
	if b.Table == "" {
		b.Table = "bulk"
	}
	if b.Rows < 1 || b.Rows > 10_000_000_000 {
		return wrong("rows are %d, and not from 1 on", b.Rows)
	}
	return errors.Join(tableName(b.Table), figured(b.Figure))
}

// clients is how many a step has.
func (s *ServerSteps) clients() int {
	switch {
	case s.Failover != nil:
		return s.Failover.Load.Clients
	case s.Fault != nil && s.Fault.Load != nil:
		return s.Fault.Writers + s.Fault.Load.Clients
	case s.Fault != nil && s.Fault.TPCC != nil:
		return s.Fault.Writers + s.Fault.TPCC.sessions()
	case s.Fault != nil:
		return s.Fault.Writers
	}
	return 0
}

// seconds is how long a step's loads run.
func (s *ServerSteps) seconds() int {
	switch {
	case s.Failover != nil:
		return s.Failover.Load.Warmup + s.Failover.Load.Seconds + s.Failover.After
	case s.Fault != nil:
		return s.Fault.Before + s.Fault.Seconds + s.Fault.After
	}
	return 0
}

// Seconds is how long a step's loads run.
func (a Arguments) Seconds() int {
	switch {
	case a.PGBench != nil:
		return a.PGBench.Warmup + a.PGBench.Seconds
	case a.TPCC != nil:
		return a.TPCC.RampUp + a.TPCC.Seconds
	default:
		return a.seconds()
	}
}
