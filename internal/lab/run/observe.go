package run

import (
	"context"
	"strings"
	"sync"
	"time"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/fault"
	"howdah/internal/lab/result"
	"howdah/internal/lab/verdict"
	"howdah/internal/observe"
	"howdah/internal/observe/series"
)

// sampleEvery is how often sessions are looked at: a quick run has few seconds, and needs samples.
const sampleEvery = 250 * time.Millisecond

// interval is told when a load is measured. Both are called once at most.
type interval struct {
	// begin is told which processes make the load.
	begin func(observe.Processes)
	// end says that the load is over. What its maker does afterwards is no part of it.
	end func()
}

// nobody does not observe.
var nobody = interval{begin: func(observe.Processes) {}, end: func() {}}

// observed has do make a load, and observes the target in the interval that do tells: until do returns, if
// it does not tell the end. do returns what it says of its load; what it kept before as ticks of the name
// prefix+"tps" tells what checkpoints did to it.
//
// An error is that of do. If the target cannot be observed, do runs all the same, and the point says so.
func (d *doing) observed(ctx context.Context, prefix string, do func(interval) (verdict.Load, error)) error {
	if d.Blind {
		_, err := do(nobody)
		return err
	}
	w, err := d.watch(ctx)
	if err != nil {
		d.point.Observed = append(d.point.Observed, result.Observation{Prefix: prefix, Failed: err.Error()})
		_, err = do(nobody)
		return err
	}
	defer w.observer.Close()
	known := d.known(ctx)
	begin := func(p observe.Processes) {
		p.Known = append(p.Known, known...)
		w.begin(ctx, p)
	}
	load, err := do(interval{begin, w.over})
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
	observer, err := observe.Open(ctx, observe.Config{Conn: d.server().Config(), Load: loadName, Sample: sampleEvery})
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

// over says that the load is over. The observer goes on until end, as its row may not be full yet.
func (w *watching) over() {
	if w.to.IsZero() {
		w.to = time.Now()
	}
}

// end reads the counters after the last client has left: its backend has told what it did by then.
func (w *watching) end(ctx context.Context) {
	if w.stop == nil {
		return
	}
	w.over()
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
	if gap := unseen(o.Observed); gap != "" {
		o.Failed = strings.TrimPrefix(o.Failed+"; "+gap, "; ")
	}
	if names := anew(w.before, w.after); len(names) > 0 {
		o.Missing = append(o.Missing, "counters of "+strings.Join(names, ", ")+": they began anew while the load ran")
	}
	hidden(&o)
	if o.Elsewhere = !w.observer.Local(); o.Elsewhere {
		o.Missing = append(o.Missing, "the server's processes: none of them is seen on this machine, so that CPU is known of the load generator's machine alone")
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
		if row.At > w.to.Add(time.Second).UnixMilli() {
			break // the load was over
		}
		for _, name := range kept(row) {
			d.ticks = append(d.ticks, result.Tick{Point: d.number, At: time.UnixMilli(row.At).UTC(), Name: name, Value: row.Values[name]})
		}
	}
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
