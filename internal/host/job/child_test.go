package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/host/proc"
	"howdah/internal/host/tree"
	"howdah/internal/identity/certs"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
)

// TestMain does the jobs of a host where a test has started this program as its agent.
func TestMain(m *testing.M) {
	if text := os.Getenv("HOWDAH_TEST_JOB"); text != "" {
		if err := child(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// order is what a child is told.
type order struct {
	Etcd           []string
	Certs          string
	Host           string
	Dir            string // of its jobs and processes
	Parent         string // of its process groups
	World          string // directory in which jobs do their deeds
	KillAt, StopAt string // the points at which it kills or stops itself
}

// stopped says that this agent has stopped itself. It does so once.
var stopped bool

// pass is a point at which an agent may die.
func (o order) pass(what string) {
	fmt.Println("point", what)
	switch what {
	case o.KillAt:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Minute)
	case o.StopAt:
		if stopped {
			return
		}
		stopped = true
		// To this very thread, which does not go on for a moment then.
		runtime.LockOSThread()
		_ = unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGSTOP)
		runtime.UnlockOSThread()
	}
}

// child does the jobs of a host until it is told to end.
func child(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	pair, err := certs.Load(o.Certs)
	if err != nil {
		return err
	}
	identity, err := certs.NewIdentity(pair)
	if err != nil {
		return err
	}
	client, err := etcd.Dial(ctx, o.Etcd, identity)
	if err != nil {
		return err
	}
	defer client.Close()
	procs, err := proc.Open(proc.Config{Parent: o.Parent, StateDir: filepath.Join(o.Dir, "proc")})
	if err != nil {
		return err
	}
	point = o.pass
	jobs, err := New(Config{
		Host: o.Host, Dir: filepath.Join(o.Dir, "jobs"), Procs: procs, Kinds: kinds(o), Refuse: func() error { return nil },
		Discard: func(dir string) error { return tree.Remove(ctx, dir) },
		Log:     slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		return err
	}
	return jobs.Run(ctx, &state.Store{Client: client})
}

// wish is what the jobs of these tests are told.
type wish struct {
	ID string // names its files in the world
}

// said is what comes of them.
type said struct {
	Lines []string
	Found bool // a program of an earlier agent
}

// note writes a line on what a job did.
func (o order) note(id, line string) {
	file, err := os.OpenFile(filepath.Join(o.World, id), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(file, line)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		panic(err)
	}
}

var errNoRoom = errors.New("there is no room")

// kinds are those of these tests.
func kinds(o order) []Kind {
	bad := func(run func() (any, error)) func(context.Context, Call) (any, error) {
		return func(context.Context, Call) (any, error) { return run() }
	}
	return []Kind{
		{Name: "deed", Light: true, Run: o.deed},
		{Name: "waits", Run: o.waits},
		{Name: "program", Run: o.program},
		{Name: "adopts", Adopts: true, Run: o.program},
		{Name: "fails", Run: bad(func() (any, error) { return nil, errNoRoom })},
		{Name: "hopeless", Run: bad(func() (any, error) { return nil, Final(errNoRoom) })},
		{Name: "panics", Run: bad(func() (any, error) { panic("oh") })},
		{Name: "long", Run: bad(func() (any, error) { return strings.Repeat("x", MostResult), nil })},
		{Name: "silent", Run: bad(func() (any, error) { return nil, nil })},
		{Name: "root", Run: func(ctx context.Context, call Call) (any, error) {
			_, err := call.Process(ctx, Program{Name: "id", Command: proc.Command{Path: "/bin/true"}})
			return nil, err
		}},
	}
}

// deed is done once, however often it is begun.
func (o order) deed(_ context.Context, call Call) (any, error) {
	var w wish
	if err := call.Decode(&w); err != nil {
		return nil, err
	}
	o.note(w.ID, fmt.Sprintf("run, resume %t", call.Resume))
	call.Progress(1, 2, "deeds")
	o.pass("running")
	if _, err := os.Lstat(filepath.Join(o.World, w.ID+".done")); err == nil {
		return said{Lines: []string{"found"}}, nil
	}
	o.note(w.ID, "deed")
	if err := os.WriteFile(filepath.Join(o.World, w.ID+".done"), nil, 0o600); err != nil {
		return nil, err
	}
	o.pass("after the deed")
	return said{Lines: []string{"done"}}, nil
}

// waits waits until it is let go.
func (o order) waits(ctx context.Context, call Call) (any, error) {
	var w wish
	if err := call.Decode(&w); err != nil {
		return nil, err
	}
	o.note(w.ID, fmt.Sprintf("run, resume %t", call.Resume))
	for {
		if _, err := os.Lstat(filepath.Join(o.World, w.ID+".go")); err == nil {
			o.note(w.ID, "went")
			return said{}, nil
		}
		select {
		case <-ctx.Done():
			o.note(w.ID, "told to end")
			return nil, context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// script says one, waits until it may go on, and says two. The sleeps are processes of their own.
const script = `echo one $$; while [ ! -e "$0" ]; do sleep 0.05; done; echo two; printf three; exit 7`

func (o order) program(ctx context.Context, call Call) (any, error) {
	var w wish
	if err := call.Decode(&w); err != nil {
		return nil, err
	}
	var out said
	o.note(w.ID, fmt.Sprintf("run, resume %t", call.Resume))
	p := Program{Name: "script", Command: proc.Command{
		Path: "/bin/sh", Args: []string{"-c", script, filepath.Join(o.World, w.ID+".go")}, Env: []string{"PATH=/usr/bin:/bin"}, User: ordinary(),
	}, Line: func(line string) {
		out.Lines = append(out.Lines, line)
		o.note(w.ID, line)
	}}
	var exit proc.Exit
	var err error
	if call.Resume {
		exit, out.Found, err = call.Adopt(ctx, p)
	}
	if err == nil && !out.Found {
		exit, err = call.Process(ctx, p)
	}
	if err == nil && exit.Known && exit.Code != 7 {
		err = fmt.Errorf("%w: %s", errNoRoom, exit)
	}
	return out, err
}

// ordinary is a user without rights, if there is another one than our own.
func ordinary() *proc.User {
	if os.Geteuid() != 0 {
		return nil
	}
	return &proc.User{UID: 65534, GID: 65534}
}
