package hosttest

import (
	"context"
	"fmt"
	"time"

	"howdah/internal/identity/bucket"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Role makes a role, and associates the database with it for features. The database needs no record of
// its own before. account is that of the home.
func (s *Site) Role(database string, role spec.BucketRole, secret string, features ...string) {
	s.Helper()
	seal, err := s.Home.SealKey()
	s.Must(err)
	sealer, err := bucket.NewSealer(seal)
	s.Must(err)
	role.Account, role.Created = s.Home.Account, time.Now().UTC()
	s.Put(state.BucketRole(role.Account, role.Name), sealer.Seal(role, secret))
	i := spec.Instance{Common: spec.Common{Scope: spec.Scope{Account: role.Account, Region: s.Home.Region}, Name: database, ResourceID: database}}
	for _, f := range features {
		i.Roles = append(i.Roles, spec.Role{ARN: role.ARN(), Feature: f})
	}
	s.Put(state.Instance(i.Account, i.Region, i.Name), i)
}

// bucket returns what lets a database into a bucket.
func (s *Site) bucket(ctx context.Context, database, feature string) (member.Bucket, error) {
	all, err := state.List[spec.Instance](ctx, s.Store, state.InstanceRoot)
	if err != nil {
		return member.Bucket{}, err
	}
	for _, i := range all {
		if i.Value.ResourceID == database {
			return bucket.Open(ctx, s.Store, s.Home.SealKey, i.Value.Common, feature)
		}
	}
	return member.Bucket{}, fmt.Errorf("%w: there is no database %s", member.ErrNoRole, database)
}
