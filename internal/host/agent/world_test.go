package agent

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/failover/fence"
	"howdah/internal/host/hostapi"
	"howdah/internal/host/proc"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/kms"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/pgversion"
)

const hostName = "zone-t"

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
	os.Exit(m.Run())
}

// place is where an agent works: what it needs to start.
type place struct {
	HomeID, Dir, CertDir string
	Etcd, Control        []string
	Patroni              string // program; "": the real one
}

func (p place) open(ctx context.Context) (*Host, certs.Pair, error) {
	pair, err := certs.Load(p.CertDir)
	if err != nil {
		return nil, pair, err
	}
	identity, err := certs.NewIdentity(pair)
	if err != nil {
		return nil, pair, err
	}
	level := slog.LevelInfo
	h, err := NewHost(DatabaseConfig{})
	if err != nil {
		return nil, pair, err
	}
	_, err = New(ctx, Config{
		Kind: h,
		Name: hostName, Zone: "t", Address: "127.0.0.1", Dir: p.Dir, HomeID: p.HomeID, Version: "test",
		Etcd: p.Etcd, Control: p.Control, Identity: identity, Remember: func([]string) {},
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
	})
	if err == nil && p.Patroni != "" {
		h.patroni = p.Patroni
	}
	return h, pair, err
}

func runChild(text string) error {
	var p place
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	ctx := context.Background()
	a, pair, err := p.open(ctx)
	if err != nil {
		return err
	}
	a.spares.keep = 0
	client, err := etcd.Dial(ctx, p.Etcd, pair)
	if err != nil {
		return err
	}
	return a.Run(ctx, client)
}

// world is a home with one host, whose Patroni is a program of the test.
type world struct {
	*testing.T
	place
	home  *hometest.Home
	store *state.Store
	// etcd may stand between an agent of run and etcd.
	etcd    func(clientv3.KV) clientv3.KV
	members *certs.CA
}

// reaps has the test's process take note of the dead for as long as it lives: an agent that
// is stopped here leaves its members as children of a process that goes on.
var reaps = sync.OnceFunc(func() { _ = proc.TakeOrphans(context.Background()) })

// newWorld has the named shell script stand for Patroni; "" is the real one. No
// agent runs yet.
func newWorld(t *testing.T, script string) *world {
	t.Helper()
	return newSmallWorld(t, script, 0)
}

// newSmallWorld has an etcd that takes no more writes when it is as large as quota.
func newSmallWorld(t *testing.T, script string, quota int64) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	reaps()
	h := hometest.NewSmall(t, quota)
	w := &world{T: t, home: h, store: h.Store}
	w.place = place{HomeID: h.ID, Dir: filepath.Join(h.Dir, "host"), CertDir: filepath.Join(h.Dir, "agent"), Etcd: h.Etcd}
	w.must(os.MkdirAll(w.CertDir, 0o700))
	w.must(h.Issue(t, "agent:"+hostName).Write(w.CertDir))
	w.Control = []string{w.serveHosts()}
	if script != "" {
		w.Patroni = filepath.Join(h.Dir, "patroni")
		w.setPatroni(script)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience.For(30*time.Second))
		defer cancel()
		if err := StopHost(ctx, w.HomeID, hostName, w.Dir, true); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// setPatroni replaces the script in one step: it may be started at any moment.
func (w *world) setPatroni(script string) {
	w.Helper()
	next := w.Patroni + ".new"
	w.must(os.WriteFile(next, []byte("#!/bin/sh\n"+script), 0o755))
	w.must(os.Rename(next, w.Patroni))
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

// serveHosts is the part of a control plane that agents talk to.
func (w *world) serveHosts() string {
	w.Helper()
	members, err := certs.New("members")
	w.must(err)
	w.members = members
	server := &hostapi.Server{
		Members: func(context.Context) (*certs.CA, error) { return members, nil },
		Home:    w.home.Home, CA: w.home.CA, Store: w.store, Etcd: w.store.Client,
		Beat: func(string, string) {}, Log: slog.New(slog.DiscardHandler), Authority: w.authority,
		Storage: func(ctx context.Context, database, member string) ([]byte, error) {
			return kms.Open(ctx, w.store, w.home.SealKey, database, member)
		},
		Placed: func(context.Context, string, string) (string, error) { return "", nil },
	}
	listener := httptest.NewUnstartedServer(server.Handler())
	listener.Listener = w.secure(listener.Listener)
	listener.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	listener.Start()
	w.Cleanup(listener.Close)
	url := "https://" + listener.Listener.Addr().String()
	w.put(state.Control("s1"), hostapi.ControlMember{Name: "s1", URL: url})
	return url
}

// secure shows a certificate of the home on loopback.
func (w *world) secure(l net.Listener) net.Listener {
	w.Helper()
	config, err := w.home.Issue(w.T, "howdah-serve").ServerTLS()
	w.must(err)
	return tls.NewListener(l, config)
}

// run starts an agent here. Its members go on when it ends.
func (w *world) run(change func(*Host)) (a *Host, stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	a, pair, err := w.open(ctx)
	w.must(err)
	a.spares.keep = 0
	if change != nil {
		change(a)
	}
	client, err := etcd.Dial(ctx, w.Etcd, pair)
	w.must(err)
	if w.etcd != nil {
		client.KV = w.etcd(client.KV)
	}
	var done sync.WaitGroup
	done.Go(func() {
		if err := a.Run(ctx, client); err != nil {
			w.Errorf("agent ended: %v", err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		done.Wait()
		client.Close()
	})
	w.Cleanup(stop)
	return a, stop
}

// runProcess starts an agent as a process of its own, and answers how to kill it.
func (w *world) runProcess() (kill func()) {
	w.Helper()
	text, err := json.Marshal(w.place)
	w.must(err)
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

func (w *world) put(key string, value any) {
	w.Helper()
	_, err := w.store.Commit(w.Context(), state.Put(key, value))
	w.must(err)
}

// assignment is one that a host can act on.
func (w *world) assignment(scope string, generation int64) member.Assignment {
	w.Helper()
	return member.Assignment{
		ID: scope + ".m1", Generation: generation, Want: member.Running, Scope: scope, Name: "m1", Major: pgversion.Major(),
		Address: "127.0.0.1", Port: freePort(w.T), RESTPort: freePort(w.T), RequireTLS: true,
		Cluster: patroni.Cluster{Sync: patroni.SyncOff}, ServerIPs: []string{"127.0.0.1"},
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	_, text, err := net.SplitHostPort(testkit.FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func (w *world) assign(a member.Assignment) { w.put(state.Assign(hostName, a.ID), a) }

// awaits waits for a report with which check is content.
func (w *world) awaits(id string, within time.Duration, check func(member.Report) error) member.Report {
	w.Helper()
	var got member.Report
	testkit.Eventually(w.T, within, func() error {
		record, err := state.Get[member.Report](w.Context(), w.store, state.Report(hostName, id))
		if err != nil {
			return err
		}
		got = record.Value
		return check(got)
	})
	return got
}

// running is content with a Patroni that runs with a generation.
func running(generation int64) func(member.Report) error {
	return func(r member.Report) error {
		if !r.Patroni || r.Generation != generation || r.Problem != member.None {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	}
}

// refusing: it runs with a generation, and says that what it was given since is
// of no use.
func refusing(generation int64) func(member.Report) error {
	return func(r member.Report) error {
		if !r.Patroni || r.Generation != generation || r.Problem != member.BadAssignment {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	}
}

// lines are those of a file in the member's directory.
func (w *world) lines(id, name string) []string {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.Dir, "members", id, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.Fatal(err)
	}
	return strings.Fields(string(text))
}

// kill kills the process that a file in the member's directory names last.
func (w *world) kill(id, name string) {
	w.Helper()
	pids := w.lines(id, name)
	if len(pids) == 0 {
		w.Fatalf("no process in %s", name)
	}
	pid, err := strconv.Atoi(pids[len(pids)-1])
	w.must(err)
	w.must(syscall.Kill(pid, syscall.SIGKILL))
}

// leads writes Patroni's keys: who leads the scope, and which standbys are in sync.
func (w *world) leads(scope, leader, standbys string) {
	w.Helper()
	sync := fmt.Sprintf(`{"leader":%q,"sync_standby":%q}`, leader, standbys)
	for key, value := range map[string]string{patroni.LeaderKey(scope): leader, patroni.SyncKey(scope): sync} {
		_, err := w.store.Client.Put(w.Context(), key, value)
		w.must(err)
	}
}

// leader is who leads the scope now, or "".
func (w *world) leader(scope string) string {
	w.Helper()
	l, err := fence.Read(w.Context(), w.store.Client, scope)
	w.must(err)
	return l.Leader
}

func (w *world) incidents(scope string) []fence.Incident {
	w.Helper()
	records, err := state.List[fence.Incident](w.Context(), w.store, state.IncidentRoot+scope+"/")
	w.must(err)
	var all []fence.Incident
	for _, r := range records {
		all = append(all, r.Value)
	}
	return all
}

// unstarted is the workload of a member that is not looked after.
func unstarted(a *Host, id string) *runner { return runnerOf(NewMember(a.Agent, id)) }

// bare is a workload that nobody looks at.
func bare(a *Host, m *Member) *runner {
	return &runner{Member: m, agent: a, patroni: &m.Leader, postmaster: &m.Server}
}
