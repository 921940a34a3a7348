package server

import (
	"context"

	"howdah/api/sts"
)

// getCallerIdentity says whose key signed the call: as AWS's root user for a key
// of the home, which has all rights in its account, or as the key's own user.
func (s *Server) getCallerIdentity(_ context.Context, c call, _ *sts.GetCallerIdentityRequest) (*sts.GetCallerIdentityResponse, error) {
	return &sts.GetCallerIdentityResponse{UserId: some(c.who.id), Account: some(c.Account), Arn: some(c.who.arn)}, nil
}
