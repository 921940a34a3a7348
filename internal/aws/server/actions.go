package server

import (
	"maps"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/catalogue"
	"howdah/internal/aws/rds/endpoint"
	"howdah/internal/aws/rds/log"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/option"
	"howdah/internal/aws/rds/subnet"
	"howdah/internal/aws/rds/subscription"
)

// rdsService is what package front needs to know of RDS.
func (s *Server) rdsService() *front.Service {
	all := s.rdsActions()
	maps.Copy(all, catalogue.Nothing(s.catalogue()))
	return &front.Service{
		Name: rds.Service.Name, Contract: &rds.Service, Actions: all, Refused: catalogue.NotHere,
		Resources: rdsResources, Context: rdsContext, Describe: s.describe, AnyCase: true,
		Check:     checkRDS,
		LongTexts: map[string]int{"ParameterValue": 65535}, // the action bounds them
	}
}

// checkRDS refuses what would be taken for something else, or do nothing.
func checkRDS(c front.Call, in any) error { return look.First(checkNames(c, in), checkLabels(in)) }

// rdsActions are all that Howdah does of RDS, but for what always answers an empty list: what
// each part does.
func (s *Server) rdsActions() map[string]front.Action {
	all := map[string]front.Action{}
	for _, part := range []map[string]front.Action{
		catalogue.Actions(s.catalogue()),
		s.authorities.Actions(),
		s.clusterActions(),
		(&endpoint.Endpoints{State: s.client, Looks: s.looks, Pools: &s.pools}).Actions(),
		subscription.Actions(subscription.Config{State: s.client, Looks: s.looks}),
		s.groups.Actions(),
		s.instanceActions(),
		log.Actions(log.Config{State: s.client, Looks: s.looks, Reader: s.Logs, Log: s.Log}),
		option.Actions(option.Config{State: s.client, Looks: s.looks}),
		s.roleActions(),
		subnet.Actions(subnet.Config{State: s.client, Looks: s.looks}),
		s.tagActions(),
		s.upkeepActions(),
	} {
		maps.Copy(all, part)
	}
	return all
}

// catalogue is what the part of that name needs.
func (s *Server) catalogue() catalogue.Config {
	return catalogue.Config{
		State: s.client, Looks: s.looks, Home: s.Home, Pool: s.pools.Private, Authorities: s.authorities.Names, CanEncrypt: s.databases.CanEncrypt,
	}
}
