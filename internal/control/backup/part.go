package backup

import (
	"context"
	"errors"
	"fmt"
	"sync"

	step "howdah/internal/control/operation"
	"howdah/internal/model/backup"
	"howdah/internal/model/operation"
	"howdah/internal/state"
)

// take returns the changes with which an operation takes a part of a repository for itself. An error
// that is not of etcd's says who has it.
func (b *Backups) take(ctx context.Context, run *step.Run, repository string) (op state.Op, busy, err error) {
	about := run.Record.About
	key := state.BackupPart(about.Database, repository)
	mine := backup.Part{About: about, Repository: repository, Operation: run.Record.ID}
	part, err := state.Get[backup.Part](ctx, b.Store, key)
	if errors.Is(err, state.ErrNotFound) {
		return state.Swap(key, 0, mine), nil, nil
	}
	if err != nil {
		return op, nil, err
	}
	if other := part.Value.Operation; other != "" && other != run.Record.ID {
		r, err := state.Get[operation.Record](ctx, b.Store, state.Operation(other))
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return op, nil, err
		}
		if err == nil && !r.Value.State.Ended() {
			return op, fmt.Errorf("operation %s (%s) comes first", other, r.Value.Kind), nil
		}
	}
	mine.Listed = part.Value.Listed
	return state.Swap(key, part.Revision, mine), nil, nil
}

// gives returns the changes with which an operation gives a part back, if it has it. gone says that
// nothing is left in the part.
func (b *Backups) gives(ctx context.Context, run *step.Run, repository string, gone bool) ([]state.Op, error) {
	part, err := state.Get[backup.Part](ctx, b.Store, state.BackupPart(run.Record.About.Database, repository))
	switch {
	case errors.Is(err, state.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case part.Value.Operation != run.Record.ID:
		return nil, nil
	case gone:
		return []state.Op{state.Remove(part.Key, part.Revision)}, nil
	}
	part.Value.Operation = ""
	return []state.Op{state.Swap(part.Key, part.Revision, part.Value)}, nil
}

// perHost is how many backups are made at the same time on one host at most: they take its disks and
// its network from the databases.
const perHost = 2

// slots are the places for backups on hosts. Operations that were just given one are remembered here
// until their records tell.
type slots struct {
	mu   sync.Mutex
	host map[string]string // by operation; guarded by mu
}

// take gives an operation a place on a host, if there is one.
func (s *slots) take(cache *state.Cache, host, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	busy := map[string]bool{}
	running := map[string]bool{}
	for _, r := range state.ViewAll[operation.Record](cache, state.OperationRoot) {
		o := r.Value
		if o.State.Ended() || o.Kind != backup.Take.Name && o.Kind != backup.Final.Name {
			continue
		}
		running[o.ID] = true
		if o.Step == stepRun && o.Notes[noteHost] == host {
			busy[o.ID] = true
		}
	}
	for other, at := range s.host {
		if !running[other] {
			delete(s.host, other)
		} else if at == host {
			busy[other] = true
		}
	}
	delete(busy, id)
	if len(busy) >= perHost {
		return false
	}
	s.host[id] = host
	return true
}

// give gives the place of an operation back.
func (s *slots) give(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.host, id)
}
