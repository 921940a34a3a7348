package secretsmanager

import (
	"context"
	"errors"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/wire"
	"howdah/internal/identity/secret"
	"howdah/internal/state"
)

type rotationRules struct {
	AutomaticallyAfterDays *int64  `json:",omitempty"`
	ScheduleExpression     *string `json:",omitempty"`
	Duration               *string `json:",omitempty"`
}

// rotateSecret makes the database take another password, or changes how often it does.
func (s *service) rotateSecret(ctx context.Context, c front.Call, m managed, in oneInput) (any, error) {
	days, err := in.rules()
	if err != nil {
		return nil, err
	}
	if m.Until > 0 {
		return nil, wire.NewError(errRequest, "You can't rotate the secret: the master user of its database has a password of its owner.")
	}
	if in.ClientRequestToken != nil && !secret.GoodToken(*in.ClientRequestToken) {
		return nil, wire.NewError(errParameter, "ClientRequestToken must be 32-64 characters long.")
	}
	if days == 0 {
		days = m.Days
	}
	if !wire.Or(in.RotateImmediately, true) {
		next := m.Secret
		next.Days = days
		if err := s.Commit(ctx, state.Swap(m.Record.Key, m.Record.Revision, next)); err != nil {
			return nil, err
		}
		return rotatedOut{m.ARN(), m.Name, ""}, nil
	}
	token := wire.Or(in.ClientRequestToken, "")
	if m.Made(token) {
		return rotatedOut{m.ARN(), m.Name, token}, nil // the same call again
	}
	if m.Pending != nil {
		return nil, wire.NewError(errRequest, "A previous rotation isn't complete. That rotation will be reattempted.")
	}
	next, err := s.rotate(ctx, c, m.Managed, days, token)
	if errors.Is(err, database.ErrNotUsable) {
		return nil, wire.NewError(errRequest, "You can't rotate the secret now: its database is not available.")
	}
	if err != nil {
		return nil, err
	}
	return rotatedOut{m.ARN(), m.Name, next.Pending.ID}, nil
}

type rotatedOut struct {
	ARN, Name string
	VersionID string `json:"VersionId,omitempty"`
}

// rules returns how often the password is to be changed, in days. 0 says that the request does not
// tell.
func (in oneInput) rules() (int, error) {
	if in.RotationLambdaARN != nil {
		return 0, wire.NewError(errParameter, "You can't specify RotationLambdaARN for a secret whose rotation is managed.")
	}
	r := in.RotationRules
	switch {
	case r == nil:
		return 0, nil
	case r.ScheduleExpression != nil || r.Duration != nil:
		return 0, wire.NewError(errParameter, "Howdah takes AutomaticallyAfterDays alone: leave ScheduleExpression and Duration away.")
	case r.AutomaticallyAfterDays == nil || *r.AutomaticallyAfterDays < 1 || *r.AutomaticallyAfterDays > secret.MostDays:
		return 0, wire.NewError(errParameter, "AutomaticallyAfterDays must be from 1 to %d.", secret.MostDays)
	}
	return int(*r.AutomaticallyAfterDays), nil
}
