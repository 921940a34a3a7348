// Package group is about parameter groups: their actions, and what databases do with them. A
// value is taken only if PostgreSQL would take it. No change of a group, and no change of a
// database, leaves a PostgreSQL that would not start with the values that it gets.
package group

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/extension"
	"howdah/internal/model/member"
	"howdah/internal/model/param"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Groups are the parameter groups of a home. All fields are required but Settings.
type Groups struct {
	State *state.Client
	Looks *look.Source
	// Settings may be nil: then nobody is asked but PostgreSQL beside the server.
	Settings Settings
	Log      *slog.Logger
}

// Actions are those on parameter groups.
func (s *Groups) Actions() map[string]front.Action {
	return map[string]front.Action{
		"CopyDBClusterParameterGroup":            front.On(s.copyDBClusterParameterGroup),
		"CopyDBParameterGroup":                   front.On(s.copyDBParameterGroup),
		"CreateDBClusterParameterGroup":          front.On(s.createDBClusterParameterGroup),
		"CreateDBParameterGroup":                 front.On(s.createDBParameterGroup),
		"DeleteDBClusterParameterGroup":          front.On(s.deleteDBClusterParameterGroup),
		"DeleteDBParameterGroup":                 front.On(s.deleteDBParameterGroup),
		"DescribeDBClusterParameterGroups":       front.On(s.describeDBClusterParameterGroups),
		"DescribeDBClusterParameters":            front.On(s.describeDBClusterParameters),
		"DescribeDBParameterGroups":              front.On(s.describeDBParameterGroups),
		"DescribeDBParameters":                   front.On(s.describeDBParameters),
		"DescribeEngineDefaultClusterParameters": front.On(s.describeEngineDefaultClusterParameters),
		"DescribeEngineDefaultParameters":        front.On(s.describeEngineDefaultParameters),
		"ModifyDBClusterParameterGroup":          front.On(s.modifyDBClusterParameterGroup),
		"ModifyDBParameterGroup":                 front.On(s.modifyDBParameterGroup),
		"ResetDBClusterParameterGroup":           front.On(s.resetDBClusterParameterGroup),
		"ResetDBParameterGroup":                  front.On(s.resetDBParameterGroup),
	}
}

// maxGroups is RDS's quota of parameter groups of each kind.
const maxGroups = 50

// word is what the API calls a kind of groups.
var word = map[param.Kind]string{param.Instance: "DBParameterGroup", param.Cluster: "DBClusterParameterGroup"}

func key(g spec.ParameterGroup) string {
	return state.ParameterGroup(string(g.Kind), g.Account, g.Region, g.Name)
}

func familyOf(c spec.Common) param.Family { return param.Family{Engine: c.Engine, Major: c.Major} }

// Default is the group of an engine's version that has no values of its own.
func Default(c spec.Common) string { return familyOf(c).DefaultGroup() }

// find finds a group of the caller's region by its name or ARN. A default group has revision 0.
func find(l *look.Look, scope spec.Scope, kind param.Kind, identifier string) (state.Record[spec.ParameterGroup], error) {
	in, name := look.Locate(scope, identifier, spec.GroupKind[kind])
	if f, ok := param.ParseDefault(name); ok && in == scope {
		return state.Record[spec.ParameterGroup]{Value: defaultOf(scope, kind, f)}, nil
	}
	record, err := state.Load[spec.ParameterGroup](l.Cache, state.ParameterGroup(string(kind), in.Account, in.Region, name))
	if err != nil || in != scope {
		return record, look.OrBlank(name, word[kind]+"Name", wire.NewError(rds.ErrDBParameterGroupNotFound, "%s not found: %s", word[kind], name))
	}
	return record, nil
}

func defaultOf(scope spec.Scope, kind param.Kind, f param.Family) spec.ParameterGroup {
	text := "Default parameter group for " + f.Name()
	if kind == param.Cluster {
		text = "Default cluster parameter group for " + f.Name()
	}
	return spec.ParameterGroup{Scope: scope, Kind: kind, Name: f.DefaultGroup(), Family: f.Name(), Description: text}
}

// Check refuses a database whose group does not exist, or is not of its family. noGroup is the
// code for one that does not exist. The name becomes what the group is stored as.
func Check(l *look.Look, c *spec.Common, noGroup string) error {
	c.ParameterGroup = strings.ToLower(c.ParameterGroup)
	kind := KindOf(noGroup)
	if strings.HasPrefix(c.ParameterGroup, "arn:") {
		return wire.NewError(noGroup, "%s not found: %s", word[kind], c.ParameterGroup)
	}
	g, err := find(l, c.Scope, kind, c.ParameterGroup)
	if c.ParameterGroup == "" {
		return front.Blank(word[kind] + "Name")
	}
	if err != nil {
		return wire.NewError(noGroup, "%s not found: %s", word[kind], c.ParameterGroup)
	}
	if wanted := familyOf(*c).Name(); g.Value.Family != wanted {
		return wire.NewError(api.ErrInvalidParameterCombination,
			"The parameter group %s with DBParameterGroupFamily %s can't be used for this resource. Use a parameter group with DBParameterGroupFamily %s.",
			c.ParameterGroup, g.Value.Family, wanted)
	}
	if g.Revision > 0 {
		l.Checked[g.Key] = state.Swap(g.Key, g.Revision, g.Value)
	}
	return nil
}

// KindOf is the kind of groups that the code for a missing one belongs to.
func KindOf(noGroup string) param.Kind {
	if noGroup == rds.ErrDBClusterParameterGroupNotFound {
		return param.Cluster
	}
	return param.Instance
}

// Use writes a group that gets one more user, as it was checked, so that it cannot be deleted
// in the same moment.
func Use(l *look.Look, kind param.Kind, c spec.Common) []state.Op {
	return l.Hold(state.ParameterGroup(string(kind), c.Account, c.Region, c.ParameterGroup))
}

// Taken is what a database that starts now takes over of its group.
func Taken(l *look.Look, kind param.Kind, c spec.Common) spec.Taken {
	g := l.Groups[plan.GroupKey{Kind: kind, Scope: c.Scope, Name: c.ParameterGroup}]
	return spec.Taken{Group: c.ParameterGroup, Serial: g.Serial}
}

// Take has an instance take its groups over, by a start or a reboot.
func Take(l *look.Look, i *spec.Instance) {
	i.Taken = Taken(l, param.Instance, i.Common)
	if c, ok := l.Cluster[i.Cluster]; ok {
		i.ClusterTaken = Taken(l, param.Cluster, c.Common)
	}
}

// users are the names of those who use a group, or still run with it.
func users(l *look.Look, g spec.ParameterGroup) []string {
	var names []string
	for _, r := range l.Instances {
		own := g.Kind == param.Instance && (r.Value.ParameterGroup == g.Name || r.Value.Taken.Group == g.Name)
		if r.Value.Scope == g.Scope && (own || g.Kind == param.Cluster && r.Value.ClusterTaken.Group == g.Name) {
			names = append(names, r.Value.Name)
		}
	}
	for _, r := range l.Clusters {
		if g.Kind == param.Cluster && r.Value.Scope == g.Scope && (r.Value.ParameterGroup == g.Name || r.Value.Taken.Group == g.Name) {
			names = append(names, r.Value.Name)
		}
	}
	return names
}

// catalogueOf is the catalogue of the newest installed minor version of a family.
func catalogueOf(l *look.Look, f param.Family) (param.Catalogue, error) {
	installed, _, err := l.ResolveVersion(f.Engine, strconv.Itoa(f.Major))
	if err != nil {
		return param.Catalogue{}, wire.NewError(api.ErrInvalidParameterCombination,
			"The parameters of the family %s are not known: PostgreSQL %d is installed on no host of this home.", f.Name(), f.Major)
	}
	if r, err := state.Load[param.Catalogue](l.Cache, state.Catalogue(installed)); err == nil {
		return withInstalled(l, r.Value, f.Major), nil
	}
	for _, r := range state.LoadAll[param.Catalogue](l.Cache, state.CatalogueRoot) {
		if strings.HasPrefix(r.Value.Version, strconv.Itoa(f.Major)+".") {
			return withInstalled(l, r.Value, f.Major), nil
		}
	}
	return param.Catalogue{}, wire.NewError(api.ErrServiceUnavailable,
		"The parameters of PostgreSQL %s have not been read yet: a host does so when its agent starts. Try again.", installed)
}

// withInstalled has the catalogue list what is installed on some host now, whatever was installed when the parameters of the
// version were read.
func withInstalled(l *look.Look, c param.Catalogue, major int) param.Catalogue {
	var extensions, libraries []string
	said := false
	for _, h := range state.ViewAll[member.Host](l.Cache, state.HostRoot) {
		has, says := h.Value.Extensions[major]
		said = said || says
		for name := range has {
			if e, known := extension.Find(name); known && e.Creatable() {
				extensions = append(extensions, name)
			}
			if slices.Contains(extension.Libraries(), name) {
				libraries = append(libraries, name)
			}
		}
	}
	if !said {
		return c
	}
	return c.With(sorted(extensions), sorted(libraries))
}

// sorted returns the names in order, each once.
func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// add makes a group out of a request, or of another group.
func (s *Groups) add(ctx context.Context, c front.Call, g spec.ParameterGroup, parameter string) (spec.ParameterGroup, error) {
	g.Scope, g.Created, g.Name = c.Scope, c.Now, strings.ToLower(strings.TrimSpace(g.Name))
	switch err := look.First(spec.CheckTags(g.Tags), checkNewName(parameter, g.Name)); {
	case err != nil:
		return g, err
	case strings.TrimSpace(g.Description) == "" || len(g.Description) > 255:
		return g, wire.NewError(api.ErrInvalidParameterValue, "The parameter Description must be provided, must not be blank, and has at most 255 characters.")
	}
	if _, ok := param.ParseFamily(g.Family); !ok {
		return g, wire.NewError(api.ErrInvalidParameterValue, "DBParameterGroupFamily %s is not a valid parameter group family. Use one of %s.", g.Family, familyNames())
	}
	return g, s.State.Retry(ctx, func() error {
		own := state.LoadAll[spec.ParameterGroup](s.State.Cache, state.ParameterGroup(string(g.Kind), g.Account, g.Region, ""))
		if slices.ContainsFunc(own, func(r state.Record[spec.ParameterGroup]) bool { return r.Value.Name == g.Name }) {
			return wire.NewError(rds.ErrDBParameterGroupAlreadyExists, "Parameter group %s already exists", g.Name)
		}
		if len(own) >= maxGroups {
			return wire.NewError(rds.ErrDBParameterGroupQuotaExceeded, "Cannot create more than %d %ss", maxGroups, word[g.Kind])
		}
		return s.State.Commit(ctx, state.Swap(key(g), 0, g))
	})
}

// copyOf makes a group with the family and the values of another one of its kind.
func (s *Groups) copyOf(ctx context.Context, c front.Call, source string, g spec.ParameterGroup, parameter string) (spec.ParameterGroup, error) {
	if err := s.State.Fresh(ctx); err != nil {
		return g, err
	}
	from, err := find(s.Looks.Of(c.Account), c.Scope, g.Kind, source)
	if err != nil {
		return g, err
	}
	g.Family, g.Values, g.Serial = from.Value.Family, from.Value.Values, from.Value.Serial
	return s.add(ctx, c, g, parameter)
}

func checkNewName(parameter, name string) error {
	if param.IsDefault(name) {
		return wire.NewError(api.ErrInvalidParameterValue, "The parameter %s cannot begin with default.: such groups are the service's own.", parameter)
	}
	return spec.CheckGroupName(parameter, name)
}

func familyNames() string {
	var names []string
	for _, f := range param.Families() {
		names = append(names, f.Name())
	}
	return strings.Join(names, ", ")
}

// remove deletes a group that nobody uses.
func (s *Groups) remove(ctx context.Context, c front.Call, kind param.Kind, name string) error {
	return s.State.Retry(ctx, func() error {
		l := s.Looks.Of(c.Account)
		g, err := find(l, c.Scope, kind, name)
		if err != nil {
			return err
		}
		if g.Revision == 0 {
			return wire.NewError(rds.ErrInvalidDBParameterGroupState, "Default %s cannot be deleted: %s", word[kind], g.Value.Name)
		}
		if users := users(l, g.Value); len(users) > 0 {
			return wire.NewError(rds.ErrInvalidDBParameterGroupState,
				"One or more database instances are still members of this parameter group %s, or run with it until they are rebooted, so the group cannot be deleted: %s",
				g.Value.Name, strings.Join(users, ", "))
		}
		return s.State.Commit(ctx, state.Remove(g.Key, g.Revision))
	})
}

// list are the groups of a scope, by name: those that users made, and the default groups of
// what is installed.
func list(l *look.Look, scope spec.Scope, kind param.Kind) []spec.ParameterGroup {
	var all []spec.ParameterGroup
	for _, f := range param.Families() {
		if _, _, err := l.ResolveVersion(f.Engine, strconv.Itoa(f.Major)); err == nil {
			all = append(all, defaultOf(scope, kind, f))
		}
	}
	for _, r := range state.LoadAll[spec.ParameterGroup](l.Cache, state.ParameterGroup(string(kind), scope.Account, scope.Region, "")) {
		all = append(all, r.Value)
	}
	slices.SortFunc(all, func(a, b spec.ParameterGroup) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// pageOf answers groups for Describe: one by name, or a page of all of them.
func (s *Groups) pageOf(ctx context.Context, c front.Call, kind param.Kind, name *string, in []rds.Filter, size *int32, marker *string) ([]spec.ParameterGroup, *string, error) {
	if err := s.State.Fresh(ctx); err != nil {
		return nil, nil, err
	}
	if _, err := look.ReadFilters(in); err != nil {
		return nil, nil, err
	}
	l := s.Looks.Of(c.Account)
	all := list(l, c.Scope, kind)
	if wire.Or(name, "") != "" {
		g, err := find(l, c.Scope, kind, *name)
		if err != nil {
			return nil, nil, err
		}
		all = []spec.ParameterGroup{g.Value}
	}
	return page.Of(all, func(g spec.ParameterGroup) string { return g.Name }, size, marker)
}

// Tagged is a parameter group with its tags. A default group has none, and gets none.
func Tagged(l *look.Look, scope spec.Scope, kind param.Kind, arn string) (look.Tagged, error) {
	r, err := find(l, scope, kind, arn)
	t := look.Tagged{Tags: r.Value.Tags, Put: func(tags []spec.Tag) state.Op {
		g := r.Value
		g.Tags = tags
		return state.Swap(r.Key, r.Revision, g)
	}}
	if err == nil && r.Revision == 0 {
		t.Gone = wire.NewError(rds.ErrInvalidDBParameterGroupState, "Default %s cannot have tags: %s", word[kind], r.Value.Name)
	}
	return t, err
}
