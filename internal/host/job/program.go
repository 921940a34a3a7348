package job

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/host/proc"
	"howdah/internal/system/owner"
)

// Program is a program that a job runs.
type Program struct {
	// Name tells a job's programs apart: lower-case letters, digits and hyphens. Programs of
	// different names may run at once.
	Name string
	// Command says what to run, and as whom. Its LogFile is set by Process.
	Command proc.Command
	// Line is called for each line of output and of errors, in order, by one goroutine. nil: they
	// are only in the log. What it says of the last line comes before Process returns.
	Line func(line string)
}

// ErrRoot says that a job would have run a program with root's rights.
var ErrRoot = errors.New("jobs run nothing as root")

const (
	// lookEvery is how often the output of a program is looked at.
	lookEvery = 200 * time.Millisecond
	// killWithin is how long processes may take to die.
	killWithin = 30 * time.Second
	// mostLine is where a line that is longer is cut into several.
	mostLine = 4 << 20
	// mostLook is how much is read at one look.
	mostLook = 64 << 20
)

// Place makes a directory of a user's own within that of the job, closed to all others. nil is our
// own user. It is idempotent.
func (c Call) Place(user *owner.User) (string, error) {
	name := "own"
	if user != nil {
		name = strconv.Itoa(user.UID)
	}
	dir := filepath.Join(c.Dir, name)
	return dir, user.GiveDir(dir)
}

// Process runs a program in a process group of its own until it ends, and kills all that it left.
// What an earlier agent left of a program of this name is killed first. When ctx ends the program
// is killed with all that it has started, unless the agent ends and the kind Adopts. The output is
// in NAME.log in the Place of its user.
//
// An error says that the program was not run to its end. How it ended says the Exit.
func (c Call) Process(ctx context.Context, p Program) (proc.Exit, error) {
	w := c.work
	group, err := w.group(p.Name)
	if err == nil {
		err = kill(group)
	}
	if err != nil {
		return proc.Exit{}, err
	}
	user := ownerOf(p.Command.User)
	if os.Geteuid() == 0 && (user == nil || user.UID == 0) {
		return proc.Exit{}, Final(fmt.Errorf("run %s: %w", p.Command.Path, ErrRoot))
	}
	if p.Command.LogFile, err = c.log(p); err != nil {
		return proc.Exit{}, err
	}
	err = user.Do(func() error { return os.Remove(p.Command.LogFile) })
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return proc.Exit{}, fmt.Errorf("begin the log of %s: %w", p.Name, err)
	}
	process, err := group.Start(ctx, p.Command)
	if err != nil {
		return proc.Exit{}, errors.Join(err, kill(group))
	}
	return w.attend(ctx, group, process, p)
}

// Adopt waits for a program of this name that an earlier agent left running, as Process does; not
// found: none runs. Lines come from the first one on, also those that came before. How the program
// ended is not known.
func (c Call) Adopt(ctx context.Context, p Program) (exit proc.Exit, found bool, err error) {
	group, err := c.work.group(p.Name)
	if err != nil {
		return proc.Exit{}, false, err
	}
	process, err := group.Leader()
	if errors.Is(err, proc.ErrGone) {
		return proc.Exit{}, false, kill(group)
	}
	if err == nil {
		p.Command.LogFile, err = c.log(p)
	}
	if err != nil {
		return proc.Exit{}, false, err
	}
	exit, err = c.work.attend(ctx, group, process, p)
	return exit, true, err
}

// Group returns a process group of the job, for a kind that starts programs by itself. What runs in it
// is killed when the job ends or is run again.
func (c Call) Group(name string) (*proc.Group, error) { return c.work.group(name) }

func (c Call) log(p Program) (string, error) {
	dir, err := c.Place(ownerOf(p.Command.User))
	return filepath.Join(dir, p.Name+".log"), err
}

func ownerOf(user *proc.User) *owner.User {
	if user == nil || os.Geteuid() != 0 && int(user.UID) == os.Geteuid() {
		return nil
	}
	return &owner.User{Name: strconv.Itoa(int(user.UID)), UID: int(user.UID), GID: int(user.GID)}
}

// attend hands lines over until a process ends, and clears up after it.
func (w *work) attend(ctx context.Context, group *proc.Group, process proc.Process, p Program) (proc.Exit, error) {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	exits, err := w.jobs.Procs.Watch(watching, process)
	if err != nil {
		return proc.Exit{}, errors.Join(fmt.Errorf("watch %s: %w", p.Name, err), kill(group))
	}
	lines := &lines{path: p.Command.LogFile, user: ownerOf(p.Command.User), hand: p.Line}
	defer lines.close()
	timer := time.NewTicker(lookEvery)
	defer timer.Stop()
	for {
		select {
		case exit := <-exits:
			return exit, errors.Join(kill(group), lines.look(true), group.Remove())
		case <-ctx.Done():
			if w.kind.Adopts && w.agentEnds() {
				return proc.Exit{}, context.Cause(ctx)
			}
			return proc.Exit{}, errors.Join(context.Cause(ctx), kill(group), lines.look(true), group.Remove())
		case <-timer.C:
			if err := lines.look(false); err != nil {
				w.log.Warn("read the output of a program", "program", p.Name, "error", err)
			}
		}
	}
}

// kill kills all that is in a group.
func kill(group *proc.Group) error {
	ctx, cancel := context.WithTimeout(context.Background(), killWithin)
	defer cancel()
	_, err := group.Kill(ctx)
	return err
}

// prefix is what the groups of a job's programs begin with.
func (w *work) prefix() string { return "job-" + w.id + "-" }

func (w *work) group(name string) (*proc.Group, error) {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return nil, Final(fmt.Errorf("program %q: %w", name, proc.ErrName))
	}
	return w.jobs.Procs.Group(w.prefix() + name)
}

// killAll kills and removes all programs of the job, whoever has started them.
func (w *work) killAll() error {
	names, err := w.jobs.Procs.Groups()
	errs := []error{err}
	for _, name := range names {
		if !strings.HasPrefix(name, w.prefix()) {
			continue
		}
		group, err := w.jobs.Procs.Group(name)
		if err == nil {
			err = kill(group)
		}
		if err == nil {
			err = group.Remove()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// lines hands over the lines of a file that grows, and that belongs to somebody else.
type lines struct {
	path string
	user *owner.User
	hand func(string)

	file *os.File
	rest []byte // of a line that has not ended
}

// look hands over what has come; last: also a line without an end.
func (l *lines) look(last bool) error {
	if l.hand == nil {
		return nil
	}
	if err := l.open(); err != nil {
		return err
	}
	// Whoever writes faster than we read must not keep us from seeing the end.
	in := bufio.NewReaderSize(io.LimitReader(l.file, mostLook), 64<<10)
	for {
		part, err := in.ReadSlice('\n')
		l.rest = append(l.rest, part...)
		if len(l.rest) > 0 && (err == nil || len(l.rest) >= mostLine) {
			l.give()
		}
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			if last && len(l.rest) > 0 {
				l.give()
			}
			return nil
		default:
			return fmt.Errorf("read %s: %w", l.path, err)
		}
	}
}

func (l *lines) give() {
	l.hand(string(bytes.TrimRight(l.rest, "\r\n")))
	l.rest = l.rest[:0]
}

// open opens the file with its owner's rights: a link there leads nowhere else.
func (l *lines) open() error {
	if l.file != nil {
		return nil
	}
	return l.user.Do(func() error {
		file, err := os.OpenFile(l.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			return fmt.Errorf("read output: %w", err)
		}
		if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
			_ = file.Close()
			return errors.Join(err, fmt.Errorf("read output: %s is no plain file", l.path))
		}
		l.file = file
		return nil
	})
}

func (l *lines) close() {
	if l.file != nil {
		_ = l.file.Close()
	}
}
