// Package rds is the service of RDS. Each part of it is a package below, with the actions on
// one kind of resources. They are joined here, with what concerns all kinds: names and ARNs in
// requests, tags, and what policies may say of resources. Package look is what all parts see.
package rds

import (
	"log/slog"
	"maps"
	"time"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/address"
	"howdah/internal/aws/rds/automated"
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
	"howdah/internal/aws/rds/snapshot"
	"howdah/internal/aws/rds/subnet"
	"howdah/internal/aws/rds/subscription"
	"howdah/internal/aws/rds/upkeep"
	"howdah/internal/identity/home"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Config is what RDS stands on. All of it is required but Settings.
type Config struct {
	State *state.Client
	Looks *look.Source
	Pools *address.Pools
	Home  *home.Home
	Now   func() time.Time
	Log   *slog.Logger
	Logs  log.Reader
	// Settings may be nil: then nobody judges values of parameters but PostgreSQL beside the
	// server.
	Settings group.Settings
}

// Parts are the parts of RDS, put together. Those that others reach, too, are named.
type Parts struct {
	cfg         Config
	Authorities *certificate.Authorities
	Databases   *database.Source
	Groups      *group.Groups
	Upkeep      *upkeep.Upkeep
}

// New puts the parts together.
func New(cfg Config) *Parts {
	authorities := &certificate.Authorities{State: cfg.State, Home: cfg.Home, Now: cfg.Now, Log: cfg.Log}
	databases := &database.Source{State: cfg.State, Looks: cfg.Looks, Pools: cfg.Pools, Seal: cfg.Home.SealKey, Authorities: authorities}
	return &Parts{
		cfg: cfg, Authorities: authorities, Databases: databases,
		Groups: &group.Groups{State: cfg.State, Looks: cfg.Looks, Settings: cfg.Settings, Log: cfg.Log},
		Upkeep: &upkeep.Upkeep{Source: databases, Log: cfg.Log},
	}
}

// Nobodys are the parts of no home. All that they can do is to say which actions there are.
func Nobodys() *Parts { return New(Config{Pools: &address.Pools{}}) }

// Service is what package front needs to know of RDS.
func (p *Parts) Service() *front.Service {
	all := p.actions()
	maps.Copy(all, catalogue.Nothing(p.catalogue()))
	return &front.Service{
		Name: rds.Service.Name, Contract: &rds.Service, Actions: all, Refused: catalogue.NotHere,
		Resources: resources, Context: requestContext, AnyCase: true,
		Describe: func(all map[string][]string, scope spec.Scope, arn string) (known bool) {
			return addResource(p.cfg.Looks.Of(scope.Account), all, scope, arn)
		},
		Check:     check,
		LongTexts: map[string]int{"ParameterValue": 65535}, // the action bounds them
	}
}

// check refuses what would be taken for something else, or do nothing.
func check(c front.Call, in any) error { return look.First(checkNames(c, in), checkLabels(in)) }

// actions are all that Howdah does of RDS, but for what always answers an empty list: what each
// part does.
func (p *Parts) actions() map[string]front.Action {
	cfg := p.cfg
	all := map[string]front.Action{}
	for _, part := range []map[string]front.Action{
		automated.Actions(p.Databases),
		catalogue.Actions(p.catalogue()),
		p.Authorities.Actions(),
		cluster.Actions(p.Databases),
		(&endpoint.Endpoints{State: cfg.State, Looks: cfg.Looks, Pools: cfg.Pools}).Actions(),
		p.Groups.Actions(),
		instance.Actions(p.Databases),
		log.Actions(log.Config{State: cfg.State, Looks: cfg.Looks, Reader: cfg.Logs, Log: cfg.Log}),
		option.Actions(cfg.State, cfg.Looks),
		snapshot.Actions(p.Databases),
		subnet.Actions(cfg.State, cfg.Looks),
		subscription.Actions(cfg.State, cfg.Looks),
		(&tags{cfg.State, cfg.Looks}).actions(),
		p.Upkeep.Actions(),
	} {
		maps.Copy(all, part)
	}
	return all
}

// catalogue is what the part of that name needs.
func (p *Parts) catalogue() catalogue.Config {
	cfg := p.cfg
	return catalogue.Config{
		State: cfg.State, Looks: cfg.Looks, Home: cfg.Home, Pool: cfg.Pools.Private, Authorities: p.Authorities.Names, CanEncrypt: p.Databases.CanEncrypt,
	}
}
