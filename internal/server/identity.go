package server

import (
	"context"

	"howdah/api/sts"
)

// getCallerIdentity says whose key signed the call. A key has all rights in its
// account, as AWS's root user has.
func (s *Server) getCallerIdentity(_ context.Context, c call, _ *sts.GetCallerIdentityRequest) (*sts.GetCallerIdentityResponse, error) {
	return &sts.GetCallerIdentityResponse{
		UserId: some(c.Account), Account: some(c.Account), Arn: some("arn:aws:iam::" + c.Account + ":root"),
	}, nil
}
