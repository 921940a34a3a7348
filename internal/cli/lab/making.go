package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"howdah/internal/cli"
	"howdah/internal/lab/book"
	"howdah/internal/lab/fault"
	"howdah/internal/lab/pgpool"
	"howdah/internal/lab/result"
	"howdah/internal/lab/run"
	"howdah/internal/lab/target"
)

// tellEvery is how often it is written down how far a run is.
const tellEvery = time.Second

// errTarget says that a run would go on against something else.
var errTarget = errors.New("the run was begun against another target")

// making is a run that this program makes.
type making struct {
	o         *cli.Options
	flags     runFlags
	languages []string
	entry     book.Run
	progress  book.Progress
	wrote     time.Time
}

// work has the experiments of a run, read and checked.
func (f runFlags) work(o *cli.Options, names []string) ([]run.Options, error) {
	var all []run.Options
	for _, name := range names {
		text, e, err := find(name)
		if err != nil {
			return nil, err
		}
		if f.quick {
			e = e.Quickly()
		}
		if slices.ContainsFunc(all, func(other run.Options) bool { return other.Experiment.Name == e.Name }) {
			return nil, fmt.Errorf("there are two experiments of the name %s: %w", e.Name, cli.ErrUsage)
		}
		all = append(all, run.Options{Experiment: e, Source: string(text), Quick: f.quick, Blind: f.blind, Release: o.Version})
	}
	return all, nil
}

// enter finds the run of a directory in the book, as the same command was given before, or enters it.
func enter(b *book.Book, r book.Run) (book.Run, error) {
	if r.Dir == "" {
		return b.Add(r)
	}
	all, err := b.List()
	if err != nil {
		return r, err
	}
	for _, s := range all {
		if s.Dir == r.Dir && s.State != book.Gone && s.Target == r.Target && slices.Equal(s.Arguments, r.Arguments) && slices.Equal(s.Experiments, r.Experiments) {
			return s.Run, nil
		}
	}
	return b.Add(r)
}

// entryOf is what the book says of a run.
func (f runFlags) entryOf(o *cli.Options, cmd *cobra.Command, names []string, at string) (book.Run, error) {
	r := book.Run{Target: at, Quick: f.quick, Began: o.Now(), Arguments: given(cmd)}
	var err error
	if f.out != "" {
		if r.Dir, err = filepath.Abs(f.out); err != nil {
			return r, err
		}
	}
	for _, name := range names {
		if isFile(name) {
			if name, err = filepath.Abs(name); err != nil {
				return r, err
			}
		}
		r.Experiments = append(r.Experiments, name)
	}
	return r, nil
}

// pathFlags are those that name a file, and mean the same elsewhere only as a whole path.
var pathFlags = []string{"target-file"}

// given lists the flags that a run was begun with, but for those that are in the book anyway.
func given(cmd *cobra.Command) (all []string) {
	for _, name := range []string{"target", "target-file", "lang", "quick", "allow-writes", "keep", "allow-clock", "allow-faults", "blind"} {
		flag := cmd.Flags().Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		value := flag.Value.String()
		if slices.Contains(pathFlags, name) {
			if whole, err := filepath.Abs(value); err == nil {
				value = whole
			}
		}
		all = append(all, "--"+name+"="+value)
	}
	return all
}

// make makes all experiments that are not done.
func (m *making) make(ctx context.Context, all []run.Options) error {
	unlock, err := book.Lock(m.entry)
	if err != nil {
		return err
	}
	defer unlock()
	program, err := pgbench()
	if err != nil {
		return err
	}
	// A session that is cut ends it in good order.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	m.progress.Problem, m.progress.Done = "", nil // what is done is found out anew, and takes no time
	results := []*result.Result{}
	for _, one := range all {
		one.Dir, one.PGBench = filepath.Join(m.entry.Dir, one.Experiment.Name), program
		if h, ok := one.Target.(*target.Howdah); ok {
			h.Dir = one.Dir
		}
		r, err := runOne(ctx, m.o, one, m.languages, m.tell)
		if err != nil {
			m.progress.Problem = err.Error()
			return errors.Join(fmt.Errorf("%s: %w", one.Experiment.Name, err), book.Tell(m.entry, m.progress))
		}
		results = append(results, r)
		if !slices.Contains(m.progress.Done, one.Experiment.Name) {
			m.progress.Done = append(m.progress.Done, one.Experiment.Name)
		}
		if err := book.Tell(m.entry, m.progress); err != nil {
			return err
		}
	}
	return m.o.Print(results, func() error { return nil })
}

// tell writes down how far the run is.
func (m *making) tell(experiment string, p run.Progress) {
	now := m.o.Now()
	m.progress = book.Progress{
		Experiment: experiment, Point: p.Point, Points: p.Points, Setting: p.Setting, Step: p.Step, Left: p.Left.Seconds(), At: now.UTC(), Done: m.progress.Done,
	}
	if now.Sub(m.wrote) < tellEvery {
		return
	}
	// A disk that is full shows where results are written.
	_ = book.Tell(m.entry, m.progress)
	m.wrote = now
}

// healAll undoes what runs that nobody makes any more have left broken, whichever they are.
func healAll(ctx context.Context, b *book.Book) error {
	all, err := b.List()
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.State == book.Running {
			continue
		}
		entries, err := os.ReadDir(s.Dir)
		if err != nil {
			continue // it is gone, or somebody else's by now
		}
		for _, entry := range entries {
			dir := filepath.Join(s.Dir, entry.Name())
			if err := fault.Heal(ctx, dir); err != nil && !errors.Is(err, unix.ENOTDIR) {
				return fmt.Errorf("undo what the run %s has broken: %w", s.ID, err)
			}
			if err := pgpool.Clear(ctx, dir); err != nil && !errors.Is(err, unix.ENOTDIR) {
				return fmt.Errorf("stop what the run %s has left: %w", s.ID, err)
			}
		}
	}
	return nil
}

// sameTarget refuses to go on against another target than the run was begun with.
func sameTarget(r book.Run, at string) error {
	if r.Target == at {
		return nil
	}
	return fmt.Errorf("%w, %s, and this is %s: give its address by --target-file or %s", errTarget, r.Target, at, targetVariable)
}

// farOf says how far a run is, for people.
func farOf(s book.Status) string {
	p := s.Progress
	switch {
	case s.State == book.Ended || p.Experiment == "":
		return ""
	case p.Point == 0:
		return p.Experiment + ": " + p.Step
	}
	text := fmt.Sprintf("%s: point %d of %d", p.Experiment, p.Point, p.Points)
	if p.Setting != "" {
		text += " (" + p.Setting + ")"
	}
	if p.Step != "" {
		text += ": " + p.Step
	}
	if p.Left > 0 && s.State == book.Running {
		text += ", " + span(time.Duration(p.Left*float64(time.Second)).Round(time.Second)) + " left"
	}
	return text
}

func joined(names []string) string {
	short := make([]string, len(names))
	for n, name := range names {
		short[n] = filepath.Base(name)
	}
	return strings.Join(short, " ")
}
