// Package agent converges one host: it makes the members that the host was
// assigned run as assigned, and reports what it sees. It decides nothing about them.
//
// An Agent has Members: each has an assignment, processes, limits, a user, a directory and its key,
// tasks, and a report. What runs in one is a Workload, of a Kind, which these call (workload.go).
// The agent knows none of them: package database is the kind of databases, and whoever starts an
// agent joins the two.
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
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"howdah/internal/host/agent/plane"
	"howdah/internal/host/job"
	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/model/member"
	"howdah/internal/model/network/cidr"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// Config is what an agent is started with. All fields are required.
type Config struct {
	Name, Zone string
	Address    string // of this host, as others reach it
	Dir        string // everything of the host is below it
	HomeID     string
	Version    string
	Etcd       []string // client URLs
	Control    []string // URLs of the control planes
	Identity   *certs.Identity
	// Kind is of which kind all members are.
	Kind Kind
	// Remember is told of the control planes when they change, for the next start.
	Remember func(control []string)
	Log      *slog.Logger
}

// jobsDir has the files of the jobs that the host does for operations.
const jobsDir = "jobs"

// Agent runs one host.
type Agent struct {
	Config
	Store  *state.Store // nil until Run is called
	Procs  *proc.Host   // processes of the members
	users  *users       // nil: everything runs as our own
	planes *plane.Planes
	jobs   *job.Jobs
	// life names this process of the agent, in reports and heartbeats.
	life string
	// listen is where control planes are answered; set before anything runs.
	listen string

	// Used by describe only.
	encrypts ability
	limits   limiter
	shares   sharing

	// undescribed: the state does not know any more what was told of this host.
	undescribed atomic.Bool

	// looking is held while it is looked what data are here, and for reading while a
	// directory is locked: one that is locked meanwhile looks as if it had no data.
	looking sync.RWMutex

	mu      sync.Mutex
	members map[string]*Member // by id, guarded by mu
	opened  map[string]int     // how often members opened their directories, by member id, guarded by mu
}

// New prepares an agent: it makes its directories and finds out what this host
// can do. Run starts it.
func New(ctx context.Context, cfg Config) (*Agent, error) {
	a := &Agent{
		Config: cfg, life: rand.Text(), members: map[string]*Member{}, opened: map[string]int{},
	}
	a.users = a.newUsers()
	if err := a.makeDirs(); err != nil {
		return nil, err
	}
	var err error
	a.Procs, err = proc.Open(proc.Config{
		Parent:   processParent(cfg.HomeID, cfg.Name),
		StateDir: a.Path("proc"),
	})
	if err != nil {
		return nil, fmt.Errorf("open process host: %w", err)
	}
	a.planes, err = plane.New(plane.Config{URLs: cfg.Control, Identity: cfg.Identity, Version: cfg.Version, Life: a.life, Remember: cfg.Remember})
	if err != nil {
		return nil, err
	}
	if err := a.Kind.Open(ctx, a); err != nil {
		return nil, err
	}
	a.jobs, err = job.New(job.Config{
		Host: cfg.Name, Dir: a.Path(jobsDir), Procs: a.Procs, Kinds: a.Kind.Jobs(), Refuse: a.planes.Newer, Discard: a.ThrowAway, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Run works until ctx ends. Its members go on without it.
func (a *Agent) Run(ctx context.Context, client *clientv3.Client) error {
	a.Store = &state.Store{Client: client}
	if err := proc.TakeOrphans(ctx); err != nil {
		a.Log.Warn("a PostgreSQL that dies is seen as late as init takes note of it", "error", err)
	}
	answer, work := a.listenForControl(ctx), a.Kind.Begin(ctx)
	a.adopt(ctx)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		a.planes.Run(ctx, state.NewCache(client, a.Log, state.ControlRoot), a.Log)
		return nil
	})
	group.Go(func() error { return answer(ctx) })
	group.Go(func() error { return work(ctx) })
	group.Go(func() error { return a.describe(ctx) })
	group.Go(func() error { return a.followAssignments(ctx) })
	group.Go(func() error { return newTasks(a).follow(ctx) })
	group.Go(func() error { return a.jobs.Run(ctx, a.Store) })
	group.Go(func() error { return a.followRestored(ctx) })
	group.Go(func() error { return (&trash{a}).run(ctx) })
	<-ctx.Done()
	err := group.Wait()
	a.waitForMembers()
	return err
}

// Path is one below the host's directory.
func (a *Agent) Path(parts ...string) string {
	return filepath.Join(append([]string{a.Dir}, parts...)...)
}

// MemberDir is the directory of a member, which need not be there.
func (a *Agent) MemberDir(id string) string { return a.Path("members", id) }

// makeDirs makes the host's directories. The databases' users pass through the
// host's directory and own only what is their own.
func (a *Agent) makeDirs() error {
	if err := home.OpenWay(a.Dir, a.Path("members"), a.Path(trashDir)); err != nil {
		return fmt.Errorf("make directories of the host: %w", err)
	}
	if err := a.checkReachable(); err != nil {
		return err
	}
	if err := home.MakeRunDir(a.HomeID); err != nil {
		return err
	}
	if err := os.MkdirAll(a.Path(assignedDir), 0o700); err != nil {
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

// Member finds or starts a member.
func (a *Agent) Member(ctx context.Context, id string) *Member {
	a.mu.Lock()
	defer a.mu.Unlock()
	m, ok := a.members[id]
	if !ok {
		m = NewMember(a, id)
		a.members[id] = m
		m.start(ctx)
	}
	return m
}

func (a *Agent) forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.members, id)
}

// Find answers a member that was started, or nil.
func (a *Agent) Find(id string) *Member {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.members[id]
}

// Members are those that were started.
func (a *Agent) Members() []*Member {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.members))
}

func (a *Agent) waitForMembers() {
	for _, r := range a.Members() {
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
			if _, err := a.Store.Commit(ctx, state.Put(state.Host(a.Name), h)); err == nil {
				last = h
			} else {
				last = member.Host{}
			}
		}
		if !pace.Sleep(ctx, 5*time.Second) {
			return nil
		}
	}
}

// followAssignments brings members what the control plane wants, in order.
func (a *Agent) followAssignments(ctx context.Context) error {
	if !a.planes.Settled(ctx) {
		return nil
	}
	cache := state.NewCache(a.Store.Client, a.Log, state.AssignPrefix(a.Name))
	cache.OnChange(func(keys []string) {
		for _, key := range keys {
			a.deliver(ctx, cache, key)
		}
	})
	return cache.Run(ctx)
}

// deliver hands an assignment to its member. One that vanished changes nothing:
// data are deleted only where an assignment says so.
func (a *Agent) deliver(ctx context.Context, cache *state.Cache, key string) {
	id := state.Tail(key, state.AssignPrefix(a.Name))
	text, _, there := cache.Raw(key)
	if !there {
		return
	}
	told, err := readOrder(text, id)
	if err == nil {
		err = a.planes.Newer()
	}
	r := a.Member(ctx, id)
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
	case a.ID != id || a.ID != member.ID(a.Scope, a.Name) || !IsMemberID(id):
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

// adopt starts the members that are on disk, with what they were
// assigned last, so that they are guarded before any control plane answers.
func (a *Agent) adopt(ctx context.Context) {
	entries, err := os.ReadDir(a.Path("members"))
	if err != nil {
		a.Log.Error("look for members", "error", err)
		return
	}
	for _, e := range entries {
		if !IsMemberID(e.Name()) {
			continue
		}
		last, err := a.Remembered(e.Name())
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			a.Log.Error("kept assignment is unusable, waiting for a new one", "member", e.Name(), "error", err)
			continue
		}
		a.Member(ctx, last.ID).assign(last)
	}
}
