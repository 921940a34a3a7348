package hostapi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"howdah/internal/model/member"
	"howdah/internal/state"
)

// BucketRequest asks for what lets the database of a member into a bucket, for a feature: member.Export
// or member.Import.
type BucketRequest struct {
	Member  string `json:"member"`
	Feature string `json:"feature"`
}

const bucketPath = "bucket"

// bucket gives a host what lets a database into a bucket, if one of its members that run is the
// database's, and the database has a role for the feature.
func (s *Server) bucket(ctx context.Context, c call, in BucketRequest) (member.Bucket, error) {
	host, err := c.agent()
	if err != nil {
		return member.Bucket{}, err
	}
	if s.Bucket == nil {
		return member.Bucket{}, fmt.Errorf("%w: this control plane has no roles", errForbidden)
	}
	if in.Member == "" || strings.Contains(in.Member, "/") || in.Feature != member.Export && in.Feature != member.Import {
		return member.Bucket{}, fmt.Errorf("%w: a member and a feature are needed", errBad)
	}
	a, err := state.Get[member.Assignment](ctx, s.Store, state.Assign(host, in.Member))
	if errors.Is(err, state.ErrNotFound) || err == nil && a.Value.Want != member.Running {
		return member.Bucket{}, fmt.Errorf("%w: %s has no member %s that runs", errForbidden, host, in.Member)
	}
	if err != nil {
		return member.Bucket{}, err
	}
	access, err := s.Bucket(ctx, a.Value.Scope, in.Feature)
	if errors.Is(err, member.ErrNoRole) {
		return member.Bucket{}, fmt.Errorf("%w: %w", errForbidden, err)
	}
	return access, err
}

// Bucket gets what lets the database of a member of the caller's into a bucket. ErrRefused: it has no
// role for that.
func (c *Client) Bucket(ctx context.Context, of, feature string) (member.Bucket, error) {
	var answer member.Bucket
	err := c.call(ctx, bucketPath, BucketRequest{Member: of, Feature: feature}, &answer)
	return answer, err
}
