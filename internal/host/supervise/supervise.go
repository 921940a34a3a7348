// Package supervise runs the parts of a home that live on one machine, as `howdah up` does: a
// control plane, an edge and three agents. Each is a process of its own that is started again when
// it ends. The package knows nothing of what they do.
package supervise

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// stopTimeout is how long a part may take to end in good order.
const stopTimeout = 10 * time.Second

// Part is a process to keep running.
type Part struct {
	Name string
	Args []string // of our own program
	// Log is the file to which stdout and stderr are appended. A part that calls KeepLog keeps it
	// within bounds.
	Log string
}

// Run keeps the parts running until ctx ends. It starts them in order, and stops them in the
// opposite order. program is the path of our own binary.
func Run(ctx context.Context, program string, parts []Part, log *slog.Logger) error {
	stops := make([]context.CancelFunc, len(parts))
	var all sync.WaitGroup
	ended := make([]chan struct{}, len(parts))
	for i, part := range parts {
		partCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		stops[i], ended[i] = cancel, make(chan struct{})
		all.Go(func() {
			defer close(ended[i])
			keep(partCtx, program, part, log.With("part", part.Name))
		})
	}
	<-ctx.Done()
	for i := len(parts) - 1; i >= 0; i-- {
		stops[i]()
		<-ended[i]
	}
	all.Wait()
	return nil
}

// keep runs one part again and again. After a part that soon ended it waits first.
func keep(ctx context.Context, program string, part Part, log *slog.Logger) {
	pause := 100 * time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		err := once(ctx, program, part)
		if ctx.Err() != nil {
			return
		}
		log.Warn("part ended, starting it again", "error", err, "after", time.Since(began).Round(time.Millisecond).String())
		if time.Since(began) > 10*time.Second {
			pause = 100 * time.Millisecond
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, 5*time.Second)
	}
}

func once(ctx context.Context, program string, part Part) error {
	logFile, err := OpenLog(part.Log)
	if err != nil {
		return err
	}
	defer logFile.Close()
	cmd := exec.CommandContext(ctx, program, part.Args...)
	cmd.Env = append(os.Environ(), LogVariable+"="+part.Log)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	// A Ctrl-C for this process must not hit the parts: they are stopped in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	if err := cmd.Run(); err != nil {
		return err
	}
	return errors.New("exited by itself")
}
