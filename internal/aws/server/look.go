package server

import "howdah/internal/aws/rds/database"

// sight is a look, with the server that takes it: for what is not in a package of its own yet.
type sight struct {
	*database.Sight
	s *Server
}

func (s *Server) look(account string) *sight { return &sight{s.databases.Of(account), s} }
