package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// clients is how many sessions saturate a database of two CPUs.
const clients = 8

// sample is how many transactions were committed in a second.
type sample struct {
	at  time.Time
	tps float64
}

// load is a pgbench that runs.
type load struct {
	cmd  *exec.Cmd
	done chan struct{}
	mu   sync.Mutex
	all  []sample // guarded by mu
	said []byte   // guarded by mu
}

// pgbench returns a command that uses the database through its endpoint, with TLS, as clients do.
func (s *site) pgbench(ctx context.Context, args ...string) (*exec.Cmd, error) {
	i, err := s.Instance(ctx, source)
	if err != nil {
		return nil, err
	}
	return s.PGBench(ctx, *i.Endpoint.Address, strconv.Itoa(int(*i.Endpoint.Port)), args...)
}

// initialize makes pgbench's tables, in about 15 MB for each unit of scale.
func (s *site) initialize(ctx context.Context, scale int) error {
	cmd, err := s.pgbench(ctx, "-i", "-I", "dtGvp", "-q", "-s", strconv.Itoa(scale))
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make pgbench's tables: %w: %s", err, out)
	}
	return nil
}

// saturate begins to use the database as much as it can take, until stop, or for a time.
func (s *site) saturate(ctx context.Context, long time.Duration) (*load, error) {
	cmd, err := s.pgbench(ctx, "-n", "-M", "prepared", "-c", strconv.Itoa(clients), "-j", "2", "-P", "1", "-T", strconv.Itoa(int(long.Seconds())))
	if err != nil {
		return nil, err
	}
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	l := &load{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			l.read(lines.Bytes(), time.Now())
		}
	}()
	return l, nil
}

var progressForm = regexp.MustCompile(`^progress: [0-9.]+ s, ([0-9.]+) tps`)

func (l *load) read(line []byte, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := progressForm.FindSubmatch(line)
	if found == nil {
		l.said = append(append(l.said, line...), '\n')
		return
	}
	if tps, err := strconv.ParseFloat(string(found[1]), 64); err == nil {
		l.all = append(l.all, sample{now, tps})
	}
}

var errNoSample = errors.New("pgbench committed nothing in that time")

// between returns the mean of the transactions a second between two moments.
func (l *load) between(from, to time.Time) (float64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum, n := 0.0, 0
	for _, s := range l.all {
		// A sample is of the second that ends with it.
		if s.at.Add(-time.Second).Before(from) || s.at.After(to) {
			continue
		}
		sum += s.tps
		n++
	}
	if n == 0 {
		return 0, fmt.Errorf("%w: %s", errNoSample, l.said)
	}
	return sum / float64(n), nil
}

// stop ends it.
func (l *load) stop() {
	_ = l.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	l.wait()
}

// wait waits until it has ended.
func (l *load) wait() {
	<-l.done
	_ = l.cmd.Wait() // that it was ended is no error
}
