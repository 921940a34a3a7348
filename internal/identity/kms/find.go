package kms

import (
	"errors"
	"time"

	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Record is a key as it is kept. The revision of a new key is 0.
type Record = state.Record[Key]

// Path returns the key's place in the state.
func (k Key) Path() string { return state.KMSKey(k.Account, k.Region, k.ID) }

// Find returns the key of a name, as a caller in this scope writes it: an id, an alias, or the ARN
// of either. It returns state.ErrNotFound if there is none, or if the name belongs to another
// account.
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

// ForService returns the key of the account's databases in a region for which nobody names another
// key. The first call makes the key: then the operations write its alias, and whoever commits them
// also writes the key.
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
