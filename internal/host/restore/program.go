package restore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/host/proc"
)

// readEvery is how often the output of a program is read.
const readEvery = 100 * time.Millisecond

// program is one that runs, with its output.
type program struct {
	process proc.Process
	exit    <-chan proc.Exit
	out     *output
	ended   *proc.Exit
}

// start starts a program as the owner of the data. Its output goes to a new file.
func (w *work) start(ctx context.Context, log, path string, args, env []string) (*program, error) {
	err := w.User.Do(func() error {
		if err := os.Remove(log); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	command := proc.Command{
		Path: path, Args: args, Env: append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC", "HOME=" + w.Dir}, env...),
		LogFile: log, DataDir: w.part(),
	}
	if w.User != nil {
		command.User, command.NoSubvolumes = &proc.User{UID: uint32(w.User.UID), GID: uint32(w.User.GID)}, w.NoSubvolumes
	}
	process, err := w.Group.Start(ctx, command)
	if err != nil {
		return nil, err
	}
	if w.Limit != nil {
		w.Limit(process)
	}
	exit, err := w.Procs.Watch(ctx, process)
	if err != nil {
		return nil, err
	}
	p := &program{process: process, exit: exit, out: &output{}}
	err = w.User.Do(func() (err error) {
		p.out.file, err = os.OpenFile(log, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		return err
	})
	return p, err
}

// await waits for the end of a program, and gives each line that it prints to see. If see returns
// an error, it returns that at once, while the program runs.
func (p *program) await(ctx context.Context, see func(line string) error) (proc.Exit, error) {
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	for {
		select {
		case exit, ok := <-p.exit:
			if !ok {
				return proc.Exit{}, context.Cause(ctx)
			}
			p.ended = &exit
		case <-tick.C:
		case <-ctx.Done():
			return proc.Exit{}, ctx.Err()
		}
		if err := p.out.each(see); err != nil {
			return proc.Exit{}, err
		}
		if p.ended != nil {
			p.out.all.Write(p.out.rest) // a line without an end
			return *p.ended, nil
		}
	}
}

// stop ends a server in good order.
func (p *program) stop(ctx context.Context, procs *proc.Host) error {
	if err := procs.Signal(p.process, syscall.SIGINT); err != nil && !errors.Is(err, proc.ErrGone) {
		return err
	}
	_, err := p.await(ctx, func(string) error { return nil })
	return err
}

func (p *program) close() { _ = p.out.file.Close() }

// Output that is kept for the reason of a failure.
const mostOutput = 1 << 20

const (
	// mostLine is where a line that is longer is cut into several.
	mostLine = 64 << 10
	// mostLook is how much is read at one look: whoever writes faster than we read must not keep us
	// from seeing the end.
	mostLook = 16 << 20
)

// output is what a program prints, line by line.
type output struct {
	file *os.File
	rest []byte // of a line that has no end yet
	all  bytes.Buffer
}

// each gives the lines that are new to see, until that returns an error. What follows that line is
// read at the next call.
func (o *output) each(see func(line string) error) error {
	buffer := make([]byte, mostLine)
	for looked := 0; ; {
		line, rest, found := bytes.Cut(o.rest, []byte("\n"))
		if !found && len(o.rest) >= mostLine {
			line, rest, found = o.rest[:mostLine], o.rest[mostLine:], true
		}
		if !found {
			if looked >= mostLook {
				return nil
			}
			n, err := o.file.Read(buffer)
			if n == 0 && (err == nil || errors.Is(err, io.EOF)) {
				return nil
			}
			if n == 0 {
				return fmt.Errorf("read output: %w", err)
			}
			o.rest = append(o.rest, buffer[:n]...)
			looked += n
			continue
		}
		text := string(line)
		o.rest = bytes.Clone(rest)
		if o.all.Len() > mostOutput {
			o.all.Next(o.all.Len() - mostOutput/2)
		}
		o.all.WriteString(text + "\n")
		if err := see(text); err != nil {
			return err
		}
	}
}

// short runs a program that takes a moment, and returns what it printed.
func (w *work) short(ctx context.Context, path string, args, env []string) (string, proc.Exit, error) {
	p, err := w.start(ctx, w.path(outFile), path, args, env)
	if err != nil {
		return "", proc.Exit{}, err
	}
	defer p.close()
	exit, err := p.await(ctx, func(string) error { return nil })
	return p.out.all.String(), exit, err
}
