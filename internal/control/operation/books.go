package operation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"howdah/internal/model/operation"
	"howdah/internal/state"
)

// ledger is where operations are recorded.
type ledger interface {
	// read answers the newest record and its revision, or state.ErrNotFound.
	read(ctx context.Context, id string) (operation.Record, int64, error)
	// write replaces a record, with other changes, if it is at that revision and this control
	// plane leads; else it answers state.ErrConflict. Any other error may come of a write that
	// happened.
	write(ctx context.Context, r operation.Record, revision int64, ops ...state.Op) (int64, error)
	// prove answers ErrOvertaken if the record is not at that revision, or another one leads.
	prove(ctx context.Context, id string, revision int64) error
	// forget removes the jobs of an operation, as far as they are known here.
	forget(ctx context.Context, id string) error
	// wish is that somebody wants it to be cancelled.
	wish(id string) (operation.Wish, bool)
}

// books are those of the home.
type books struct {
	store   *state.Store
	cache   *state.Cache
	leading state.Op
}

func (b books) read(ctx context.Context, id string) (operation.Record, int64, error) {
	r, err := state.Get[operation.Record](ctx, b.store, state.Operation(id))
	return r.Value, r.Revision, err
}

func (b books) write(ctx context.Context, r operation.Record, revision int64, ops ...state.Op) (int64, error) {
	all := append([]state.Op{state.Swap(state.Operation(r.ID), revision, r), b.leading}, ops...)
	if r.State.Ended() {
		all = append(all, state.Delete(state.OperationCancel(r.ID)))
	}
	return b.store.Commit(ctx, all...)
}

func (b books) prove(ctx context.Context, id string, revision int64) error {
	_, err := b.store.Commit(ctx, state.Unchanged(state.Operation(id), revision), b.leading)
	if errors.Is(err, state.ErrConflict) {
		return fmt.Errorf("operation %s: %w", id, ErrOvertaken)
	}
	return err
}

func (b books) forget(ctx context.Context, id string) error {
	var ops []state.Op
	for _, key := range b.cache.Keys(state.JobRoot) {
		if operationOf(key) == id {
			ops = append(ops, state.Delete(key))
		}
	}
	_, err := b.store.CommitEach(ctx, ops, b.leading)
	return err
}

// operationOf returns the operation that a job is of, by the job's key or that of its report.
func operationOf(key string) string {
	place, report := strings.CutPrefix(key, state.JobReportRoot)
	if !report {
		place = state.Tail(key, state.JobRoot)
	}
	_, name, _ := strings.Cut(place, "/")
	id, _, _ := strings.Cut(name, "/")
	return id
}

func (b books) wish(id string) (operation.Wish, bool) {
	w, err := state.Load[operation.Wish](b.cache, state.OperationCancel(id))
	return w.Value, err == nil
}
