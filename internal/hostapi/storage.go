package hostapi

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	if s.Storage == nil || !a.Encrypted || a.Want != member.Running || a.ID != in.Member {
		return StorageKeyAnswer{}, fmt.Errorf("%w: the member %s has no key, or is not to run", errForbidden, in.Member)
	}
	key, err := s.Storage(ctx, a.Scope, a.ID)
	return StorageKeyAnswer{Key: key}, err
}

// StorageKey gets the key of one of the caller's members.
func (c *Client) StorageKey(ctx context.Context, member string) ([]byte, error) {
	var answer StorageKeyAnswer
	err := c.call(ctx, storageKeyPath, StorageKeyRequest{Member: member}, &answer)
	return answer.Key, err
}
