// Package pgbench runs PostgreSQL's own benchmark, and reads what it says.
package pgbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"howdah/internal/lab/address"
	"howdah/internal/lab/heard"
)

// Script is one of the scripts of a run.
type Script struct {
	// Builtin names one of pgbench's own: tpcb-like, simple-update or select-only. File is a file
	// of one's own. Exactly one of the two is set.
	Builtin string
	File    string
	Weight  int // at least 1
}

// Options say what runs. Clients is at least 1, and either Time or Transactions is set.
type Options struct {
	Program string // of pgbench
	Server  address.Server
	Scripts []Script
	Clients int
	Threads int // at most Clients; 0: as many, up to the processors of this machine
	// Time is for how long it runs, in full seconds. Transactions is how many each client makes.
	Time         time.Duration
	Transactions int
	// Protocol is simple, extended or prepared.
	Protocol string
	Rate     float64 // transactions a second that are begun; 0: as fast as it goes
	// Limit counts transactions that take longer as late, and with Rate leaves those out that come
	// too late to be begun; 0: none.
	Limit time.Duration
	// Vacuum has it vacuum its own tables before it begins. A run on a standby, or with scripts of
	// one's own, must not.
	Vacuum bool
	// Sample is the share of transactions whose times are kept: over 0 and up to 1.
	Sample float64
	Seed   int64 // 0: another one each time
	// Dir is an empty directory for what it writes.
	Dir string
	// Started is told the process once it runs. It may be nil.
	Started func(pid int)
	// Second is told of each second. It may be nil.
	Second func(Second)
}

// Second is what pgbench says of a second.
type Second struct {
	At      time.Time
	TPS     float64
	Latency float64 // the mean, in milliseconds
	Stddev  float64 // of the latency, in milliseconds
	Failed  int
}

// Result is what a run came to.
type Result struct {
	Command      []string // what was run; no password is in it
	Began        time.Time
	Took         time.Duration
	TPS          float64 // without the time that connecting took
	Transactions int
	Failed       int
	Late         int // above Options.Limit
	Skipped      int // not begun, as it was too late
	Latency      float64
	Connecting   time.Duration // of all clients, until the first transactions
	Seconds      []Second
	Scripts      []ScriptResult
	// CPU is what pgbench itself took of the processors.
	CPU time.Duration
	// Aborted says how many clients ended early, and Messages has the first lines that say why.
	Aborted  int
	Messages []string
}

// ScriptResult is what one script of several came to.
type ScriptResult struct {
	Name         string
	Transactions int
	TPS          float64
	Latency      float64 // the mean, in milliseconds
}

var (
	// ErrRun says that pgbench did not run to its end. Its words follow.
	ErrRun = errors.New("pgbench failed")
	// ErrSays says that pgbench ended well, and that its words are not understood.
	ErrSays = errors.New("pgbench says what is not understood")
)

// Arguments are those of a run, without the name of the database, which comes last.
func (o Options) Arguments() []string {
	args := []string{"-c", strconv.Itoa(o.Clients), "-j", strconv.Itoa(o.threads()), "-P", "1", "--progress-timestamp", "-M", o.Protocol}
	if o.Time > 0 {
		args = append(args, "-T", strconv.Itoa(int(o.Time.Seconds())))
	} else {
		args = append(args, "-t", strconv.Itoa(o.Transactions))
	}
	if !o.Vacuum {
		args = append(args, "-n")
	}
	for _, s := range o.Scripts {
		flag, name := "-b", s.Builtin
		if s.File != "" {
			flag, name = "-f", s.File
		}
		args = append(args, flag, name+"@"+strconv.Itoa(max(s.Weight, 1)))
	}
	if o.Rate > 0 {
		args = append(args, "-R", strconv.FormatFloat(o.Rate, 'g', -1, 64))
	}
	if o.Limit > 0 {
		args = append(args, "-L", strconv.FormatFloat(o.Limit.Seconds()*1000, 'g', -1, 64))
	}
	if o.Seed != 0 {
		args = append(args, "--random-seed="+strconv.FormatInt(o.Seed, 10))
	}
	if o.Sample > 0 {
		args = append(args, "-l", "--log-prefix="+filepath.Join(o.Dir, logPrefix))
		if o.Sample < 1 {
			args = append(args, "--sampling-rate="+strconv.FormatFloat(o.Sample, 'g', -1, 64))
		}
	}
	return args
}

func (o Options) threads() int {
	if o.Threads > 0 {
		return o.Threads
	}
	return min(o.Clients, processors())
}

// Cores is how many processors pgbench can use at most.
func (o Options) Cores() int { return min(o.threads(), processors()) }

const logPrefix = "transactions"

// Run runs pgbench to its end, or until ctx ends. A run whose clients were aborted is no error: they are
// in the Result. The transactions of which the time was kept are read by Times.
func Run(ctx context.Context, o Options) (Result, error) {
	cmd, err := command(ctx, o.Program, o.Server, o.Arguments())
	if err != nil {
		return Result{}, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return Result{}, err
	}
	out := heard.Most{Bytes: mostSaid}
	cmd.Stdout = &out
	r := Result{Command: append([]string{"pgbench"}, cmd.Args[1:]...), Began: time.Now()}
	if err := cmd.Start(); err != nil {
		return r, fmt.Errorf("%w: %w", ErrRun, err)
	}
	if o.Started != nil {
		o.Started(cmd.Process.Pid)
	}
	var reading sync.WaitGroup
	reading.Go(func() { r.listen(stderr, o.Second) })
	reading.Wait()
	err = cmd.Wait()
	r.Took = time.Since(r.Began)
	if cmd.ProcessState != nil {
		r.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	// It ends with 2 if clients were aborted, and says what the others did all the same.
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(out.String(), "tps = ")) {
		return r, fmt.Errorf("%w: %w: %s", ErrRun, err, strings.Join(r.Messages, "; "))
	}
	return r, r.summary(out.String())
}

// Version is what the program says of its release, as in "pgbench (PostgreSQL) 15.20".
func Version(ctx context.Context, program string) (string, error) {
	text, err := exec.CommandContext(ctx, program, "--version").Output() //nolint:gosec // the program that runs anyway
	if err != nil {
		return "", fmt.Errorf("%w: ask it for its version: %w", ErrRun, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// Init makes pgbench's tables anew. steps are pgbench's letters; "" are its usual ones.
func Init(ctx context.Context, program string, server address.Server, scale, fillfactor int, steps string, unlogged bool) error {
	args := []string{"-i", "-q", "-s", strconv.Itoa(scale)}
	if fillfactor > 0 {
		args = append(args, "-F", strconv.Itoa(fillfactor))
	}
	if steps != "" {
		args = append(args, "-I", steps)
	}
	if unlogged {
		args = append(args, "--unlogged-tables")
	}
	cmd, err := command(ctx, program, server, args)
	if err != nil {
		return err
	}
	said := heard.Last{Bytes: heard.MostText}
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: make its tables of scale %d: %w: %s", ErrRun, scale, err, lastLines(said.String(), 3))
	}
	return nil
}

// command is pgbench against a server. It dies with this process.
func command(ctx context.Context, program string, server address.Server, args []string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, program, append(args, server.Address())...)
	environment, err := server.Environment()
	if err != nil {
		return nil, err
	}
	cmd.Env = slices.Concat(environment, []string{"LC_ALL=C.UTF-8", "PATH=" + os.Getenv("PATH")})
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second
	return cmd, nil
}

const (
	// mostMessages is how many lines are kept of what it says while it runs.
	mostMessages = 20
	// mostSeconds is how many seconds of a run are kept: those of a week.
	mostSeconds = 7 * 24 * 3600
	// mostSaid is how much is read of what it says at its end, in bytes.
	mostSaid = 1 << 20
)

// listen reads what it says while it runs.
func (r *Result) listen(from io.Reader, tell func(Second)) {
	heard.Lines(from, func(line string) {
		second, ok := ParseProgress(line)
		switch {
		case ok && len(r.Seconds) < mostSeconds:
			r.Seconds = append(r.Seconds, second)
			if tell != nil {
				tell(second)
			}
		case strings.Contains(line, "aborted in command"), strings.Contains(line, "client") && strings.Contains(line, "aborted"):
			r.Aborted++
			r.says(line)
		case strings.TrimSpace(line) != "" && !strings.HasSuffix(line, "starting vacuum...end."):
			r.says(line)
		}
	})
}

func (r *Result) says(line string) {
	if len(r.Messages) < mostMessages {
		r.Messages = append(r.Messages, heard.Text(line))
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}
