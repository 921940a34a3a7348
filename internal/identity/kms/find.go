package kms

import (
	"errors"
	"time"

	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Record is a key as it is kept; of a new one the revision is 0.
type Record = state.Record[Key]

// Path is where the state has a key.
func (k Key) Path() string { return state.KMSKey(k.Account, k.Region, k.ID) }

// Find finds the key of a name, which is an id, an alias, or an ARN of either, as a caller in
// this scope writes it. It answers state.ErrNotFound where there is none, or the name is of
// another account.
func Find(cache *state.Cache, scope spec.Scope, name string) (Record, error) {
	at, id, alias, ok := Parse(name, scope)
	if !ok || at.Account != scope.Account {
		return Record{}, state.ErrNotFound
	}
	if alias != "" {
		found, err := state.Load[Alias](cache, state.KMSAlias(at.Account, at.Region, alias))
		if err != nil {
			return Record{}, err
		}
		id = found.Value.Key
	}
	return state.Load[Key](cache, state.KMSKey(at.Account, at.Region, id))
}

// ForService is the key that the account's databases in a region have unless another one is
// named. The first call makes it: then the operations write its alias, and whoever commits them
// writes the key with them.
func ForService(cache *state.Cache, seal func() ([]byte, error), scope spec.Scope, now time.Time) (Record, []state.Op, error) {
	name := state.KMSAlias(scope.Account, scope.Region, ServiceAlias)
	alias, err := state.Load[Alias](cache, name)
	if err == nil {
		found, err := state.Load[Key](cache, state.KMSKey(scope.Account, scope.Region, alias.Value.Key))
		return found, nil, err
	}
	if !errors.Is(err, state.ErrNotFound) {
		return Record{}, nil, err
	}
	with, err := seal()
	if err != nil {
		return Record{}, nil, err
	}
	key, err := New(with, scope, now)
	key.Service, key.Description = true, "Default key that protects my RDS database volumes when no other key is defined"
	return Record{Value: key}, []state.Op{state.Swap(name, 0, Alias{Key: key.ID, Created: now})}, err
}
