// Package book keeps which runs of the lab there are, so that a run that goes on in the background, or
// was broken off, is found again. Each run has a file in HOME/lab/runs; a lock in its directory says
// whether a program makes it now.
package book

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/system/plainfile"
)

// Run is what was asked for, so that it can be asked for again. It has no password.
type Run struct {
	ID  string `json:"id"`
	Dir string `json:"dir"` // has a directory for each experiment
	// Experiments are names of those that are built in, and absolute paths of files.
	Experiments []string `json:"experiments"`
	// Arguments are the flags that the run was begun with.
	Arguments []string  `json:"arguments,omitempty"`
	Target    string    `json:"target"` // for people
	Quick     bool      `json:"quick"`
	Began     time.Time `json:"began"`
}

// Progress is how far a run is, as its program writes it down.
type Progress struct {
	Experiment string    `json:"experiment"`
	Point      int       `json:"point"` // from 1 on
	Points     int       `json:"points"`
	Setting    string    `json:"setting,omitempty"`
	Step       string    `json:"step,omitempty"`
	Left       float64   `json:"left_seconds,omitempty"` // of this experiment; 0: nobody knows
	At         time.Time `json:"at"`
	// Done lists the experiments that have ended.
	Done []string `json:"done,omitempty"`
	// Problem is why the run ended before it was done.
	Problem string `json:"problem,omitempty"`
}

// State says what becomes of a run.
type State string

// The states.
const (
	Running State = "running"
	Ended   State = "ended"
	// Broken is a run that nobody makes any more, and that is not at its end.
	Broken State = "broken off"
	// Gone is a run whose directory was removed.
	Gone State = "removed"
)

// Status is a run as it stands.
type Status struct {
	Run
	State    State    `json:"state"`
	Progress Progress `json:"progress"`
}

var (
	// ErrNone says that there is no such run.
	ErrNone = errors.New("there is no such run: see howdah lab list --runs")
	// ErrBusy says that another program makes the run.
	ErrBusy = errors.New("another howdah lab makes this run")
)

// Book lists the runs of a home.
type Book struct{ dir string }

// Of returns the book of a home. It makes nothing.
func Of(home string) *Book {
	if whole, err := filepath.Abs(home); err == nil {
		home = whole
	}
	return &Book{filepath.Join(home, "lab")}
}

// Dir is where a run is if nobody says otherwise.
func (b *Book) Dir(id string) string { return filepath.Join(b.dir, id) }

const idForm = "20060102-150405"

// Several runs may have one directory, one after the other.
func progressFile(r Run) string { return filepath.Join(r.Dir, "progress-"+r.ID+".json") }
func lockFile(r Run) string     { return filepath.Join(r.Dir, ".run-"+r.ID+".lock") }

var idPattern = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}(-[0-9]+)?$`)

// Add enters a run, with an ID of its own, and makes its directory: r.Dir, or that of its ID. It returns
// the run with both.
func (b *Book) Add(r Run) (Run, error) {
	runs := filepath.Join(b.dir, "runs")
	if err := os.MkdirAll(runs, 0o700); err != nil {
		return r, fmt.Errorf("keep a run: %w", err)
	}
	base := r.Began.UTC().Format(idForm)
	for n := 1; ; n++ {
		r.ID = base
		if n > 1 {
			r.ID = fmt.Sprintf("%s-%d", base, n)
		}
		entered := r
		if entered.Dir == "" {
			entered.Dir = b.Dir(r.ID)
		}
		err := b.enter(runs, entered)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return r, fmt.Errorf("keep a run: %w", err)
		}
		return entered, nil
	}
}

// enter writes the file of a run, which is whole from the moment that it has its name. A name that is
// taken is os.ErrExist.
func (b *Book) enter(runs string, r Run) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := makeDir(r.Dir); err != nil {
		return err
	}
	file, err := os.CreateTemp(runs, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(append(text, '\n'))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Link(file.Name(), filepath.Join(runs, r.ID+".json"))
}

// makeDir makes the directory of a run. One that is there is no error, and not os.ErrExist.
func makeDir(dir string) error {
	err := os.MkdirAll(dir, 0o755) //nolint:gosec // others may read results
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s: %w", dir, unix.ENOTDIR)
	}
	return err
}

// List returns all runs, the newest first.
func (b *Book) List() ([]Status, error) {
	files, err := filepath.Glob(filepath.Join(b.dir, "runs", "*.json"))
	if err != nil {
		return nil, err
	}
	var all []Status
	for _, f := range files {
		id := strings.TrimSuffix(filepath.Base(f), ".json")
		if !idPattern.MatchString(id) {
			continue
		}
		s, err := b.read(id)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Status) int { return b.Began.Compare(a.Began) })
	return all, nil
}

// Find returns a run by its ID, or the newest one for "".
func (b *Book) Find(id string) (Status, error) {
	if id != "" {
		if !idPattern.MatchString(id) {
			return Status{}, fmt.Errorf("%s: %w", id, ErrNone)
		}
		return b.read(id)
	}
	all, err := b.List()
	if err == nil && len(all) == 0 {
		err = ErrNone
	}
	if err != nil {
		return Status{}, err
	}
	return all[0], nil
}

func (b *Book) read(id string) (s Status, err error) {
	text, err := os.ReadFile(filepath.Join(b.dir, "runs", id+".json"))
	if errors.Is(err, os.ErrNotExist) {
		return s, fmt.Errorf("%s: %w", id, ErrNone)
	}
	if err == nil {
		err = json.Unmarshal(text, &s.Run)
	}
	if err != nil {
		return s, fmt.Errorf("read the run %s: %w", id, err)
	}
	return look(s.Run)
}

// look finds out what becomes of a run.
func look(r Run) (Status, error) {
	s := Status{Run: r, State: Broken}
	if _, err := os.Stat(r.Dir); errors.Is(err, os.ErrNotExist) {
		s.State = Gone
		return s, nil
	}
	// The lock is asked first: who ends writes down how far it came before it gives the lock back.
	locked, err := isLocked(r)
	if err != nil {
		return s, err
	}
	if locked {
		s.State = Running
	}
	text, err := plainfile.Read(progressFile(r))
	if err == nil {
		err = json.Unmarshal(text, &s.Progress)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return s, fmt.Errorf("read how far the run %s is: %w", r.ID, err)
	}
	if s.State == Broken && s.Progress.Problem == "" && len(s.Progress.Done) == len(r.Experiments) {
		s.State = Ended
	}
	return s, nil
}

// Lock says that this program makes a run, until unlock is called or the program ends.
func Lock(r Run) (unlock func(), err error) {
	file, err := os.OpenFile(lockFile(r), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the run %s: %w", r.ID, err)
	}
	whole := unix.Flock_t{Type: unix.F_WRLCK}
	err = unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &whole)
	if err != nil {
		file.Close()
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			err = ErrBusy
		}
		return nil, fmt.Errorf("make the run %s: %w", r.ID, err)
	}
	return func() { file.Close() }, nil
}

// isLocked asks without taking the lock, so that who wants it is not disturbed.
func isLocked(r Run) (bool, error) {
	file, err := os.OpenFile(lockFile(r), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the run %s: %w", r.ID, err)
	}
	defer file.Close()
	whole := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, &whole); err != nil {
		return false, fmt.Errorf("look at the run %s: %w", r.ID, err)
	}
	return whole.Type != unix.F_UNLCK, nil
}

// Tell writes down how far a run is. It is for who has its lock.
func Tell(r Run, p Progress) error {
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return err
	}
	if err := replace(progressFile(r), append(text, '\n')); err != nil {
		return fmt.Errorf("write down how far the run %s is: %w", r.ID, err)
	}
	return nil
}

// replace puts a text in the place of a file, and follows no link. It does not wait for the disk, which may be
// the one that is measured.
func replace(path string, text []byte) error {
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // others may read results
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(next, path)
}
