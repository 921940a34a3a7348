package haproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/edge/endpoint"
)

const (
	startTime  = 10 * time.Second // it takes 20 ms unless the machine stands still
	answerTime = 2 * time.Second  // of the runtime socket; it takes less than a millisecond
	stopTime   = 2 * time.Second  // after which a proxy is killed
)

// files are the files of one proxy. Their path is in its command line and in no other's. That tells
// a proxy from all other processes: no process is signalled unless its command line was read after
// a descriptor of it was taken.
type files struct{ base string }

func filesOf(dir string, listen netip.AddrPort) files {
	return files{filepath.Join(dir, strings.Replace(listen.String(), ":", "-", 1))}
}

func (f files) config() string { return f.base + ".cfg" }
func (f files) socket() string { return f.base + ".sock" }

// admitted returns the path of the list of networks whose clients may connect.
func (f files) admitted() string { return f.base + ".acl" }

// listenOf is the inverse of filesOf for the path of a configuration.
func listenOf(config string) (netip.AddrPort, error) {
	name := strings.TrimSuffix(filepath.Base(config), ".cfg")
	return netip.ParseAddrPort(strings.Replace(name, "-", ":", 1))
}

// clearDir removes what proxies that have ended left in dir, and then dir.
func clearDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("clear the run directory: %w", err)
	}
	for _, e := range entries {
		if listen, err := listenOf(strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())) + ".cfg"); err == nil {
			if err := filesOf(dir, listen).remove(); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("clear the run directory: %w", err)
	}
	return nil
}

func (f files) remove() error {
	for _, path := range []string{f.config(), f.socket(), f.admitted()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove a file of a proxy: %w", err)
		}
	}
	return nil
}

// errMute means that a proxy does not answer.
var errMute = errors.New("proxy does not answer")

// ask sends commands to a running proxy and returns what it says.
func (f files) ask(ctx context.Context, commands ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "unix", f.socket())
	if err != nil {
		return "", fmt.Errorf("%w: %w", errMute, err)
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })
	defer stop()
	if _, err := fmt.Fprintln(c, strings.Join(commands, "; ")); err != nil {
		return "", fmt.Errorf("%w: %w", errMute, err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errMute, err)
	}
	return string(answer), nil
}

func (f files) state(ctx context.Context) (state, error) {
	answer, err := f.ask(ctx, show)
	if err != nil {
		return state{}, err
	}
	return parseState(answer)
}

// pid asks the proxy for its own process id.
func (f files) pid(ctx context.Context) (int, error) {
	answer, err := f.ask(ctx, "show info")
	if err != nil {
		return 0, err
	}
	for _, l := range strings.Split(answer, "\n") {
		if number, ok := strings.CutPrefix(l, "Pid: "); ok {
			return strconv.Atoi(number)
		}
	}
	return 0, errors.New("ask a proxy: it does not say its number")
}

// lead makes a running proxy lead to targets, and reads back that it does.
func (f files) lead(ctx context.Context, now state, targets []netip.AddrPort) error {
	commands, err := now.commands(targets)
	if err != nil || len(commands) == 0 {
		return err
	}
	answer, err := f.ask(ctx, commands...)
	if err != nil {
		return err
	}
	now, err = f.state(ctx)
	if err != nil {
		return err
	}
	if !now.leads(targets) {
		return fmt.Errorf("lead to %v: the proxy says %q", targets, strings.TrimSpace(answer))
	}
	return nil
}

// process is a running proxy, held by a descriptor that never means another process, whatever
// becomes of its id.
type process struct{ fd, pid int }

// start starts a proxy for e. The proxy goes on when this process ends.
func start(ctx context.Context, program string, f files, e endpoint.Endpoint, maxConn int) error {
	if err := os.WriteFile(f.admitted(), []byte(strings.Join(admittedTo(e), "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("write who may connect to a proxy: %w", err)
	}
	config := render(e, f.socket(), f.admitted(), maxConn)
	if err := os.WriteFile(f.config(), []byte(config), 0o600); err != nil {
		return fmt.Errorf("write the configuration of a proxy: %w", err)
	}
	if err := run(ctx, program, "", "-D", "-f", f.config()); err != nil {
		return err
	}
	if len(e.Targets) > 0 {
		return nil
	}
	_, err := f.ask(ctx, "disable frontend "+frontend)
	return err
}

// run runs haproxy once, and waits until it ends. With -D haproxy ends once it has forked.
func run(ctx context.Context, program, stdin string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.WaitDelay = time.Second
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("haproxy %s: %w: %s", strings.Join(args, " "), err, alerts(complaint.String()))
	}
	return nil
}

// alerts returns the lines of haproxy's complaint that say why it ended.
func alerts(complaint string) string {
	var found []string
	for _, l := range strings.Split(complaint, "\n") {
		if _, text, ok := strings.Cut(l, "[ALERT]"); ok {
			found = append(found, strings.TrimSpace(text))
		}
	}
	return strings.Join(found, "; ")
}

// running returns the configurations that proxies of dir run with, and their processes.
func running(dir string) (map[string][]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("look for proxies: %w", err)
	}
	found := map[string][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if config := configOf(pid); config != "" && filepath.Dir(config) == dir {
			found[config] = append(found[config], pid)
		}
	}
	return found, nil
}

// configOf returns "" for a process that is no proxy, has ended, or may not be read.
func configOf(pid int) string {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	if len(args) != 4 || filepath.Base(args[0]) != "haproxy" || args[1] != "-D" || args[2] != "-f" {
		return ""
	}
	return args[3]
}

// hold takes a descriptor of the proxy that runs with config as pid. It returns nil if that has
// ended.
func hold(pid int, config string) (*process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take hold of a proxy: %w", err)
	}
	if configOf(pid) != config { // the number went to another process in between
		unix.Close(fd)
		return nil, nil
	}
	return &process{fd, pid}, nil
}

// ended waits until the process has ended, for at most wait, and reports whether it has.
func (p *process) ended(wait time.Duration) bool {
	fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
	end := time.Now().Add(wait)
	for {
		n, err := unix.Poll(fds, int(max(0, time.Until(end).Milliseconds())))
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n > 0
		}
	}
}

// release gives the descriptor up. The proxy runs on.
func (p *process) release() { unix.Close(p.fd) }

// stop ends the proxy and its sessions, and gives the descriptor up.
func (p *process) stop() error {
	defer p.release()
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		err := unix.PidfdSendSignal(p.fd, signal, nil, 0)
		if errors.Is(err, unix.ESRCH) || err == nil && p.ended(stopTime) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("stop a proxy: %w", err)
		}
	}
	return errors.New("stop a proxy: it outlived SIGKILL")
}
