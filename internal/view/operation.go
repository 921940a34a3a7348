package view

import (
	"howdah/internal/model/operation"
	"howdah/internal/state"
)

// Begin is the write that begins an operation, for the transaction of whoever begins it; with
// one that has the id of another it fails. It answers operation.ErrTooMany where there is no
// room, as far as the mirror knows.
func Begin(cache *state.Cache, r operation.Record) (state.Op, error) {
	if err := operation.Room(operations(cache), r); err != nil {
		return state.Op{}, err
	}
	return state.Swap(state.Operation(r.ID), 0, r), nil
}

// Excluding is the operation that a deed to a database has to wait for, if there is one.
func Excluding(cache *state.Cache, database string, deed operation.Deed) (operation.Record, bool) {
	return operation.Excluding(operations(cache), database, deed)
}

func operations(cache *state.Cache) []*operation.Record {
	records := state.ViewAll[operation.Record](cache, state.OperationRoot)
	all := make([]*operation.Record, len(records))
	for n, r := range records {
		all[n] = r.Value
	}
	return all
}
