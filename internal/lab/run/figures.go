package run

import (
	"slices"
	"strings"

	"howdah/internal/lab/result"
	"howdah/internal/observe/series"
	"howdah/internal/observe/wait"
)

// figure makes a figure of a point from what was observed. docs/guide/lab-results.md says what each is.
type figure struct {
	name string
	of   func(result.Observation) (float64, bool)
}

var figures = append(waits(), []figure{
	{"aas", mean1(series.Active, 1)},
	{"server_cpu_percent", serverCPU},
	{"machine_cpu_percent", machineCPU(false)},
	{"client_machine_cpu_percent", machineCPU(true)},
	{"read_iops", first(series.ServerReadOps, series.DeviceReadOps, 1)},
	{"write_iops", first(series.ServerWriteOps, series.DeviceWriteOps, 1)},
	{"read_mb_s", first(series.ServerReadBytes, series.DeviceReadBytes, 1e-6)},
	{"write_mb_s", first(series.ServerWriteBytes, series.DeviceWriteBytes, 1e-6)},
	{"wal_mb_s", mean1(series.WALPosition, 1e-6)},
	{"wal_bytes_tx", walPerTransaction},
	{"wal_syncs_s", mean1(series.WALSyncs, 1)},
	{"hit_percent", mean1(series.HitRatio, 100)},
	{"checkpoints", checkpoints},
	{"replay_lag_mb", lag},
}...)

// waits has a figure for each class of waits, as in aas_lock.
func waits() (all []figure) {
	for _, class := range wait.Classes {
		all = append(all, figure{"aas_" + string(class), mean1(class.Column(), 1)})
	}
	return all
}

func mean1(column string, times float64) func(result.Observation) (float64, bool) {
	return func(o result.Observation) (float64, bool) {
		value, known := o.Observed.Mean(column)
		return value * times, known
	}
}

// first prefers the server's own control group to its devices, which others may use, too.
func first(own, device string, times float64) func(result.Observation) (float64, bool) {
	return func(o result.Observation) (float64, bool) {
		value, known := o.Observed.Mean(own)
		if !known {
			value, known = o.Observed.Mean(device)
		}
		return value * times, known
	}
}

func part(of, all string) func(result.Observation) (float64, bool) {
	return func(o result.Observation) (float64, bool) {
		part, known := o.Observed.Mean(of)
		whole, also := o.Observed.Mean(all)
		if !known || !also || whole <= 0 {
			return 0, false
		}
		return 100 * part / whole, true
	}
}

// machineCPU is that of the server's machine, or of the load generator's if the server is elsewhere.
func machineCPU(elsewhere bool) func(result.Observation) (float64, bool) {
	return func(o result.Observation) (float64, bool) {
		share, known := part(series.MachineCPU, series.MachineCPUs)(o)
		return share, known && o.Elsewhere == elsewhere
	}
}

// serverCPU is of what the server may use: its class, or the machine.
func serverCPU(o result.Observation) (float64, bool) {
	limit, limited := o.Observed.Mean(series.ServerCPULimit)
	if all, known := o.Observed.Mean(series.MachineCPUs); limited && known && limit < all {
		return part(series.ServerCPU, series.ServerCPULimit)(o)
	}
	return part(series.ServerCPU, series.MachineCPUs)(o)
}

func walPerTransaction(o result.Observation) (float64, bool) {
	rate, known := o.Observed.Mean(series.WALPosition)
	if !known || o.Load.TPS <= 0 {
		return 0, false
	}
	return rate / o.Load.TPS, true
}

// checkpoints counts those that were begun.
func checkpoints(o result.Observation) (float64, bool) {
	timed, known := o.Counters["checkpoint.timed"]
	requested, also := o.Counters["checkpoint.requested"]
	return timed.After - timed.Before + requested.After - requested.Before, known && also
}

// lag is that of the standby that was furthest behind when the load ended.
func lag(o result.Observation) (float64, bool) {
	most := 0.0
	for _, s := range o.Standbys {
		most = max(most, s["replay_lag_bytes"])
	}
	return most / 1e6, len(o.Standbys) > 0
}

// keptPrefixes are of the columns that series.csv has of each second: of all there are, these may be
// looked at over time. The others are in result.json, summed up.
var keptPrefixes = []string{
	series.Active, series.WaitPrefix, series.LockWaiting, series.LockOnPrefix, series.CheckpointRunning, series.VacuumWorkers,
	series.Commits, series.HitRatio, series.WALPosition, series.ServerCPU, series.ServerThrottled, series.ServerMemory,
	series.ServerReadOps, series.ServerWriteOps, series.ServerReadBytes, series.ServerWriteBytes, series.GeneratorCPU,
	series.MachineCPU, series.MachineForeign, series.MachineSteal, series.DeviceReadOps, series.DeviceWriteOps, series.DeviceReadBytes,
	series.DeviceWriteBytes, series.DeviceReadLatency, series.DeviceWriteLatency, series.DeviceBusy, series.ObserverRoundTrip,
	series.ObserverConnected, series.StandbyPrefix,
}

// kept lists the columns of a row that go into series.csv, in their order there.
func kept(row series.Row) []string {
	var names []string
	for name := range row.Values {
		if slices.ContainsFunc(keptPrefixes, func(prefix string) bool {
			return name == prefix || strings.HasPrefix(name, strings.TrimSuffix(prefix, ".")+".")
		}) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
