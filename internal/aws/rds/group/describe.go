package group

import (
	"context"
	"maps"
	"slices"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/param"
	"howdah/internal/model/spec"
)

// Sources of a value, in RDS's words.
const (
	fromUser   = "user"
	fromSystem = "system"
	fromEngine = "engine-default"
)

// systemValues are what the platform sets in place of PostgreSQL's own defaults.
func systemValues() map[string]string {
	all := spec.ClusterParameters(1<<30, 0)
	// It depends on the storage, in a way that is no formula.
	delete(all, "max_slot_wal_keep_size")
	// They differ where a database is archived, and users cannot set them.
	delete(all, "archive_command")
	delete(all, "archive_timeout")
	maps.Copy(all, spec.DefaultFormulas())
	return all
}

// listing is a request for parameters.
type listing struct {
	source  *string
	filters []rds.Filter
	size    *int32
	marker  *string
}

// parameters are those of a group, in pages.
func parameters(l *look.Look, g spec.ParameterGroup, in listing) ([]rds.Parameter, *string, error) {
	family, _ := param.ParseFamily(g.Family)
	catalogue, err := catalogueOf(l, family)
	if err != nil {
		return nil, nil, err
	}
	wanted, err := look.ReadFilters(in.filters, "parameter-name")
	if err != nil {
		return nil, nil, err
	}
	sources := []string{fromUser, fromSystem, fromEngine}
	if in.source != nil && !slices.Contains(sources, *in.source) {
		return nil, nil, wire.NewError(api.ErrInvalidParameterValue, "Invalid value %q for Source: use %s.", *in.source, strings.Join(sources, ", "))
	}
	system := systemValues()
	var all []rds.Parameter
	for _, p := range catalogue.All(family) {
		out := parameterOut(p, g, family, system)
		if wanted.Match(map[string][]string{"parameter-name": {p.Name}}) && (in.source == nil || *in.source == *out.Source) {
			all = append(all, out)
		}
	}
	return page.Of(all, func(p rds.Parameter) string { return strings.ToLower(*p.ParameterName) }, in.size, in.marker)
}

func parameterOut(p param.Parameter, g spec.ParameterGroup, family param.Family, system map[string]string) rds.Parameter {
	why := param.Owned(p, family, g.Kind)
	out := rds.Parameter{
		ParameterName: wire.Some(p.Name), Description: wire.Some(explain(p, why)), Source: wire.Some(fromEngine), ApplyType: wire.Some(p.ApplyType()), DataType: wire.Some(p.DataType()),
		AllowedValues: wire.Text(p.AllowedValues()), IsModifiable: wire.Some(why == ""), ApplyMethod: wire.Some(pendingReboot),
		ParameterValue: wire.Text(p.Plain(p.Default)),
	}
	if g.Kind == param.Cluster {
		out.SupportedEngineModes = []string{"provisioned"}
	}
	if value, ok := system[p.Name]; ok {
		if !param.IsFormula(value) {
			value = p.Plain(value)
		}
		out.Source, out.ParameterValue = wire.Some(fromSystem), wire.Text(value)
	}
	if v := g.Values.Latest(p.Name); v != nil {
		out.Source, out.ParameterValue = wire.Some(fromUser), v.Value
		if !v.Waits {
			out.ApplyMethod = wire.Some(immediate)
		}
	}
	return out
}

// explain says what a parameter is, in which unit, and why it cannot be changed.
func explain(p param.Parameter, why string) string {
	words := p.Text
	if p.Unit != "" {
		words = "(" + p.Unit + ") " + words
	}
	if why != "" {
		words += " Not modifiable: " + why + "."
	}
	return strings.TrimSpace(words)
}

// parametersOf answers the parameters of a group by its name.
func (s *Groups) parametersOf(ctx context.Context, c front.Call, kind param.Kind, name string, in listing) ([]rds.Parameter, *string, error) {
	if err := s.State.Fresh(ctx); err != nil {
		return nil, nil, err
	}
	l := s.Looks.Of(c.Account)
	g, err := find(l, c.Scope, kind, name)
	if err != nil {
		return nil, nil, err
	}
	all, marker, err := parameters(l, g.Value, in)
	return wire.List(all), marker, err
}

// engineDefaults answers the parameters of a family.
func (s *Groups) engineDefaults(ctx context.Context, c front.Call, kind param.Kind, family string, in listing) (*rds.EngineDefaults, error) {
	if err := s.State.Fresh(ctx); err != nil {
		return nil, err
	}
	f, ok := param.ParseFamily(family)
	if !ok {
		return nil, wire.NewError(api.ErrInvalidParameterValue, "DBParameterGroupFamily %s is not a valid parameter group family. Use one of %s.", family, familyNames())
	}
	all, marker, err := parameters(s.Looks.Of(c.Account), defaultOf(c.Scope, kind, f), in)
	if err != nil {
		return nil, err
	}
	return &rds.EngineDefaults{DBParameterGroupFamily: wire.Some(family), Marker: marker, Parameters: wire.List(all)}, nil
}
