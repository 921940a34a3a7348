// Package secretsmanager is the part of Secrets Manager that managed master passwords need. It has
// only those secrets, and only RDS changes them.
package secretsmanager

import (
	"context"
	"slices"
	"strings"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/identity/secret"
	"howdah/internal/state"
)

// Errors of the service (API reference of Secrets Manager).
const (
	errNoSecret   = "ResourceNotFoundException"
	errRequest    = "InvalidRequestException"
	errParameter  = "InvalidParameterException"
	errPagination = "InvalidNextTokenException"
)

// Config is what the service needs. All fields are required.
type Config struct {
	State *state.Client
	Looks *look.Source
	// Seal returns the key that seals secrets.
	Seal func() ([]byte, error)
	// Rotate makes the database of a secret take another password, and returns the secret with
	// that. days is how often the password is to be changed from now on. token names the new
	// version; with "" it gets any name. The error is database.ErrNotUsable if the database is not
	// available.
	Rotate func(ctx context.Context, c front.Call, m database.Managed, days int, token string) (secret.Secret, error)
}

// service has the handlers.
type service struct {
	*state.Client
	looks  *look.Source
	seal   func() ([]byte, error)
	rotate func(ctx context.Context, c front.Call, m database.Managed, days int, token string) (secret.Secret, error)
}

// Service returns what package front needs to know of it.
func Service(cfg Config) *front.Service {
	s := &service{cfg.State, cfg.Looks, cfg.Seal, cfg.Rotate}
	return &front.Service{
		Name: "secretsmanager", Target: "secretsmanager", Refused: refused,
		Actions: map[string]front.Action{
			"GetSecretValue":       on(s, s.getSecretValue),
			"DescribeSecret":       on(s, s.describeSecret),
			"ListSecretVersionIds": on(s, s.listSecretVersionIDs),
			"RotateSecret":         on(s, s.rotateSecret),
			"ListSecrets":          front.OnJSON(s.mayList, s.listSecrets),
		},
	}
}

// others has the service's other actions, which Howdah does not do.
var others = []string{
	"BatchGetSecretValue", "CancelRotateSecret", "CreateSecret", "DeleteResourcePolicy", "DeleteSecret", "GetRandomPassword", "GetResourcePolicy",
	"PutResourcePolicy", "PutSecretValue", "RemoveRegionsFromReplication", "ReplicateSecretToRegions", "RestoreSecret", "StopReplicationToReplica",
	"TagResource", "UntagResource", "UpdateSecret", "UpdateSecretVersionStage", "ValidateResourcePolicy",
}

func refused(action string) error {
	if slices.Contains(others, action) {
		return wire.NewError(errRequest, "You can't perform %s here: Howdah keeps only the master users' passwords that RDS manages, which nobody else changes.", action)
	}
	return wire.NewError("UnknownOperationException", "The action %s is not valid for this web service.", action)
}

// oneInput is what all actions on one secret have as input.
type oneInput struct {
	SecretID           *string `json:"SecretId"`
	VersionID          *string `json:"VersionId"`
	VersionStage       *string
	RotateImmediately  *bool
	RotationRules      *rotationRules
	RotationLambdaARN  *string
	ClientRequestToken *string
}

// on returns an action on one secret from a handler. The caller's policies are asked before
// anything is said of the secret.
func on(s *service, handler func(context.Context, front.Call, managed, oneInput) (any, error)) front.Action {
	return front.OnJSON(nil, func(ctx context.Context, c front.Call, in *oneInput) (any, error) {
		if wire.Or(in.SecretID, "") == "" {
			return nil, wire.NewError(errParameter, "You must provide a value for the SecretId parameter.")
		}
		c.Shows(map[string]string{"SecretId": *in.SecretID}) // which cuts what is too long
		var out any
		err := s.Retry(ctx, func() error {
			found, ok := s.findSecret(c.Scope, *in.SecretID)
			if err := s.mayUse(c, found, ok, *in.SecretID); err != nil {
				return err
			}
			if !ok {
				return wire.NewError(errNoSecret, "Secrets Manager can't find the specified secret.")
			}
			var err error
			out, err = handler(ctx, c, found, *in)
			return err
		})
		return out, err
	})
}

// mayUse asks the caller's policies about a secret. The secret need not exist.
func (s *service) mayUse(c front.Call, m managed, exists bool, id string) error {
	context := c.Context(nil)
	if !exists {
		if !strings.HasPrefix(id, "arn:") {
			id = arnOf(c.Scope, id)
		}
		return c.May(id, context, true)
	}
	for _, tag := range m.tags() {
		context["aws:ResourceTag/"+tag.Key] = []string{tag.Value}
		context["secretsmanager:ResourceTag/"+tag.Key] = []string{tag.Value}
	}
	return c.May(m.ARN(), context, true)
}
