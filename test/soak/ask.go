package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/testkit/patience"
)

const (
	// stepWithin is how long a step may take: until it ends with nothing broken any more, and as
	// long as faults of its round keep it from that.
	stepWithin = 120 * time.Second
	askEvery   = 100 * time.Millisecond
)

// later has the answers that ask for patience: the database is not in a state for the call yet, or
// parts of Howdah are away.
var later = []string{
	rds.ErrInvalidDBInstanceState, rds.ErrInvalidDBClusterState, rds.ErrInvalidDBParameterGroupState, api.ErrServiceUnavailable, api.ErrInternalFailure,
	"DependencyViolation", rds.ErrInvalidDBSnapshotState, rds.ErrInvalidDBClusterSnapshotState, rds.ErrInvalidRestore,
}

// ask calls an action until it is accepted. Codes in done say that an earlier call was accepted
// whose answer got lost.
func (s *Soak) ask(ctx context.Context, action string, in, out any, done ...string) error {
	deadline := time.Now().Add(patience.For(stepWithin))
	for tries := 0; ; tries++ {
		err := s.call(ctx, action, in, out)
		if err == nil {
			return nil
		}
		code := codeOf(err)
		switch {
		case tries > 0 && slices.Contains(done, code):
			return nil
		case code != "" && !slices.Contains(later, code):
			return fmt.Errorf("%s: %w", action, err)
		case time.Now().After(deadline):
			return fmt.Errorf("%s is not accepted: %w", action, err)
		}
		if err := passes(ctx, askEvery); err != nil {
			return err
		}
	}
}

func (s *Soak) call(ctx context.Context, action string, in, out any) error {
	if strings.Contains(action, "SecurityGroup") {
		return s.Rig.CallEC2(ctx, action, in, out)
	}
	return s.Rig.Call(ctx, action, in, out)
}

// codeOf returns the code of the API's answer, or "" if there was none.
func codeOf(err error) string {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return e.Code
	}
	return ""
}

// passes lets time pass.
func passes(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// isGone returns nil once neither an instance nor a cluster has that name.
func (s *Soak) isGone(ctx context.Context, cluster bool, name string) error {
	var err error
	if cluster {
		_, err = s.Rig.Cluster(ctx, name)
	} else {
		_, err = s.Rig.Instance(ctx, name)
	}
	switch code := codeOf(err); {
	case code == rds.ErrDBInstanceNotFound || code == rds.ErrDBClusterNotFound:
		return nil
	case err == nil:
		return fmt.Errorf("%s is there still", name)
	}
	return err
}
