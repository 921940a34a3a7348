package job

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
	"howdah/internal/identity/home"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

const (
	// atOnce and lightAtOnce are how many jobs a host does at a time, and how many of light kinds
	// beside those.
	atOnce      = 2
	lightAtOnce = 8
	// again is the pause before what failed here is tried again, and reportEvery how often progress
	// is reported at most.
	again       = time.Second
	reportEvery = time.Second
	// etcdTimeout bounds a call of etcd.
	etcdTimeout = 5 * time.Second
)

// Config is what the jobs of a host need. All fields are required.
type Config struct {
	Host string
	// Dir has the jobs' notes and files. Others than root may pass through what is above it.
	Dir   string
	Procs *proc.Host
	Kinds []Kind
	// Refuse says why no job may be begun now; nil: jobs may be begun.
	Refuse func() error
	// Discard removes a directory, at some time, with all that users have made in it. It need not
	// be there.
	Discard func(dir string) error
	Log     *slog.Logger
}

// Jobs does the jobs of one host. Make it with New.
type Jobs struct {
	Config
	store *state.Store
	notes shelf
	turns *turns
	heavy *queue
	light *queue
	wake  chan struct{}
	busy  sync.WaitGroup

	mu    sync.Mutex
	works map[string]*work // by the job's name; guarded by mu
}

// New prepares the jobs of a host. Nothing is begun before Run.
func New(cfg Config) (*Jobs, error) {
	if err := home.OpenWay(cfg.Dir); err != nil {
		return nil, err
	}
	return &Jobs{
		Config: cfg, notes: shelf(cfg.Dir), turns: &turns{path: filepath.Join(cfg.Dir, turnsFile)},
		heavy: &queue{free: atOnce}, light: &queue{free: lightAtOnce},
		wake: make(chan struct{}, 1), works: map[string]*work{},
	}, nil
}

// Run does jobs until ctx ends. What an earlier agent had begun goes on at once, before etcd
// answers.
func (j *Jobs) Run(ctx context.Context, store *state.Store) error {
	j.store = store
	defer j.busy.Wait()
	j.resume(ctx)
	cache := state.NewCache(store.Client, j.Log, state.JobPrefix(j.Host), state.JobReportPrefix(j.Host))
	cache.OnChange(func([]string) { j.poke() })
	j.busy.Go(func() { _ = cache.Run(ctx) })
	if err := cache.Loaded(ctx); err != nil {
		return nil // it was told to end
	}
	for {
		j.look(ctx, cache)
		select {
		case <-ctx.Done():
			return nil
		case <-j.wake:
		}
	}
}

func (j *Jobs) poke() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// resume goes on with what is noted on disk.
func (j *Jobs) resume(ctx context.Context) {
	notes, strays, err := j.notes.read()
	if err != nil {
		// Jobs that etcd has are found there, and their kinds find out what was done.
		j.Log.Error("find jobs that an earlier agent had begun", "error", err)
	}
	for _, n := range notes {
		j.Log.Info("job goes on", "job", n.Job.Name, "kind", n.Job.Kind, "ended", n.Ended != nil)
		j.start(ctx, n, true)
	}
	for _, id := range strays {
		if err := errors.Join(j.discard(id), j.notes.remove(id)); err != nil {
			j.Log.Warn("remove what is left of a job", "id", id, "error", err)
		}
	}
}

func (j *Jobs) discard(id string) error {
	if _, err := os.Lstat(j.notes.dir(id)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return j.Discard(j.notes.dir(id))
}

// look begins what is asked for, and ends what is not asked for any more.
func (j *Jobs) look(ctx context.Context, cache *state.Cache) {
	wanted := map[string]int64{}
	asked := state.LoadAll[member.Job](cache, state.JobPrefix(j.Host))
	slices.SortFunc(asked, func(a, b state.Record[member.Job]) int { return int(a.Revision - b.Revision) })
	for _, r := range asked {
		name := state.Tail(r.Key, state.JobPrefix(j.Host))
		wanted[name] = r.Revision
		if r.Value.Name = name; j.find(name) == nil {
			j.start(ctx, note{Job: r.Value, Asked: r.Revision}, false)
		}
	}
	j.mu.Lock()
	for name, w := range j.works {
		if wanted[name] != w.asked {
			w.forget()
		}
	}
	j.mu.Unlock()
	for _, name := range cache.Names(state.JobReportPrefix(j.Host)) {
		if wanted[name] == 0 && j.find(name) == nil {
			j.busy.Go(func() { j.unreport(ctx, name) })
		}
	}
}

func (j *Jobs) find(name string) *work {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.works[name]
}

// unreport removes the report of a job that is gone. What was asked for anew replaces it.
func (j *Jobs) unreport(ctx context.Context, name string) {
	for {
		_, err := j.commit(ctx, state.Unchanged(state.Job(j.Host, name), 0), state.Delete(state.JobReport(j.Host, name)))
		if err == nil || errors.Is(err, state.ErrConflict) {
			return
		}
		j.Log.Warn("remove the report of a job", "job", name, "error", err)
		if !pace.Sleep(ctx, again) {
			return
		}
	}
}

func (j *Jobs) commit(ctx context.Context, ops ...state.Op) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	return j.store.Commit(ctx, ops...)
}

// start has a job done. noted: it is on disk.
func (j *Jobs) start(ctx context.Context, n note, noted bool) {
	w := j.newWork(ctx, n)
	w.noted = noted
	if line := j.heavy; n.Ended == nil {
		if w.kind.Light || w.kind.Run == nil {
			line = j.light
		}
		w.place = line.join(n.Asked)
	}
	j.mu.Lock()
	j.works[n.Job.Name] = w
	j.mu.Unlock()
	j.busy.Go(func() {
		w.live()
		j.mu.Lock()
		delete(j.works, n.Job.Name)
		j.mu.Unlock()
		j.poke() // it may have been asked for anew
	})
}

// kind returns how a job is done. It has no Run if this host does not know that.
func (j *Jobs) kind(name string) (k Kind) {
	for _, k := range j.Kinds {
		if k.Name == name {
			return k
		}
	}
	return k
}

// errUnknown says that a job is of a newer release. Other hosts may know it, and this one soon.
var errUnknown = errors.New("this host's release of Howdah does not know the kind of job")
