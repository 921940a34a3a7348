// Package sts is the part of STS that Howdah has: who am I?
package sts

import (
	"context"

	"howdah/api/sts"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
)

// Service returns what package front needs to know of it.
func Service() *front.Service {
	return &front.Service{
		Name: sts.Service.Name, Contract: &sts.Service,
		Actions: map[string]front.Action{
			"GetCallerIdentity": front.Free(getCallerIdentity), // everyone may ask who they are, as on AWS
		},
	}
}

// getCallerIdentity says whose key signed the call. A key of the home, which has all rights in its
// account, is AWS's root user. Any other key is its own user.
func getCallerIdentity(_ context.Context, c front.Call, _ *sts.GetCallerIdentityRequest) (*sts.GetCallerIdentityResponse, error) {
	return &sts.GetCallerIdentityResponse{UserId: wire.Some(c.Who.ID), Account: wire.Some(c.Account), Arn: wire.Some(c.Who.ARN)}, nil
}
