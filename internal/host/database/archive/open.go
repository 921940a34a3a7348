package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/repository/gateway"
	"howdah/internal/repository/place"
	"howdah/internal/repository/store"
)

// markerTimeout bounds a look at a repository's marker.
const markerTimeout = 10 * time.Second

// opened is a repository that is open.
type opened struct {
	store.Store
	of member.Repository // without a passphrase
}

// openStore opens a repository that shows the marker which it should have. A directory is looked at
// again and again by its store.
func openStore(ctx context.Context, of member.Repository) (store.Store, error) {
	s, err := place.Open(of)
	if err != nil || backup.RepositoryKind(of.Kind) == backup.Directory {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, markerTimeout)
	defer cancel()
	return s, store.CheckMarker(ctx, s, of.ID)
}

// openAll opens the repositories that somebody may reach and that are not open as they were told
// last. It returns false if one could not be opened.
func (k *Keeper) openAll(ctx context.Context) (done bool) {
	done = true
	for name, of := range k.closed() {
		s, err := openStore(ctx, of)
		k.mu.Lock()
		if err != nil {
			done = false
			if k.failed[name] == nil {
				k.Agent.Log.Warn("open a repository", "repository", name, "error", err)
			}
			k.failed[name] = err
		} else {
			k.stores[name] = opened{s, of}
			k.gateway.SetRepository(name, s)
			delete(k.failed, name)
		}
		k.mu.Unlock()
	}
	return done
}

// closed are the repositories that are to be opened. Two holders were told the same of one, but for
// a moment.
func (k *Keeper) closed() map[string]member.Repository {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := map[string]member.Repository{}
	newest := map[string]time.Time{}
	for _, h := range k.holders {
		for _, g := range h.Parts {
			if g.Access == nil || k.asked[g.Part].Before(newest[g.Repository]) {
				continue
			}
			newest[g.Repository] = k.asked[g.Part]
			of := *g.Access
			of.Passphrase = ""
			all[g.Repository] = of
		}
	}
	for name, of := range all {
		if k.stores[name].of == of {
			delete(all, name)
		}
	}
	return all
}

// Store returns a repository that some holder may reach.
func (k *Keeper) Store(repository string) (store.Store, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s, ok := k.stores[repository]; ok {
		return s.Store, nil
	}
	if err := k.failed[repository]; err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w %s", ErrAwaited, repository)
}

// written is told by the gateway.
func (k *Keeper) written(o gateway.Object) {
	k.mu.Lock()
	delete(k.failed, o.Repository)
	k.mu.Unlock()
	k.Wrote(o.Repository, o.Database, o.Key)
}

// fails is told by the gateway. What a program of a member does wrong is not the repository's doing.
func (k *Keeper) fails(repository string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrReadOnly) || errors.Is(err, store.ErrAway) || k.failed[repository] == nil {
		k.failed[repository] = err
	}
}
