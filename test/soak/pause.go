package soak

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/failover/fence"
	"howdah/internal/state"
	"howdah/test/soak/model"
)

// pauseWithin is how long a host stands still that nobody replaces.
const pauseWithin = 30 * time.Second

// lookEvery is the pause between two looks. Phases of a failover follow each other within a tenth
// of a second.
const lookEvery = 2 * time.Millisecond

// pause makes the primary's host stand still until a failover has come to a phase, and go on at
// that very moment.
func pause(ctx context.Context, s *Soak, d deed) error {
	own := s.database(d.database(0).Serial)
	if own == nil {
		return nil // it is being made, or deleted
	}
	leader, err := s.Rig.Leader(ctx, own.id)
	if err != nil {
		s.Log("  %s: nothing broken: %v", d.Do(), err)
		return nil
	}
	began := time.Now()
	thaw, err := s.Rig.FreezeHost(leader.ZoneLetter())
	limited, cancel := context.WithTimeout(ctx, pauseWithin)
	defer cancel()
	for limited.Err() == nil {
		if there, err := s.phase(limited, own, leader.Name, d.Word(1), began); err == nil && there {
			break
		}
		_ = passes(limited, lookEvery) // its end is that of the loop
	}
	if limited.Err() != nil {
		s.Log("  %s: it did not come to that", d.Do())
	}
	return errors.Join(err, thaw())
}

// phase reports whether the failover of a primary that stands still has come this far.
func (s *Soak) phase(ctx context.Context, own *database, old, phase string, began time.Time) (bool, error) {
	if phase == model.Noticed {
		answer, err := s.Rig.Store.Client.Get(ctx, state.FencePrefix(own.id), clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return false, fmt.Errorf("look for a case: %w", err)
		}
		return answer.Count > 0, nil
	}
	l, err := fence.Read(ctx, s.Rig.Store.Client, own.id)
	switch {
	case err != nil:
		return false, err
	case phase == model.Revoked:
		return l.Leader != old, nil
	case phase == model.Elected:
		return l.Leader != old && l.Leader != "", nil
	}
	return l.Leader != old && l.Leader != "" && own.writing(began)() == nil, nil
}
