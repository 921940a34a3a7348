package hostapi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"howdah/internal/kms"
	"howdah/internal/member"
	"howdah/internal/state"
)

// StorageKeyRequest asks for the key of a member's encrypted directory.
type StorageKeyRequest struct {
	Member string `json:"member"`
}

// StorageKeyAnswer has the key: it belongs into the kernel of the host, and nowhere else.
type StorageKeyAnswer struct {
	Key []byte `json:"key"`
}

const storageKeyPath = "storage-key"

// storageKey gives the key of a member to the host that the member is assigned to, as long as
// it is to run there.
func (s *Server) storageKey(ctx context.Context, c call, in StorageKeyRequest) (StorageKeyAnswer, error) {
	kind, host, _ := strings.Cut(c.caller, ":")
	if Kind(kind) != Agent {
		return StorageKeyAnswer{}, fmt.Errorf("%w: only an agent has members", errForbidden)
	}
	assignment, err := state.Get[member.Assignment](ctx, s.Store, state.Assign(host, in.Member))
	if errors.Is(err, state.ErrNotFound) {
		return StorageKeyAnswer{}, fmt.Errorf("%w: %w", errForbidden, err)
	}
	if err != nil {
		return StorageKeyAnswer{}, err
	}
	a := assignment.Value
	if !a.Encrypted || a.Want != member.Running || a.ID != in.Member {
		return StorageKeyAnswer{}, fmt.Errorf("%w: the member %s has no key, or is not to run", errForbidden, in.Member)
	}
	key, err := s.openStorage(ctx, a)
	return StorageKeyAnswer{Key: key}, err
}

func (s *Server) openStorage(ctx context.Context, a member.Assignment) ([]byte, error) {
	storage, err := state.Get[kms.Storage](ctx, s.Store, state.StorageKey(a.Scope))
	if err != nil {
		return nil, err
	}
	k := storage.Value
	key, err := state.Get[kms.Key](ctx, s.Store, state.KMSKey(k.Account, k.Region, k.Key))
	if err != nil {
		return nil, err
	}
	seal, err := s.Home.SealKey()
	if err != nil {
		return nil, err
	}
	return k.ForMember(seal, key.Value, a.ID)
}

// StorageKey gets the key of one of the caller's members.
func (c *Client) StorageKey(ctx context.Context, member string) ([]byte, error) {
	var answer StorageKeyAnswer
	err := c.call(ctx, storageKeyPath, StorageKeyRequest{Member: member}, &answer)
	return answer.Key, err
}
