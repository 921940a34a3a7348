// Package kms is the part of KMS that gives KmsKeyId a meaning: keys that encrypt databases'
// storage. No call encrypts anything with them. Package identity/kms says what keys are.
package kms

import (
	"context"

	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/identity/kms"
	"howdah/internal/state"
)

// Config is what the service needs. All fields are required.
type Config struct {
	State *state.Client
	// Seal returns the key that seals keys.
	Seal func() ([]byte, error)
}

// service has the handlers.
type service struct {
	*state.Client
	seal func() ([]byte, error)
}

// Service returns what package front needs to know of it.
func Service(cfg Config) *front.Service {
	s := &service{cfg.State, cfg.Seal}
	return &front.Service{
		Name: "kms", Target: "TrentService",
		Actions: map[string]front.Action{
			"CancelKeyDeletion":   on(s, s.cancelKeyDeletion, s.namedKey),
			"CreateKey":           on(s, s.createKey, everyKey[createKeyInput]),
			"DescribeKey":         on(s, s.describeKey, s.namedKey),
			"DisableKey":          on(s, s.disableKey, s.namedKey),
			"EnableKey":           on(s, s.enableKey, s.namedKey),
			"ListAliases":         on(s, s.listAliases, everyKey[listInput]),
			"ListKeys":            on(s, s.listKeys, everyKey[listInput]),
			"ScheduleKeyDeletion": on(s, s.scheduleKeyDeletion, s.namedKey),
		},
		Refused: func(action string) error {
			return wire.NewError("UnknownOperationException", "The operation %s is not available here.", action)
		},
	}
}

// on returns an action from a handler with typed input and output. resource returns what a request
// names, for policies.
func on[In, Out any](s *service, handler func(context.Context, front.Call, *In) (*Out, error), resource func(front.Call, *In) string) front.Action {
	may := func(ctx context.Context, c front.Call, in *In) error {
		if err := s.Fresh(ctx); err != nil {
			return err
		}
		// Keys have no tags that could be looked up. What a policy denies by tags it denies for
		// every key, and what it allows by tags it allows for none.
		named := resource(c, in)
		return c.May(named, c.Context(nil), named == "*")
	}
	return front.OnJSON(may, func(ctx context.Context, c front.Call, in *In) (any, error) { return handler(ctx, c, in) })
}

func everyKey[In any](front.Call, *In) string { return "*" }

// namedKey returns the ARN of the key that a request names.
func (s *service) namedKey(c front.Call, in *keyInput) string {
	if found, err := kms.Find(s.Cache, c.Scope, in.KeyId); err == nil {
		return found.Value.ARN()
	}
	return kms.ARN(c.Scope, in.KeyId)
}
