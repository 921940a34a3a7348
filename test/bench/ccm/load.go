package main

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// Mixes of pgbench. Aurora's own test of the feature has the second one. A cache is heated by the first:
// what is written, replay brings into a standby's cache anyway, and a small database would soon be
// written all over.
var (
	reads   = []string{"-b", "select-only"}
	auroras = []string{"-b", "tpcb-like@1", "-b", "select-only@20"}
)

// load is a pgbench that runs.
type load struct {
	cmd  *exec.Cmd
	done chan struct{}
	once sync.Once
	mu   sync.Mutex
	tps  []float64 // guarded by mu; of each second
}

// pgbench returns a command that uses the database through its endpoint, with TLS, as clients do.
func (b *bench) pgbench(ctx context.Context, args ...string) (*exec.Cmd, error) {
	i, err := b.rig.Instance(ctx, name)
	if err != nil {
		return nil, err
	}
	return b.rig.PGBench(ctx, *i.Endpoint.Address, strconv.Itoa(int(*i.Endpoint.Port)), args...)
}

// load runs for so long, with so many transactions a second, or as many as there can be if rate is 0.
func (b *bench) load(ctx context.Context, long time.Duration, rate int, mix []string) (*load, error) {
	args := append([]string{"-n", "-M", "prepared", "-c", "8", "-j", "2", "-P", "1", "-T", strconv.Itoa(int(long.Seconds()))}, mix...)
	if rate > 0 {
		args = append(args, "--rate", strconv.Itoa(rate))
	}
	cmd, err := b.pgbench(ctx, args...)
	if err != nil {
		return nil, err
	}
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start pgbench: %w", err)
	}
	l := &load{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			l.read(lines.Bytes())
		}
	}()
	return l, nil
}

var progressForm = regexp.MustCompile(`^progress: [0-9.]+ s, ([0-9.]+) tps`)

func (l *load) read(line []byte) {
	found := progressForm.FindSubmatch(line)
	if found == nil {
		return
	}
	if tps, err := strconv.ParseFloat(string(found[1]), 64); err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.tps = append(l.tps, tps)
	}
}

// wait waits until it has ended.
func (l *load) wait() {
	<-l.done
	l.once.Do(func() { _ = l.cmd.Wait() })
}

func (l *load) all() []float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]float64(nil), l.tps...)
}

// last is the median of so many seconds at the end.
func (l *load) last(seconds int) float64 {
	all := l.all()
	return median(all[max(0, len(all)-seconds):])
}
