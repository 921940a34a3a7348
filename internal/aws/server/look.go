package server

import (
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/model/event"
	"howdah/internal/model/spec"
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

// uses are the checks of what databases use.
type uses struct{ s *Server }

func (u uses) OptionGroup(l *look.Look, name *string, c spec.Common) error {
	return u.sight(l).checkOptionGroup(name, c)
}

func (u uses) SubnetGroup(l *look.Look, scope spec.Scope, name *string) error {
	return u.sight(l).checkSubnetGroup(scope, name)
}

func (u uses) sight(l *look.Look) *sight { return &sight{u.s.databases.From(l), u.s} }
