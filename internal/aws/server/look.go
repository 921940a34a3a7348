package server

import (
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/model/event"
)

// sight is a look, with the server that takes it: for what is not in a package of its own yet.
type sight struct {
	*database.Sight
	s *Server
}

func (s *Server) look(account string) *sight { return &sight{s.databases.Of(account), s} }

// modification is one, with the server: for what is not in a package of its own yet.
type modification struct {
	*database.Modification
	s *Server
}

func (s *Server) modifying(l *sight, c front.Call, kind event.SourceType) *modification {
	return &modification{&database.Modification{Sight: l.Sight, Call: c, Kind: kind}, s}
}
