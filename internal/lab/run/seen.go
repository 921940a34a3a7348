package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/result"
	"howdah/internal/observe/series"
)

const (
	// mostUnseen is the share of a load in which sessions may not be seen, as the server did not answer in
	// time: it is then that it has most to do.
	mostUnseen = 0.05
	// edges are the seconds at both ends of a load that no whole row may cover.
	edges = 2
)

// unseen says for how long nobody saw what the sessions did; "": for hardly any time, or never, which is told
// otherwise.
func unseen(s series.Summary) string {
	active, known := s.Columns[series.Active]
	length := s.Length().Seconds()
	if !known || length-active.Seconds <= edges+mostUnseen*length {
		return ""
	}
	return fmt.Sprintf("what the sessions did was seen in %.0f of %.0f seconds", active.Seconds, length)
}

// anew lists the statistics that were reset, or lost, between two readings.
func anew(before, after series.Reading) (names []string) {
	for name, was := range before.Families {
		if then, known := after.Families[name]; known && then.Epoch != was.Epoch {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// sessionColumns are the beginnings of what is known of the load's sessions, and of others.
var sessionColumns = []string{series.Active, series.Sessions, series.WaitPrefix, series.LockWaiting, series.LockOnPrefix}

// hidden leaves out what is known of sessions if none was the load's, although that did something: what is
// between it and the server, such as a pooler, may call its sessions otherwise.
func hidden(o *result.Observation) {
	sessions, known := o.Observed.Mean(series.Sessions)
	if !known || sessions > 0 || o.Load.TPS <= 0 {
		return
	}
	maps.DeleteFunc(o.Observed.Columns, func(column string, _ series.Stat) bool {
		return slices.ContainsFunc(sessionColumns, func(begin string) bool { return strings.HasPrefix(column, begin) })
	})
	o.Missing = append(o.Missing, "sessions: none is called "+loadName+" on the server: what is between may call them otherwise")
}

// lacks says which limit a server was to have and has not, as its processes are seen; "": none. What is
// measured without it is nothing that the setting names.
func lacks(wanted experiment.Wanted, rows []series.Row) string {
	saw := func(column string) bool {
		return slices.ContainsFunc(rows, func(row series.Row) bool { _, has := row.Values[column]; return has })
	}
	if wanted.IOPS > 0 && saw(series.ServerCPU) && !saw(series.ServerReadLimit) {
		return fmt.Sprintf("the server was to have %d IOPS, and nothing limits them here: its data must be on a disk, and Howdah must run as root with control groups for I/O (howdah status)", wanted.IOPS)
	}
	return ""
}

// changes lists the counters that grew between two readings of the same epoch, and those of checkpoints, as
// none is a figure, too.
func changes(before, after series.Reading) map[string]result.Change {
	all := map[string]result.Change{}
	for name, then := range after.Families {
		first, known := before.Families[name]
		if !known || first.Epoch != then.Epoch {
			continue
		}
		for column, value := range then.Counters {
			if was, known := first.Counters[column]; known && (value > was || value == was && strings.HasPrefix(column, "checkpoint.")) {
				all[column] = result.Change{Before: was, After: value}
			}
		}
	}
	return all
}

// standbys sorts the gauges of standbys by their names.
func standbys(gauges map[string]float64) map[string]map[string]float64 {
	all := map[string]map[string]float64{}
	for column, value := range gauges {
		rest, ours := strings.CutPrefix(column, series.StandbyPrefix)
		at := strings.LastIndex(rest, ".")
		if !ours || at < 0 {
			continue
		}
		name, field := rest[:at], rest[at+1:]
		if all[name] == nil {
			all[name] = map[string]float64{}
		}
		all[name][field] = value
	}
	return all
}

// fewestSeconds is how many seconds with a checkpoint, and without, a comparison of both needs.
const fewestSeconds = 5

// checkpointTPS returns the TPS of seconds in which a checkpoint ran, over that of the others; 0: there
// are too few of either.
func checkpointTPS(rows []series.Row, ticks []result.Tick, point int, name string) float64 {
	var with, without []float64
	for _, t := range ticks {
		if t.Point != point || t.Name != name {
			continue
		}
		switch share, known := checkpointAt(rows, t.At); {
		case known && share >= 0.5:
			with = append(with, t.Value)
		case known && share == 0:
			without = append(without, t.Value)
		}
	}
	if len(with) < fewestSeconds || len(without) < fewestSeconds {
		return 0
	}
	if usual := mean(without); usual > 0 {
		return mean(with) / usual
	}
	return 0
}

// checkpointAt looks at the row in which the middle of a second is that ended at a moment.
func checkpointAt(rows []series.Row, end time.Time) (share float64, known bool) {
	middle := float64(end.UnixMilli() - 500)
	for _, row := range rows {
		if to := float64(row.At); middle <= to && middle > to-1000*row.Seconds {
			share, known = row.Values[series.CheckpointRunning]
			return share, known
		}
	}
	return 0, false
}

// mean is 0 if there is nothing.
func mean(all []float64) float64 {
	sum := 0.0
	for _, each := range all {
		sum += each
	}
	return sum / float64(max(1, len(all)))
}
