package seed

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"howdah/internal/engine/backup"
)

var (
	errSlow  = errors.New("it takes too long")
	errStill = errors.New("it stands still")
)

// shortTimeout bounds a question to the repository, and mostOutput what is kept of an answer.
const (
	shortTimeout = 2 * time.Minute
	mostOutput   = 64 << 20
)

// exitError says that a program ended with another code than 0.
type exitError struct {
	code   int
	reason string
}

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d: %s", e.code, e.reason) }

// command is a program in a group of its own, which ends with us.
func command(ctx context.Context, c backup.Command) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Dir, cmd.Env = "/", append([]string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"}, c.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// ended says how a program ended.
func (m *Maker) ended(ctx context.Context, path string, out []byte, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return &exitError{failed.ExitCode(), m.Engine.Failed(out, failed.ExitCode()).Reason}
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", filepath.Base(path), err)
	}
	return nil
}

// short runs a program that takes a moment, and returns what it printed.
func (m *Maker) short(ctx context.Context, c backup.Command) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, shortTimeout, errSlow)
	defer cancel()
	cmd := command(ctx, c)
	out := &bounded{most: mostOutput}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	return out.Bytes(), m.ended(ctx, c.Path, out.Bytes(), err)
}

// long runs a program that has to say something now and then.
func (m *Maker) long(ctx context.Context, c backup.Command) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := command(ctx, c)
	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reader.Close()
	cmd.Stdout, cmd.Stderr = writer, writer
	err = cmd.Start()
	writer.Close()
	if err != nil {
		return fmt.Errorf("run %s: %w", filepath.Base(c.Path), err)
	}
	m.step("copying")
	still := time.AfterFunc(m.Patience.Still, func() { cancel(errStill) })
	defer still.Stop()
	var last bytes.Buffer
	var group sync.WaitGroup
	group.Go(func() {
		lines := bufio.NewReader(reader)
		for {
			line, err := lines.ReadSlice('\n')
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return
			}
			still.Reset(m.Patience.Still)
			if _, progress := m.Engine.Progress(string(bytes.TrimSpace(line))); !progress && last.Len() < mostReason {
				last.Write(line)
			}
		}
	})
	err = cmd.Wait()
	group.Wait()
	return m.ended(ctx, c.Path, last.Bytes(), err)
}

// mostReason is how much is kept of what a program printed that is no progress.
const mostReason = 1 << 20

// bounded keeps what is printed, up to a number of bytes.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, io.ErrShortWrite
	}
	return b.Buffer.Write(p)
}
