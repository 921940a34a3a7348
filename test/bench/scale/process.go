package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a running control plane.
type process struct {
	cmd *exec.Cmd
	url string // where it answers about itself
}

// begin starts this program as another part of the benchmark. That part does not outlive this
// process.
func begin(args ...string) (cmd *exec.Cmd, in io.WriteCloser, out io.Reader, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, nil, err
	}
	cmd = exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if in, err = cmd.StdinPipe(); err != nil {
		return nil, nil, nil, err
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		return nil, nil, nil, err
	}
	return cmd, in, out, cmd.Start()
}

// start starts a control plane for a home.
func start(ctx context.Context, dir string, detection time.Duration) (*process, error) {
	cmd, _, out, err := begin("serve", "-home", dir, "-detection", detection.String())
	if err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	p := &process{cmd: cmd, url: strings.TrimSpace(url)}
	return p, until(ctx, 5*time.Minute, func() bool {
		seen, err := p.seen()
		return err == nil && seen.Ready > 0
	})
}

// stop ends it in good order.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait() // that it was told to end is no error
}

func (p *process) seen() (Seen, error) {
	answer, err := http.Get(p.url + "/seen")
	if err != nil {
		return Seen{}, err
	}
	defer answer.Body.Close()
	var seen Seen
	return seen, json.NewDecoder(answer.Body).Decode(&seen)
}

// profile keeps a profile of what goes on during a call of during, if a directory is given.
func (p *process) profile(dir, name string, size int, during func() error) error {
	if dir == "" {
		return during()
	}
	done := make(chan error, 1)
	go func() { done <- p.save(dir, fmt.Sprintf("%s-%d", name, size), "profile?seconds=5") }()
	err := during()
	if saved := <-done; err == nil {
		err = saved
	}
	return err
}

func (p *process) save(dir, name, what string) error {
	answer, err := http.Get(p.url + "/debug/pprof/" + what)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	f, err := os.Create(filepath.Join(dir, name+".pprof"))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(f, answer.Body)
	return err
}

// memory returns the resident memory of the process, in bytes: now, and at most.
func (p *process) memory() (now, most int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	field := func(name string) int64 {
		_, rest, _ := strings.Cut(string(text), name+":")
		kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		return kib << 10
	}
	return field("VmRSS"), field("VmHWM"), nil
}

// ticks is the unit of the kernel's CPU times, which Linux has fixed at 100 a second.
const ticks = time.Second / 100

// cpu returns the CPU time that the process has used.
func (p *process) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * ticks, nil
}

// until waits for something.
func until(ctx context.Context, patience time.Duration, reached func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !reached() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("it did not happen within %s: %w", patience, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
