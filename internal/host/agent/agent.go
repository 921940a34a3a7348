// Package agent converges one host: it makes the members that the host was
// assigned run as assigned, and reports what it sees. It decides nothing about
// databases. What it does on its own is to keep its members safe: no PostgreSQL
// runs without its Patroni, a primary whose PostgreSQL died is fenced, proved
// dead and replaced at once, and a Patroni that hangs is started again, or replaced
// like a dead one if that is safe.
//
// Everything that must outlive the agent is in processes and files of its own:
// an agent that starts finds its members running and takes them over.
package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"howdah/internal/engine/patroni/config"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/proc"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/model/member"
	"howdah/internal/model/network/cidr"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// Config is what an agent is started with. All fields but Hang and Program are required.
type Config struct {
	Name, Zone string
	Address    string // of this host, as others reach it
	Dir        string // everything of the host is below it
	HomeID     string
	Version    string
	Etcd       []string // client URLs
	Control    []string // URLs of the control planes
	Identity   *certs.Identity
	// Hang says when a PostgreSQL counts as hanging; zero is DefaultHangPatience.
	Hang HangPatience
	// Program is our own program, which members run as their gate (package gate). "":
	// they have none.
	Program string
	// Remember is told of the control planes when they change, for the next start.
	Remember func(control []string)
	Log      *slog.Logger
}

// Agent runs one host.
type Agent struct {
	Config
	store   *state.Store
	procs   *proc.Host
	patroni string // program
	users   *users // nil: everything runs as our own
	cut     cutter
	control *controls
	spares  *spares
	// hangAfter is how long a Patroni may run without a PostgreSQL, and without a
	// child that is making one, before it counts as hanging.
	hangAfter time.Duration
	// driftEvery is how often members are held against their configuration.
	driftEvery time.Duration
	// leasePatience is the same for one that has a PostgreSQL.
	leasePatience leasePatience
	// life names this process of the agent, in reports and heartbeats.
	life string
	// listen is where control planes are answered, and logins the port where the
	// PostgreSQLs of this host are; set before anything runs.
	listen string
	logins int

	// encrypts is used by describe only.
	encrypts ability

	// admission says what may be started; nil: it was not asked yet which primaries are lost.
	admission atomic.Pointer[admission]

	// undescribed: the state does not know any more what was told of this host.
	undescribed atomic.Bool

	// looking is held while it is looked what data are here, and for reading while a
	// directory is locked: one that is locked meanwhile looks as if it had no data.
	looking sync.RWMutex

	mu      sync.Mutex
	runners map[string]*runner // by member id, guarded by mu
	opened  map[string]int     // how often runners opened directories, by member id, guarded by mu
	begun   map[string]bool    // tasks that this agent began, guarded by mu
}

// New prepares an agent: it looks for the programs and finds out what this host
// can do. Run starts it.
func New(ctx context.Context, cfg Config) (*Agent, error) {
	program, err := FindPatroni()
	if err != nil {
		return nil, err
	}
	a := &Agent{
		Config: cfg, patroni: program, hangAfter: hangAfter, driftEvery: driftEvery, leasePatience: defaultLeasePatience,
		life: rand.Text(), runners: map[string]*runner{}, opened: map[string]int{}, begun: map[string]bool{},
	}
	if a.Hang == (HangPatience{}) {
		a.Hang = DefaultHangPatience
	}
	a.users = a.newUsers()
	if err := a.makeDirs(); err != nil {
		return nil, err
	}
	if err := a.placeGate(); err != nil {
		return nil, err
	}
	a.procs, err = proc.Open(proc.Config{
		Parent:   processParent(cfg.HomeID, cfg.Name),
		StateDir: a.path("proc"),
	})
	if err != nil {
		return nil, fmt.Errorf("open process host: %w", err)
	}
	if a.control, err = newControls(cfg, a.life); err != nil {
		return nil, err
	}
	a.cut = chooseCutter(ctx, a)
	a.spares = newSpares(a)
	return a, nil
}

// Run works until ctx ends. Its members go on without it.
func (a *Agent) Run(ctx context.Context, client *clientv3.Client) error {
	a.store = &state.Store{Client: client}
	if err := proc.TakeOrphans(ctx); err != nil {
		a.Log.Warn("a PostgreSQL that dies is seen as late as init takes note of it", "error", err)
	}
	answer, answerLogins := a.listenForControl(ctx), a.listenForLogins(ctx)
	a.adopt(ctx)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		a.control.run(ctx, state.NewCache(client, a.Log, state.ControlRoot), a.Log)
		return nil
	})
	group.Go(func() error { return answer(ctx) })
	group.Go(func() error { return answerLogins(ctx) })
	group.Go(func() error { return a.describe(ctx) })
	group.Go(func() error { return a.followAssignments(ctx) })
	group.Go(func() error { return a.followTasks(ctx) })
	group.Go(func() error { return a.followFences(ctx) })
	group.Go(func() error { return a.followLosses(ctx) })
	group.Go(func() error { return a.followOrphans(ctx) })
	group.Go(func() error { return a.followRestored(ctx) })
	group.Go(func() error { return a.spares.run(ctx) })
	group.Go(func() error { return a.emptyTrash(ctx) })
	<-ctx.Done()
	err := group.Wait()
	a.stopRunners()
	return err
}

func (a *Agent) path(parts ...string) string {
	return filepath.Join(append([]string{a.Dir}, parts...)...)
}

func (a *Agent) memberDir(id string) string { return a.path("members", id) }

// makeDirs makes the host's directories. The databases' users pass through the
// host's directory and own only what is their own.
func (a *Agent) makeDirs() error {
	if err := home.OpenWay(a.Dir, a.path("members"), a.path(handedDir), a.path(trashDir)); err != nil {
		return fmt.Errorf("make directories of the host: %w", err)
	}
	if err := a.checkReachable(); err != nil {
		return err
	}
	if err := home.MakeRunDir(a.HomeID); err != nil {
		return err
	}
	if err := os.MkdirAll(a.path(assignedDir), 0o700); err != nil {
		return fmt.Errorf("make directories of the host: %w", err)
	}
	if err := a.users.keep(); err != nil {
		a.Log.Error("a database may share its operating-system user with one of another host", "error", err)
	}
	if a.users != nil {
		if err := home.OpenWay(a.ownSockets()); err != nil {
			return err
		}
	}
	if err := a.makeSpares(); err != nil {
		return err
	}
	_, shared := a.sharers()
	return shared.GiveDir(a.runDir())
}

// checkReachable finds out early whether the databases' users can get to their data.
func (a *Agent) checkReachable() error {
	if a.users == nil {
		return nil
	}
	for dir := filepath.Dir(a.Dir); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("look at %s: %w", dir, err)
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("the users of databases cannot pass through %s: choose a directory that they can reach, or chmod o+x", dir)
		}
		if dir == "/" {
			return nil
		}
	}
}

// osUsers may be rdsadmin on the private socket: whoever runs PostgreSQL, and
// whoever runs the agent.
func (a *Agent) osUsers(id string) []string {
	if u := a.userOf(id); u != nil {
		return []string{u.Name, "root"}
	}
	return []string{currentUserName()}
}

// runner finds or starts the runner of a member.
func (a *Agent) runner(ctx context.Context, id string) *runner {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.runners[id]
	if !ok {
		r = newRunner(a, id)
		a.runners[id] = r
		r.start(ctx)
	}
	return r
}

func (a *Agent) forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.runners, id)
}

func (a *Agent) allRunners() []*runner {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.runners))
}

func (a *Agent) stopRunners() {
	for _, r := range a.allRunners() {
		r.wait()
	}
}

// describe publishes what this host is, again and again: disks fill up, and
// PostgreSQL is upgraded.
func (a *Agent) describe(ctx context.Context) error {
	started := time.Now().UTC()
	var last member.Host
	for {
		h, err := a.hostFacts(started)
		if err != nil {
			a.Log.Warn("describe host", "error", err)
		} else if a.undescribed.Load() || !sameHost(h, last) {
			a.undescribed.Store(false)
			if _, err := a.store.Commit(ctx, state.Put(state.Host(a.Name), h)); err == nil {
				last = h
			} else {
				last = member.Host{}
			}
		}
		if !sleep(ctx, 5*time.Second) {
			return nil
		}
	}
}

// followAssignments brings the runners what the control plane wants, in order.
func (a *Agent) followAssignments(ctx context.Context) error {
	if !a.control.settled(ctx) {
		return nil
	}
	cache := state.NewCache(a.store.Client, a.Log, state.AssignPrefix(a.Name))
	cache.OnChange(func(keys []string) {
		for _, key := range keys {
			a.deliver(ctx, cache, key)
		}
	})
	return cache.Run(ctx)
}

// deliver hands an assignment to its runner. One that vanished changes nothing:
// data are deleted only where an assignment says so.
func (a *Agent) deliver(ctx context.Context, cache *state.Cache, key string) {
	id := state.Tail(key, state.AssignPrefix(a.Name))
	text, _, there := cache.Raw(key)
	if !there {
		return
	}
	told, err := readOrder(text, id)
	if err == nil {
		err = a.control.newer()
	}
	r := a.runner(ctx, id)
	if err != nil {
		a.Log.Error("assignment refused", "member", id, "error", err)
		r.refuse(err)
		return
	}
	r.assign(told)
}

var errAssignment = errors.New("the assignment cannot be used")

// checkAssignment keeps a damaged record from doing harm: nothing of it may lead
// outside the member's own directory, and nothing may be missing.
func checkAssignment(a member.Assignment, id string) error {
	switch {
	case a.ID != id || a.ID != member.ID(a.Scope, a.Name) || !memberIDForm.MatchString(id):
		return fmt.Errorf("%w: it is for %q", errAssignment, a.ID)
	case a.Generation <= 0:
		return fmt.Errorf("%w: it has no generation", errAssignment)
	case len(a.PatroniName()) > patroni.MaxName:
		return fmt.Errorf("%w: the name %s is too long", errAssignment, a.PatroniName())
	case !slices.Contains([]member.Want{member.Running, member.Stopped, member.Absent}, a.Want):
		return fmt.Errorf("%w: it wants %q", errAssignment, a.Want)
	case a.Want == member.Running && (a.Port <= 1024 || a.RESTPort <= 1024 || a.Port == a.RESTPort || a.Port > 65535 || a.RESTPort > 65535):
		return fmt.Errorf("%w: ports %d and %d", errAssignment, a.Port, a.RESTPort)
	case a.Want == member.Running && (a.Address == "" || a.Major == 0):
		return fmt.Errorf("%w: address or version is missing", errAssignment)
	}
	if _, err := cidr.Parse(a.Allow); err != nil {
		return fmt.Errorf("%w: networks: %w", errAssignment, err)
	}
	return nil
}

// restURL is where a member's Patroni answers.
func restURL(a member.Assignment) string {
	return "https://" + a.Address + ":" + strconv.Itoa(a.RESTPort)
}

// patroniMember turns an assignment into Patroni's configuration.
func (a *Agent) patroniMember(as member.Assignment, install postgres.Install, hosts []string) config.Member {
	dir := a.memberDir(as.ID)
	return config.Member{
		Scope: as.Scope, Name: as.PatroniName(), Dir: dir,
		Address: as.Address, Port: as.Port, RESTPort: as.RESTPort,
		BinDir: install.BinDir, Programs: programs(dir),
		SocketDir: a.socketDir(as.ID), EtcdHosts: hosts, OSUsers: a.osUsers(as.ID),
		Parameters: as.Parameters, Cluster: as.Cluster,
		Keys: keysOf(as), Gate: a.gateCommand(), Tier: as.Tier, Boost: as.Boost, NoFailover: as.NoFailover, NoSync: as.NoSync,
		RequireTLS: as.RequireTLS, Allow: as.Allow, Tokens: a.tokens(as), Generation: as.Generation,
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
