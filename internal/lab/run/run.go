// Package run makes the runs of an experiment, one after the other, and keeps what they find after each.
// A run that is broken off goes on at the next point.
package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/fault"
	"howdah/internal/lab/heard"
	"howdah/internal/lab/pgbench"
	"howdah/internal/lab/pgpool"
	"howdah/internal/lab/result"
	"howdah/internal/lab/target"
)

// Options say what is run. All fields but Told are required.
type Options struct {
	Experiment *experiment.Experiment
	Source     string // its text
	Quick      bool
	Release    string
	// Dir is where the result is, or will be.
	Dir    string
	Target target.Target
	// PGBench is the program.
	PGBench string
	// Again has points measured once more that are struck.
	Again bool
	// Blind says that nothing is observed: what observing costs can be measured so.
	Blind bool
	// Told is told what goes on.
	Told func(Progress)
}

// Progress is how far a run is.
type Progress struct {
	Point, Points int // the number of the point, from 1 on, and how many there are
	Setting       string
	Run           int
	Step          string
	Left          time.Duration // until the end, by what points have taken; 0: nobody knows yet
}

var (
	// ErrBusy says that another program makes this run.
	ErrBusy = errors.New("another howdah lab writes this result")
	// ErrOther says that a directory has the result of something else.
	ErrOther = errors.New("the directory has a result of another experiment, or of another form of it: choose another directory")
	// ErrFails says that the first points all failed: the others would, too.
	ErrFails = errors.New("the experiment fails")
)

// mostFailures is after how many points in a row that failed nothing more is tried.
const mostFailures = 3

// closeWithin is how long removing what was made may take.
const closeWithin = 10 * time.Minute

// Run makes all points that are missing. It returns what there is also with an error. What it made for
// that is gone afterwards, also if ctx has ended.
func Run(ctx context.Context, o Options) (r *result.Result, err error) {
	unlock, err := lock(o.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := errors.Join(fault.Heal(ctx, o.Dir), pgpool.Clear(ctx, o.Dir)); err != nil {
		return nil, err
	}
	if r, err = o.find(); err != nil {
		return r, err
	}
	if o.Again {
		r.MeasureAgain()
	}
	first, more := r.Next(o.Experiment)
	if !more && !r.Ended.IsZero() {
		return r, nil
	}
	// Also where nothing is missing: a run that was killed in the end left its database.
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
		defer cancel()
		if err = errors.Join(err, o.Target.Close(closing)); err != nil {
			return
		}
		if _, more := r.Next(o.Experiment); !more {
			err = o.end(r)
		}
	}()
	if !more {
		return r, nil
	}
	if r.Schema < result.Schema {
		return r, fmt.Errorf("%w: choose another directory than %s", result.ErrOlder, o.Dir)
	}
	if err := result.Cut(o.Dir, len(r.Points)); err != nil {
		return r, err
	}
	if err := errors.Join(target.Check(o.Target, o.Experiment), CheckPrograms(o.Experiment), o.checkFaults(), o.checkRoom(ctx)); err != nil {
		return r, err
	}
	if err := o.begin(ctx, r, first); err != nil {
		return r, err
	}
	return r, o.measureAll(ctx, r)
}

// measureAll makes all points that are missing.
func (o Options) measureAll(ctx context.Context, r *result.Result) error {
	for failures := 0; ; {
		p, more := r.Next(o.Experiment)
		if !more {
			return nil
		}
		point, ticks, err := o.measure(ctx, r, p)
		if err != nil {
			return err
		}
		if err := result.Append(o.Dir, ticks); err != nil {
			return err
		}
		r.Points = append(r.Points, point)
		if failures++; point.Struck == "" {
			failures = 0
		} else {
			where := strings.TrimPrefix(fmt.Sprintf("%s, run %d", point.Setting, point.Run), ", ") // there may be one setting, without a name
			r.Problems = append(r.Problems, where+": "+point.Struck)
		}
		if err := result.Write(o.Dir, r); err != nil {
			return err
		}
		if failures == mostFailures {
			return fmt.Errorf("%w: %s", ErrFails, point.Struck)
		}
	}
}

// end sums up what was measured.
func (o Options) end(r *result.Result) error {
	if r.Ended.IsZero() {
		r.Ended = time.Now().UTC()
	}
	r.Sum(o.Experiment)
	return result.Write(o.Dir, r)
}

// lock makes a directory for a result, and locks it.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // others may read results
		return nil, fmt.Errorf("make a directory for a result: %w", err)
	}
	return Lock(dir)
}

// Lock keeps others from writing the result in a directory, until unlock is called or the program ends. While
// another program writes it, it returns ErrBusy.
func Lock(dir string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock a result: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrBusy
		}
		return nil, fmt.Errorf("write to %s: %w", dir, err)
	}
	return func() { file.Close() }, nil
}

// find finds what there is of the run.
func (o Options) find() (*result.Result, error) {
	r, err := result.Read(o.Dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &result.Result{
			Schema: result.Schema, Experiment: o.Experiment.Name, Quick: o.Quick, Howdah: o.Release, Began: time.Now().UTC(), Source: o.Source,
		}, nil
	case err != nil:
		return nil, err
	case r.Experiment != o.Experiment.Name || r.Quick != o.Quick || r.Source != o.Source || r.Target.Name != o.Target.Name():
		return nil, fmt.Errorf("%w: %s", ErrOther, o.Dir)
	}
	return r, nil
}

// begin checks the target, and prepares it.
func (o Options) begin(ctx context.Context, r *result.Result, first experiment.Point) error {
	clients, err := o.Experiment.Clients()
	if err != nil {
		return err
	}
	w, err := o.Experiment.Wanted(first.Setting)
	if err != nil {
		return err
	}
	o.tell(r, first, "server")
	if err := o.Target.Open(ctx, w); err != nil {
		return err
	}
	if len(r.Points) > 0 {
		r.Resumed = append(r.Resumed, time.Now().UTC())
	}
	if r.PGBench, err = pgbench.Version(ctx, o.PGBench); err != nil {
		return err
	}
	d := &doing{Options: o, run: r}
	if err := d.sameServer(ctx, r); err != nil {
		return err
	}
	if err := o.Target.Prepare(ctx, clients); err != nil {
		return err
	}
	if r.Target, err = o.Target.Describe(ctx); err != nil {
		return err
	}
	if err := o.caveats(ctx, r); err != nil {
		return err
	}
	if err := o.prepare(ctx, r, first); err != nil {
		return err
	}
	d.prepared(ctx, r)
	return result.Write(o.Dir, r)
}

// wanted lists the servers of all settings.
func (o Options) wanted() (all []experiment.Wanted, err error) {
	for _, s := range o.Experiment.Settings() {
		w, err := o.Experiment.Wanted(s)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

// checkRoom refuses data that the target has no room for, where it knows how much it has.
func (o Options) checkRoom(ctx context.Context) error {
	t, ok := o.Target.(interface {
		Room(ctx context.Context, bytes int64, all []experiment.Wanted) error
	})
	if !ok {
		return nil
	}
	bytes, err := o.Experiment.Bytes()
	if err != nil {
		return err
	}
	all, err := o.wanted()
	if err != nil {
		return err
	}
	return t.Room(ctx, bytes, all)
}

// caveats says once what the target cannot give of what settings want.
func (o Options) caveats(ctx context.Context, r *result.Result) error {
	t, ok := o.Target.(interface {
		Caveats(ctx context.Context, all []experiment.Wanted) ([]string, error)
	})
	if !ok {
		return nil
	}
	all, err := o.wanted()
	if err != nil {
		return err
	}
	texts, err := t.Caveats(ctx, all)
	for _, text := range texts {
		if !slices.Contains(r.Problems, text) {
			r.Problems = append(r.Problems, text)
		}
	}
	return err
}

// keeper is a target that keeps the data of Prepare, so that they are prepared once.
type keeper interface {
	HasData() bool
	Snapshot(ctx context.Context) error
	Restore(ctx context.Context, w experiment.Wanted) error
}

// prepare prepares the data. What was prepared may be gone since a run was broken off.
func (o Options) prepare(ctx context.Context, r *result.Result, p experiment.Point) error {
	k, keeps := o.Target.(keeper)
	keeps = keeps && o.Experiment.Restores()
	if keeps && k.HasData() {
		return nil
	}
	for _, step := range o.Experiment.Prepare {
		d := &doing{Options: o, run: r, tell: func(step string) { o.tell(r, p, step) }}
		o.tell(r, p, step.Kind())
		if err := d.step(ctx, step, p.Setting); err != nil {
			return fmt.Errorf("prepare the experiment: %w", err)
		}
	}
	if keeps {
		o.tell(r, p, "snapshot")
		return k.Snapshot(ctx)
	}
	return nil
}

// become gives the target the form that a setting wants. Where it is restored, that has it.
func (o Options) become(ctx context.Context, r *result.Result, p experiment.Point) error {
	if o.Experiment.Restores() {
		return nil
	}
	w, err := o.Experiment.Wanted(p.Setting)
	if err != nil {
		return err
	}
	anew, err := o.Target.Become(ctx, w)
	if err != nil || !anew {
		return err
	}
	clients, err := o.Experiment.Clients()
	if err != nil {
		return err
	}
	if err := o.Target.Prepare(ctx, clients); err != nil {
		return err
	}
	return o.prepare(ctx, r, p)
}

// measure makes one point. An error is one of ours, or the end of ctx; what went wrong at the target is
// in the point.
func (o Options) measure(ctx context.Context, r *result.Result, p experiment.Point) (result.Point, []result.Tick, error) {
	d := &doing{Options: o, run: r, number: len(r.Points), tell: func(step string) { o.tell(r, p, step) }}
	d.point = result.Point{
		Setting: o.Experiment.Key(p.Setting), Levels: p.Setting, Run: p.Run, Began: time.Now().UTC(), Figures: map[string]float64{},
	}
	o.tell(r, p, "server")
	if err := o.become(ctx, r, p); err != nil {
		switch {
		case ctx.Err() != nil:
			return d.point, nil, ctx.Err()
		case errors.Is(err, target.ErrOther):
			return d.point, nil, err
		}
		d.point.Struck = heard.Text(fmt.Sprintf("the server cannot be made ready: %v", err))
		return d.point, nil, nil
	}
	for _, step := range o.Experiment.Each {
		o.tell(r, p, step.Kind())
		if err := d.step(ctx, step, p.Setting); err != nil {
			if ctx.Err() != nil {
				return d.point, nil, ctx.Err()
			}
			d.point.Struck = heard.Text(fmt.Sprintf("%s failed: %v", step.Kind(), err))
			break
		}
	}
	if d.point.Struck == "" {
		d.measuredOn(ctx, r, p.Setting)
	}
	slices.SortStableFunc(d.point.Marks, func(a, b result.Mark) int { return a.At.Compare(b.At) })
	d.point.Took = time.Since(d.point.Began).Seconds()
	return d.point, d.ticks, nil
}

func (o Options) tell(r *result.Result, p experiment.Point, step string) {
	if o.Told == nil {
		return
	}
	all := len(o.Experiment.Points())
	made := r.Done()
	progress := Progress{Point: min(made+1, all), Points: all, Setting: o.Experiment.Key(p.Setting), Run: p.Run, Step: step}
	took := 0.0
	for _, done := range r.Points {
		took += done.Took
	}
	if len(r.Points) > 0 {
		progress.Left = time.Duration(took / float64(len(r.Points)) * float64(all-made) * float64(time.Second)).Round(time.Second)
	}
	o.Told(progress)
}
