package server

import (
	"howdah/internal/aws/rds/look"
	"howdah/internal/model/spec"
)

// sight is a look, with the server that takes it: for what is not in a package of its own yet.
type sight struct {
	*look.Look
	s *Server
}

func (s *Server) look(account string) *sight { return &sight{s.looks.Of(account), s} }

// with is the look with a cluster as it is about to be.
func (l *sight) with(c spec.Cluster) *sight { return &sight{l.With(c), l.s} }
