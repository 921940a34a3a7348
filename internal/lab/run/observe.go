package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/fault"
	"howdah/internal/lab/result"
	"howdah/internal/lab/verdict"
	"howdah/internal/observe"
	"howdah/internal/observe/environment"
	"howdah/internal/observe/machine"
	"howdah/internal/observe/series"
)

// sampleEvery is how often sessions are looked at: a quick run has few seconds, and needs samples.
const sampleEvery = 250 * time.Millisecond

// observed has do make a load, and observes the target from the moment that do calls begin until do
// returns. begin is told which processes make the load, and may be called once. do returns what it says
// of its load; what it kept before as ticks of the name prefix+"tps" tells what checkpoints did to it.
//
// An error is that of do. If the target cannot be observed, do runs all the same, and the point says so.
func (d *doing) observed(ctx context.Context, prefix string, do func(begin func(observe.Processes)) (verdict.Load, error)) error {
	if d.Blind {
		_, err := do(func(observe.Processes) {})
		return err
	}
	w, err := d.watch(ctx)
	if err != nil {
		d.point.Observed = append(d.point.Observed, result.Observation{Prefix: prefix, Failed: err.Error()})
		_, err = do(func(observe.Processes) {})
		return err
	}
	defer w.observer.Close()
	known := d.known(ctx)
	load, err := do(func(p observe.Processes) {
		p.Known = append(p.Known, known...)
		w.begin(ctx, p)
	})
	w.end(ctx)
	if err != nil || w.from.IsZero() {
		return err
	}
	d.saw(w, prefix, load)
	return nil
}

// known lists the processes of a Howdah on this machine: they are no strangers to the test.
func (d *doing) known(ctx context.Context) []int {
	m, ok := d.Target.(interface {
		Ground() (*fault.Ground, error)
	})
	if !ok {
		return nil
	}
	ground, err := m.Ground()
	if err != nil {
		return nil // it is on other machines
	}
	return ground.Others(ctx)
}

// watching is an observer, and what it saw.
type watching struct {
	observer *observe.Observer
	from, to time.Time
	before   series.Reading
	after    series.Reading
	failed   string

	stop context.CancelFunc
	done sync.WaitGroup
	rows []series.Row // only Run's goroutine changes it, until done
}

func (d *doing) watch(ctx context.Context) (*watching, error) {
	observer, err := observe.Open(ctx, observe.Config{Conn: d.server().Config(), Sample: sampleEvery})
	if err != nil {
		return nil, err
	}
	w := &watching{observer: observer, before: series.NewReading(), after: series.NewReading()}
	if w.before, err = observer.Counters(ctx); err != nil {
		w.failed = err.Error()
	}
	return w, nil
}

func (w *watching) begin(ctx context.Context, p observe.Processes) {
	w.observer.Watch(p)
	w.from = time.Now()
	ctx, w.stop = context.WithCancel(ctx)
	w.done.Go(func() {
		// It returns nil, as ctx ends.
		_ = w.observer.Run(ctx, func(row series.Row) { w.rows = append(w.rows, row) })
	})
}

// end reads the counters after the last client has left: its backend has told what it did by then.
func (w *watching) end(ctx context.Context) {
	if w.stop == nil {
		return
	}
	w.to = time.Now()
	w.stop()
	w.done.Wait()
	var err error
	if w.after, err = w.observer.Counters(ctx); err != nil {
		w.failed = err.Error()
	}
}

// saw keeps what was seen in the point.
func (d *doing) saw(w *watching, prefix string, load verdict.Load) {
	o := result.Observation{
		Prefix: prefix, Failed: w.failed, Missing: w.observer.Missing(), Load: load, Observed: series.Summarise(w.rows, w.from, w.to),
		Counters: changes(w.before, w.after), Standbys: standbys(w.after.Gauges),
	}
	if o.Observed.Rows == 0 {
		o.Failed = strings.TrimPrefix(o.Failed+"; it was too short: nothing was seen", "; ")
	}
	o.Load.CheckpointTPS = checkpointTPS(w.rows, d.ticks, d.number, prefix+"tps")
	o.Judge(nil)
	d.point.Observed = append(d.point.Observed, o)
	if wanted, err := d.Experiment.Wanted(d.point.Levels); err == nil && d.point.Struck == "" {
		d.point.Struck = lacks(wanted, w.rows)
	}
	for _, f := range figures {
		if value, known := f.of(o); known {
			d.figure(prefix+f.name, value)
		}
	}
	for _, row := range w.rows {
		for _, name := range kept(row) {
			d.ticks = append(d.ticks, result.Tick{Point: d.number, At: time.UnixMilli(row.At).UTC(), Name: name, Value: row.Values[name]})
		}
	}
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

// changes lists the counters that grew between two readings of the same epoch.
func changes(before, after series.Reading) map[string]result.Change {
	all := map[string]result.Change{}
	for name, then := range after.Families {
		first, known := before.Families[name]
		if !known || first.Epoch != then.Epoch {
			continue
		}
		for column, value := range then.Counters {
			if was, known := first.Counters[column]; known && value > was {
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

// environment reads what is measured, once. A result that goes on in another environment says so.
func (d *doing) environment(ctx context.Context, r *result.Result) {
	conn, err := d.connect(ctx)
	if err == nil {
		defer conn.Close(context.WithoutCancel(ctx))
		var found environment.Environment
		if found, err = environment.Read(ctx, conn, machine.System{}); err == nil {
			switch {
			case r.Environment == nil:
				r.Environment = &found
			// A Howdah makes another database for what is missing: that is no change of what was measured.
			case r.Target.Kind != "howdah" && r.Environment.Hash() != found.Hash():
				r.Problems = append(r.Problems, fmt.Sprintf("the environment has changed since the run began, as seen at %s", found.At.Format(time.RFC3339)))
			}
			return
		}
	}
	r.Problems = append(r.Problems, "the environment could not be read: "+err.Error())
}

// roundTrips returns how often a transaction of pgbench waits for the server, one after the other; 0:
// nobody knows.
func roundTrips(scripts []experiment.Script) float64 {
	sum, weights := 0.0, 0.0
	for _, s := range scripts {
		trips := tripsOf(s)
		if trips == 0 {
			return 0
		}
		sum += trips * float64(s.Weight)
		weights += float64(s.Weight)
	}
	if weights == 0 {
		return 0
	}
	return sum / weights
}

// tripsOf counts the statements. Commands of pgbench may be anything.
func tripsOf(s experiment.Script) float64 {
	switch s.Builtin {
	case "tpcb-like":
		return 7
	case "simple-update":
		return 5
	case "select-only":
		return 1
	}
	if strings.Contains(s.SQL, `\`) || strings.Contains(s.SQL, "$$") {
		return 0
	}
	trips := 0.0
	for statement := range strings.SplitSeq(s.SQL, ";") {
		if strings.TrimSpace(statement) != "" {
			trips++
		}
	}
	return trips
}
