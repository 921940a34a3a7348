package serve

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"sync"
	"time"

	"howdah/internal/identity/repository"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/repository/place"
	"howdah/internal/repository/store"
	"howdah/internal/state"
)

// opener returns what tells hosts how to get to repositories.
func (cfg Config) opener(store *state.Store) func(ctx context.Context, name, database string) (member.Repository, error) {
	return func(ctx context.Context, name, database string) (member.Repository, error) {
		return repository.Open(ctx, store, cfg.Home.SealKey, name, database)
	}
}

// defaultRepository is the name of the repository that a home on one machine begins with.
const defaultRepository = "default"

// These say how often a control plane looks whether it reaches the repositories, how long one look
// may take, and how long it waits until it tries again to make the default repository.
const (
	lookEvery   = time.Minute
	lookWithin  = 20 * time.Second
	ensureEvery = 30 * time.Second
)

// severalMachines is why a home has no repository of its own accord.
const severalMachines = "a home of several machines gets none by itself, as all of them have to reach it"

// places knows of the repositories whether this control plane reaches them. It makes the default one
// of a home on one machine.
type places struct {
	Config
	cache *state.Cache

	mu sync.Mutex
	// guarded by mu
	failed  string            // why the default one could not be made
	trouble map[string]string // by name
	scarce  map[string]string // where little is free, by name
}

func newPlaces(cfg Config, cache *state.Cache) *places { return &places{Config: cfg, cache: cache} }

// oneMachine reports whether all hosts are on this machine. No other machine reaches a control plane
// on loopback.
func (p *places) oneMachine() bool {
	ip := net.ParseIP(p.Address)
	return ip != nil && ip.IsLoopback()
}

// none says why there is no repository. It is "" while the default one is made, and in a home that
// may be wiped: nobody misses backups of test rigs.
func (p *places) none() string {
	if p.Home.Disposable {
		return ""
	}
	if !p.oneMachine() {
		return severalMachines
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// away returns the repositories that this control plane cannot work with, and why.
func (p *places) away() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.trouble)
}

// low returns the repositories in which little is free, and how much.
func (p *places) low() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.scarce)
}

// lowOf says how little is free in a repository, or "".
func (p *places) lowOf(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scarce[name]
}

// watch looks again and again, until ctx ends, whether this control plane reaches the repositories.
// While it knows none, as when it has just started, it looks more often.
func (p *places) watch(ctx context.Context) error {
	for {
		trouble, scarce, next := map[string]string{}, map[string]string{}, time.Second
		for _, r := range state.LoadAll[backup.Repository](p.cache, state.RepositoryRoot) {
			next = lookEvery
			low, err := p.look(ctx, r.Value)
			if err != nil && ctx.Err() == nil {
				trouble[r.Value.Name] = err.Error()
			}
			if low != "" {
				scarce[r.Value.Name] = low
			}
		}
		p.mu.Lock()
		p.trouble, p.scarce = trouble, scarce
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		}
	}
}

// look returns an error if a place is not the repository, or does not answer in time. It says how
// little is free there, or "".
func (p *places) look(ctx context.Context, r backup.Repository) (low string, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	type seen struct {
		low string
		err error
	}
	done := make(chan seen, 1)
	go func() {
		low, err := p.recognize(ctx, r)
		done <- seen{low, err}
	}()
	select {
	case s := <-done:
		return s.low, s.err
	case <-ctx.Done():
		return "", fmt.Errorf("it does not answer: %w", ctx.Err())
	}
}

func (p *places) recognize(ctx context.Context, r backup.Repository) (low string, err error) {
	key, err := p.Home.SealKey()
	if err != nil {
		return "", err
	}
	sealer, err := repository.NewSealer(key)
	if err != nil {
		return "", err
	}
	access, err := sealer.Access(r, "")
	if err != nil {
		return "", err
	}
	opened, err := place.Open(access)
	if err != nil {
		return "", err
	}
	if err := store.CheckMarker(ctx, opened, r.ID); err != nil {
		return "", err
	}
	return place.Low(access), nil
}

// ensure makes the default repository of a home on one machine, unless the home has a repository.
// held is the condition of a commit that only the control plane which leads may make.
func (p *places) ensure(ctx context.Context, s *state.Store, held state.Op) error {
	for p.oneMachine() {
		err := p.makeDefault(ctx, s, held)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			break
		}
		p.Log.Warn("the default repository cannot be made", "error", err)
		p.mu.Lock()
		p.failed = err.Error()
		p.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(ensureEvery):
		}
	}
	return nil //nolint:nilerr // it is told, and tried again as long as ctx lasts
}

// makeDefault marks the directory first, and records the repository then. What was interrupted in
// between is done again: a marker of this home with nothing beside it is replaced.
func (p *places) makeDefault(ctx context.Context, s *state.Store, held state.Op) error {
	all, err := state.List[backup.Repository](ctx, s, state.RepositoryRoot)
	if err != nil || len(all) > 0 {
		return err
	}
	seal, err := p.Home.SealKey()
	if err != nil {
		return err
	}
	sealer, err := repository.NewSealer(seal)
	if err != nil {
		return err
	}
	dir := p.Home.RepositoryDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the default repository: %w", err)
	}
	opened, err := store.OpenDirectory(dir, "")
	if err != nil {
		return err
	}
	r := backup.Repository{
		Name: defaultRepository, ID: repository.NewID(), Kind: backup.Directory, Path: dir, Default: true, Created: time.Now().UTC(),
	}
	key := repository.NewKey()
	marker := store.Marker{ID: r.ID, Home: p.Home.ID, Created: r.Created, Proof: repository.Proof(key, r.ID)}
	if err := place.Found(ctx, opened, marker, func(string) bool { return false }); err != nil {
		return fmt.Errorf("make the default repository in %s: %w; to use what is there: howdah repository add default --directory %s --adopt --key-file KEY", dir, err, dir)
	}
	_, err = s.Commit(ctx, held, state.Swap(state.Repository(r.Name), 0, sealer.Seal(r, key, "")))
	return err
}
