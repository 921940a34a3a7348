// Package database is what instances and clusters are alike in. An instance of its own and a
// cluster are both a database with members. Here are what the record of a new one is filled in
// and checked by, its master user, the key of its storage, the addresses of its endpoints, who
// follows it, and the modification of a record in the making. All that belongs to a change is
// committed in one transaction with the record.
package database

import (
	"howdah/internal/aws/rds/address"
	"howdah/internal/aws/rds/certificate"
	"howdah/internal/aws/rds/look"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Source makes sights. All fields are required.
type Source struct {
	State *state.Client
	Looks *look.Source
	Pools *address.Pools
	// Seal is what secrets of the state are sealed with.
	Seal        func() ([]byte, error)
	Authorities *certificate.Authorities
}

// Sight is a look at an account by somebody who is about to change its databases.
type Sight struct {
	*look.Look
	*Source
}

// Of is a sight of an account as it is now.
func (s *Source) Of(account string) *Sight { return &Sight{s.Looks.Of(account), s} }

// With is the sight with a cluster as it is about to be.
func (l *Sight) With(c spec.Cluster) *Sight { return &Sight{l.Look.With(c), l.Source} }
