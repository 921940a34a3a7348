package hostapi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/model/member"
	"howdah/internal/model/regain"
	"howdah/internal/state"
)

// StorageKeyRequest asks for the key of a member's encrypted directory.
type StorageKeyRequest struct {
	Member string `json:"member"`
}

// StorageKeyAnswer has the key. The key belongs into the kernel of the host, and nowhere else.
type StorageKeyAnswer struct {
	Key []byte `json:"key"`
}

const storageKeyPath = "storage-key"

// storageKey gives the key of a member to the host that the member is assigned to, as long as the
// member is to run there. While a restored home asks which host has which data, it also gives the
// key to a host that has the data.
func (s *Server) storageKey(ctx context.Context, c call, in StorageKeyRequest) (StorageKeyAnswer, error) {
	host, err := c.agent()
	if err != nil {
		return StorageKeyAnswer{}, err
	}
	if s.Storage == nil {
		return StorageKeyAnswer{}, fmt.Errorf("%w: this control plane has no keys of storage", errForbidden)
	}
	database, err := s.runsAt(ctx, host, in.Member)
	if refused := err; errors.Is(refused, errForbidden) {
		database, err = s.heldAt(ctx, host, in.Member)
		if errors.Is(err, errNotHeld) {
			err = refused
		}
	}
	if err != nil {
		return StorageKeyAnswer{}, err
	}
	key, err := s.Storage(ctx, database, in.Member)
	return StorageKeyAnswer{Key: key}, err
}

// runsAt returns the database of a member that is to run, encrypted, at a host.
func (s *Server) runsAt(ctx context.Context, host, id string) (database string, err error) {
	assignment, err := state.Get[member.Assignment](ctx, s.Store, state.Assign(host, id))
	if errors.Is(err, state.ErrNotFound) {
		return "", fmt.Errorf("%w: %w", errForbidden, err)
	}
	if err != nil {
		return "", err
	}
	a := assignment.Value
	if !a.Encrypted || a.Want != member.Running || a.ID != id {
		return "", fmt.Errorf("%w: the member %s has no key, or is not to run", errForbidden, id)
	}
	return a.Scope, nil
}

// errNotHeld says that a member's database does not wait to be taken over.
var errNotHeld = errors.New("its database does not wait to be taken over")

// heldAt returns the database of a member whose copy at a host is to be looked at. That is so if
// three things hold: the database waits to be taken over after a restore of the home, the host has
// told of the copy, and neither the home nor another host knows of a copy elsewhere. So nobody gets
// keys at other times. A host that lies gets the key of a member that nobody else has, and each
// member's key opens only that member's directory.
func (s *Server) heldAt(ctx context.Context, host, id string) (database string, err error) {
	if s.Placed == nil {
		return "", errNotHeld
	}
	database, name, _ := strings.Cut(id, ".")
	home, err := state.Get[regain.Home](ctx, s.Store, state.Restored())
	if err == nil {
		_, err = state.Get[regain.Hold](ctx, s.Store, state.Hold(database))
	}
	if errors.Is(err, state.ErrNotFound) {
		return "", errNotHeld
	}
	if err != nil {
		return "", err
	}
	told, err := state.Get[regain.Copy](ctx, s.Store, state.HeldCopy(host, id))
	if errors.Is(err, state.ErrNotFound) || err == nil && (told.Value.Home != home.Value.ID || told.Value.Assignment.ID != id) {
		return "", fmt.Errorf("%w: %s has not told of a copy %s", errForbidden, host, id)
	}
	if err != nil {
		return "", err
	}
	return database, s.nowhereElse(ctx, host, database, name, home.Value.ID)
}

// nowhereElse refuses a host the key of a member if the home or another host knows the member
// elsewhere.
func (s *Server) nowhereElse(ctx context.Context, host, database, name, home string) error {
	id := member.ID(database, name)
	known, err := s.Placed(ctx, database, name)
	if err != nil {
		return err
	}
	if known != "" && known != host {
		return fmt.Errorf("%w: %s is at another host", errForbidden, id)
	}
	keys, err := s.Store.Client.Get(ctx, state.HoldingRoot, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return fmt.Errorf("look who has %s: %w", id, err)
	}
	for _, kv := range keys.Kvs {
		other, of, _ := strings.Cut(state.Tail(string(kv.Key), state.HoldingRoot), "/")
		if of != id || other == host {
			continue
		}
		c, err := state.Get[regain.Copy](ctx, s.Store, string(kv.Key))
		if err == nil && c.Value.Home == home {
			return fmt.Errorf("%w: %s has told of a copy %s, too", errForbidden, other, id)
		}
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
	}
	return nil
}

// StorageKey gets the key of one of the caller's members.
func (c *Client) StorageKey(ctx context.Context, member string) ([]byte, error) {
	var answer StorageKeyAnswer
	err := c.call(ctx, storageKeyPath, StorageKeyRequest{Member: member}, &answer)
	return answer.Key, err
}
