// Package catalogue is RDS's part on what there is to choose from: versions, classes and storage,
// what an account may have, and what Howdah never has any of.
package catalogue

import (
	"net/netip"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/identity/home"
	"howdah/internal/state"
)

// Config is what the actions need. All of it is required.
type Config struct {
	State *state.Client
	Looks *look.Source
	Home  *home.Home
	// Pool has the addresses of endpoints that are not public.
	Pool netip.Prefix
	// Authorities are the names of those that certificates can be of.
	Authorities func() []string
	// CanEncrypt is an error where no host can encrypt storage.
	CanEncrypt func() error
}

// service has the handlers.
type service struct {
	*state.Client
	looks       *look.Source
	home        *home.Home
	pool        netip.Prefix
	authorities func() []string
	canEncrypt  func() error
}

func newService(cfg Config) *service {
	return &service{cfg.State, cfg.Looks, cfg.Home, cfg.Pool, cfg.Authorities, cfg.CanEncrypt}
}

// Actions are those on what there is, and on what an account has of it.
func Actions(cfg Config) map[string]front.Action {
	s := newService(cfg)
	return map[string]front.Action{
		"DescribeAccountAttributes":            front.On(s.describeAccountAttributes),
		"DescribeDBEngineVersions":             front.On(s.describeDBEngineVersions),
		"DescribeDBMajorEngineVersions":        front.On(s.describeDBMajorEngineVersions),
		"DescribeOrderableDBInstanceOptions":   front.On(s.describeOrderableDBInstanceOptions),
		"DescribeServerlessV2PlatformVersions": front.On(s.describeServerlessV2PlatformVersions),
		"DescribeSourceRegions":                front.On(s.describeSourceRegions),
		"DescribeValidDBInstanceModifications": front.On(s.describeValidDBInstanceModifications),
	}
}
