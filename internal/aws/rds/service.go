// Package rds is the service of RDS. Each part of it is a package below, with the actions on
// one kind of resources. They are joined here, with what concerns all kinds: names and ARNs in
// requests, tags, and what policies may say of resources. Package look is what all parts see.
package rds

import (
	"log/slog"
	"maps"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/address"
	"howdah/internal/aws/rds/catalogue"
	"howdah/internal/aws/rds/certificate"
	"howdah/internal/aws/rds/cluster"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/endpoint"
	"howdah/internal/aws/rds/group"
	"howdah/internal/aws/rds/instance"
	"howdah/internal/aws/rds/log"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/option"
	"howdah/internal/aws/rds/subnet"
	"howdah/internal/aws/rds/subscription"
	"howdah/internal/aws/rds/upkeep"
	"howdah/internal/identity/home"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Config is what RDS is put together of. All of it is required.
type Config struct {
	State       *state.Client
	Looks       *look.Source
	Pools       *address.Pools
	Home        *home.Home
	Log         *slog.Logger
	Logs        log.Reader
	Authorities *certificate.Authorities
	Databases   *database.Source
	Groups      *group.Groups
	Upkeep      *upkeep.Upkeep
}

// Service is what package front needs to know of it.
func Service(cfg Config) *front.Service {
	all := Actions(cfg)
	maps.Copy(all, catalogue.Nothing(cfg.catalogue()))
	return &front.Service{
		Name: rds.Service.Name, Contract: &rds.Service, Actions: all, Refused: catalogue.NotHere,
		Resources: resources, Context: requestContext, AnyCase: true,
		Describe: func(all map[string][]string, scope spec.Scope, arn string) (known bool) {
			return addResource(cfg.Looks.Of(scope.Account), all, scope, arn)
		},
		Check:     check,
		LongTexts: map[string]int{"ParameterValue": 65535}, // the action bounds them
	}
}

// check refuses what would be taken for something else, or do nothing.
func check(c front.Call, in any) error { return look.First(checkNames(c, in), checkLabels(in)) }

// Actions are all that Howdah does of RDS, but for what always answers an empty list: what each
// part does.
func Actions(cfg Config) map[string]front.Action {
	all := map[string]front.Action{}
	for _, part := range []map[string]front.Action{
		catalogue.Actions(cfg.catalogue()),
		cfg.Authorities.Actions(),
		cluster.Actions(cfg.Databases),
		(&endpoint.Endpoints{State: cfg.State, Looks: cfg.Looks, Pools: cfg.Pools}).Actions(),
		cfg.Groups.Actions(),
		instance.Actions(cfg.Databases),
		log.Actions(log.Config{State: cfg.State, Looks: cfg.Looks, Reader: cfg.Logs, Log: cfg.Log}),
		option.Actions(option.Config{State: cfg.State, Looks: cfg.Looks}),
		subnet.Actions(subnet.Config{State: cfg.State, Looks: cfg.Looks}),
		subscription.Actions(subscription.Config{State: cfg.State, Looks: cfg.Looks}),
		(&tags{cfg.State, cfg.Looks}).actions(),
		cfg.Upkeep.Actions(),
	} {
		maps.Copy(all, part)
	}
	return all
}

// catalogue is what the part of that name needs.
func (cfg Config) catalogue() catalogue.Config {
	return catalogue.Config{
		State: cfg.State, Looks: cfg.Looks, Home: cfg.Home, Pool: cfg.Pools.Private, Authorities: cfg.Authorities.Names, CanEncrypt: cfg.Databases.CanEncrypt,
	}
}
