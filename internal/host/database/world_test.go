package database

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"howdah/internal/failover/fence"
	"howdah/internal/failover/gate"
	"howdah/internal/host/agent"
	"howdah/internal/host/database/seed"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
	"howdah/internal/testkit/patience"
)

// childVariable holds the configuration of an agent that is a process of its own.
const childVariable = "HOWDAH_TEST_AGENT"

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		if err := runChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == gate.Command {
		return // members of these tests may be promoted
	}
	if len(os.Args) > 3 && os.Args[1] == seed.Command {
		log := slog.New(slog.NewTextHandler(os.Stderr, nil))
		if err := seed.Run(context.Background(), os.Args[2], os.Args[3], os.Args[4:], log); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// setPatroni replaces the script in one step: it may be started at any moment.
func (w *world) setPatroni(script string) {
	w.Helper()
	// No child of another test may inherit the file while it is written: it could not be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	next := w.patroni + ".new"
	w.Must(os.WriteFile(next, []byte("#!/bin/sh\n"+script), 0o755))
	w.Must(os.Rename(next, w.patroni))
}

// place is where an agent with databases works.
type place struct {
	hosttest.Place
	Patroni string // program; "": the real one
	Program string // our own; "": there is none
}

func (p place) open(ctx context.Context) (*Host, error) {
	identity, _, err := p.Identity()
	if err != nil {
		return nil, err
	}
	h, err := NewHost(Config{Program: p.Program})
	if err != nil {
		return nil, err
	}
	_, err = agent.New(ctx, agent.Config{
		Kind: h,
		Name: hosttest.Name, Zone: "t", Address: "127.0.0.1", Dir: p.Dir, HomeID: p.HomeID, Version: "test",
		Etcd: p.Etcd, Control: p.Control, Identity: identity, Remember: func([]string) {}, Log: hosttest.Log(),
	})
	if err == nil && p.Patroni != "" {
		h.patroni = p.Patroni
	}
	return h, err
}

func runChild(text string) error {
	var p place
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	ctx := context.Background()
	a, err := p.open(ctx)
	if err != nil {
		return err
	}
	a.spares.Keep = 0
	_, pair, err := p.Identity()
	if err != nil {
		return err
	}
	client, err := etcd.Dial(ctx, p.Etcd, pair)
	if err != nil {
		return err
	}
	return a.Run(ctx, client)
}

// world is a home with one host, whose Patroni is a program of the test.
type world struct {
	*hosttest.Site
	patroni string // program; "": the real one
	program string // our own; "": there is none
}

// newWorld has the named shell script stand for Patroni; "" is the real one. No
// agent runs yet.
func newWorld(t *testing.T, script string) *world {
	t.Helper()
	return newSmallWorld(t, script, 0)
}

// newSmallWorld has an etcd that takes no more writes when it is as large as quota.
func newSmallWorld(t *testing.T, script string, quota int64) *world {
	t.Helper()
	w := &world{Site: hosttest.New(t, quota)}
	if script != "" {
		w.patroni = filepath.Join(w.Home.Dir, "patroni")
		w.setPatroni(script)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience.For(30*time.Second))
		defer cancel()
		if err := StopHost(ctx, w.HomeID, hosttest.Name, w.Dir, true); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) place() place { return place{w.Place, w.patroni, w.program} }

// open prepares an agent that is not run.
func (w *world) open() *Host {
	w.Helper()
	a, err := w.place().open(w.Context())
	w.Must(err)
	return a
}

// run starts an agent here. Its members go on when it ends.
func (w *world) run(change func(*Host)) (a *Host, stop func()) {
	w.Helper()
	a = w.open()
	a.spares.Keep = 0
	if change != nil {
		change(a)
	}
	return a, w.Run(a.Run)
}

// Scripts that stand for Patroni. Each start adds a line to the file starts in the
// member's directory.
const (
	// waits is a Patroni that is content, and notes when it is told to reload.
	waits = `echo $$ >> starts
trap 'echo hup >> hups' HUP
mkdir -p data
while :; do sleep 1 & wait; done
`
	// serves has a PostgreSQL, in production, unless there is one already.
	serves = `trap '' HUP
echo $$ >> starts
mkdir -p data/global
printf '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\6\0\0\0' > data/global/pg_control
if ! kill -0 $(cat data/postmaster.pid 2>/dev/null) 2>/dev/null; then
	sleep 100000 &
	echo $! > data/pid && mv data/pid data/postmaster.pid
fi
exec sleep 1000
`
	// hangs has data, and neither a PostgreSQL nor a child that makes one.
	hangs = `trap '' HUP
echo $$ >> starts
mkdir -p data/global
printf '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\6\0\0\0' > data/global/pg_control
exec sleep 1000
`
	ends = `echo $$ >> starts
echo "some words"
echo "no such thing as a cluster"
exit 3
`
)

// runProcess starts an agent as a process of its own, and answers how to kill it.
func (w *world) runProcess() (kill func()) {
	w.Helper()
	text, err := json.Marshal(w.place())
	w.Must(err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	testkit.Start(w.T, cmd)
	kill = sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	w.Cleanup(kill)
	return kill
}

// kill kills the process that a file in the member's directory names last.
func (w *world) kill(id, name string) {
	w.Helper()
	pids := w.Lines(id, name)
	if len(pids) == 0 {
		w.Fatalf("no process in %s", name)
	}
	pid, err := strconv.Atoi(pids[len(pids)-1])
	w.Must(err)
	w.Must(syscall.Kill(pid, syscall.SIGKILL))
}

// leader is who leads the scope now, or "".
func (w *world) leader(scope string) string {
	w.Helper()
	l, err := fence.Read(w.Context(), w.Store.Client, scope)
	w.Must(err)
	return l.Leader
}

func (w *world) incidents(scope string) []fence.Incident {
	w.Helper()
	records, err := state.List[fence.Incident](w.Context(), w.Store, state.IncidentRoot+scope+"/")
	w.Must(err)
	var all []fence.Incident
	for _, r := range records {
		all = append(all, r.Value)
	}
	return all
}

// unstarted is the workload of a member that is not looked after.
func unstarted(a *Host, id string) *runner { return runnerOf(agent.NewMember(a.Agent, id)) }
