package server

import (
	"context"
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
	"howdah/internal/model/param"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// groupActions are those on parameter groups.
func (s *Server) groupActions() map[string]front.Action {
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

// groupWord is what the API calls a kind of groups.
var groupWord = map[param.Kind]string{param.Instance: "DBParameterGroup", param.Cluster: "DBClusterParameterGroup"}

func groupKey(g spec.ParameterGroup) string {
	return state.ParameterGroup(string(g.Kind), g.Account, g.Region, g.Name)
}

func familyOf(c spec.Common) param.Family { return param.Family{Engine: c.Engine, Major: c.Major} }

// defaultParameterGroup is the group of an engine's version that has no values of
// its own.
func defaultParameterGroup(c spec.Common) string { return familyOf(c).DefaultGroup() }

// findGroup finds a group of the caller's region by its name or ARN. A default group
// has revision 0.
func (l *sight) findGroup(scope spec.Scope, kind param.Kind, identifier string) (state.Record[spec.ParameterGroup], error) {
	in, name := look.Locate(scope, identifier, spec.GroupKind[kind])
	if f, ok := param.ParseDefault(name); ok && in == scope {
		return state.Record[spec.ParameterGroup]{Value: defaultGroup(scope, kind, f)}, nil
	}
	record, err := state.Load[spec.ParameterGroup](l.Cache, state.ParameterGroup(string(kind), in.Account, in.Region, name))
	if err != nil || in != scope {
		return record, look.OrBlank(name, groupWord[kind]+"Name", wire.NewError(rds.ErrDBParameterGroupNotFound, "%s not found: %s", groupWord[kind], name))
	}
	return record, nil
}

func defaultGroup(scope spec.Scope, kind param.Kind, f param.Family) spec.ParameterGroup {
	text := "Default parameter group for " + f.Name()
	if kind == param.Cluster {
		text = "Default cluster parameter group for " + f.Name()
	}
	return spec.ParameterGroup{Scope: scope, Kind: kind, Name: f.DefaultGroup(), Family: f.Name(), Description: text}
}

// checkGroup: the group exists, and is of the database's family. noGroup is the code
// for one that does not.
func (l *sight) checkGroup(c *spec.Common, noGroup string) error {
	c.ParameterGroup = strings.ToLower(c.ParameterGroup)
	kind := groupKindOf(noGroup)
	if strings.HasPrefix(c.ParameterGroup, "arn:") {
		return wire.NewError(noGroup, "%s not found: %s", groupWord[kind], c.ParameterGroup)
	}
	g, err := l.findGroup(c.Scope, kind, c.ParameterGroup)
	if c.ParameterGroup == "" {
		return front.Blank(groupWord[kind] + "Name")
	}
	if err != nil {
		return wire.NewError(noGroup, "%s not found: %s", groupWord[kind], c.ParameterGroup)
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

func groupKindOf(noGroup string) param.Kind {
	if noGroup == rds.ErrDBClusterParameterGroupNotFound {
		return param.Cluster
	}
	return param.Instance
}

// useGroup writes a group that gets one more user, as it was checked, so that it
// cannot be deleted in the same moment.
func (l *sight) useGroup(kind param.Kind, c spec.Common) []state.Op {
	return l.Hold(state.ParameterGroup(string(kind), c.Account, c.Region, c.ParameterGroup))
}

// takes is what a database that starts now takes over of its group.
func (l *sight) takes(kind param.Kind, c spec.Common) spec.Taken {
	g := l.Groups[plan.GroupKey{Kind: kind, Scope: c.Scope, Name: c.ParameterGroup}]
	return spec.Taken{Group: c.ParameterGroup, Serial: g.Serial}
}

// takeGroups: an instance takes its groups over, by a start or a reboot.
func (l *sight) takeGroups(i *spec.Instance) {
	i.Taken = l.takes(param.Instance, i.Common)
	if c, ok := l.Cluster[i.Cluster]; ok {
		i.ClusterTaken = l.takes(param.Cluster, c.Common)
	}
}

// groupUsers are the names of those who use a group, or still run with it.
func (l *sight) groupUsers(g spec.ParameterGroup) []string {
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

// catalogue is that of the newest installed minor version of a family.
func (l *sight) catalogue(f param.Family) (param.Catalogue, error) {
	installed, _, err := l.ResolveVersion(f.Engine, strconv.Itoa(f.Major))
	if err != nil {
		return param.Catalogue{}, wire.NewError(api.ErrInvalidParameterCombination,
			"The parameters of the family %s are not known: PostgreSQL %d is installed on no host of this home.", f.Name(), f.Major)
	}
	if r, err := state.Load[param.Catalogue](l.Cache, state.Catalogue(installed)); err == nil {
		return r.Value, nil
	}
	for _, r := range state.LoadAll[param.Catalogue](l.Cache, state.CatalogueRoot) {
		if strings.HasPrefix(r.Value.Version, strconv.Itoa(f.Major)+".") {
			return r.Value, nil
		}
	}
	return param.Catalogue{}, wire.NewError(api.ErrServiceUnavailable,
		"The parameters of PostgreSQL %s have not been read yet: a host does so when its agent starts. Try again.", installed)
}

// newGroup makes a group out of a request, or of another group.
func (s *Server) newGroup(ctx context.Context, c front.Call, g spec.ParameterGroup, parameter string) (spec.ParameterGroup, error) {
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
	return g, s.client.Retry(ctx, func() error {
		own := state.LoadAll[spec.ParameterGroup](s.Cache, state.ParameterGroup(string(g.Kind), g.Account, g.Region, ""))
		if slices.ContainsFunc(own, func(r state.Record[spec.ParameterGroup]) bool { return r.Value.Name == g.Name }) {
			return wire.NewError(rds.ErrDBParameterGroupAlreadyExists, "Parameter group %s already exists", g.Name)
		}
		if len(own) >= maxGroups {
			return wire.NewError(rds.ErrDBParameterGroupQuotaExceeded, "Cannot create more than %d %ss", maxGroups, groupWord[g.Kind])
		}
		return s.client.Commit(ctx, state.Swap(groupKey(g), 0, g))
	})
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

// deleteGroup deletes a group that nobody uses.
func (s *Server) deleteGroup(ctx context.Context, c front.Call, kind param.Kind, name string) error {
	return s.client.Retry(ctx, func() error {
		l := s.look(c.Account)
		g, err := l.findGroup(c.Scope, kind, name)
		if err != nil {
			return err
		}
		if g.Revision == 0 {
			return wire.NewError(rds.ErrInvalidDBParameterGroupState, "Default %s cannot be deleted: %s", groupWord[kind], g.Value.Name)
		}
		if users := l.groupUsers(g.Value); len(users) > 0 {
			return wire.NewError(rds.ErrInvalidDBParameterGroupState,
				"One or more database instances are still members of this parameter group %s, or run with it until they are rebooted, so the group cannot be deleted: %s",
				g.Value.Name, strings.Join(users, ", "))
		}
		return s.client.Commit(ctx, state.Remove(g.Key, g.Revision))
	})
}

// listGroups are the groups of a scope, by name: those that users made, and the
// default groups of what is installed.
func (l *sight) listGroups(scope spec.Scope, kind param.Kind) []spec.ParameterGroup {
	var all []spec.ParameterGroup
	for _, f := range param.Families() {
		if _, _, err := l.ResolveVersion(f.Engine, strconv.Itoa(f.Major)); err == nil {
			all = append(all, defaultGroup(scope, kind, f))
		}
	}
	for _, r := range state.LoadAll[spec.ParameterGroup](l.Cache, state.ParameterGroup(string(kind), scope.Account, scope.Region, "")) {
		all = append(all, r.Value)
	}
	slices.SortFunc(all, func(a, b spec.ParameterGroup) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// groupPage answers groups for Describe: one by name, or a page of all of them.
func (s *Server) groupPage(ctx context.Context, c front.Call, kind param.Kind, name *string, in []rds.Filter, size *int32, marker *string) ([]spec.ParameterGroup, *string, error) {
	if err := s.client.Fresh(ctx); err != nil {
		return nil, nil, err
	}
	if _, err := look.ReadFilters(in); err != nil {
		return nil, nil, err
	}
	l := s.look(c.Account)
	all := l.listGroups(c.Scope, kind)
	if wire.Or(name, "") != "" {
		g, err := l.findGroup(c.Scope, kind, *name)
		if err != nil {
			return nil, nil, err
		}
		all = []spec.ParameterGroup{g.Value}
	}
	return page.Of(all, func(g spec.ParameterGroup) string { return g.Name }, size, marker)
}

// taggedGroup is a parameter group with its tags; a default group has none, and gets
// none.
func (l *sight) taggedGroup(scope spec.Scope, kind param.Kind, arn string) (look.Tagged, error) {
	r, err := l.findGroup(scope, kind, arn)
	t := look.Tagged{Tags: r.Value.Tags, Put: func(tags []spec.Tag) state.Op {
		g := r.Value
		g.Tags = tags
		return state.Swap(r.Key, r.Revision, g)
	}}
	if err == nil && r.Revision == 0 {
		t.Gone = wire.NewError(rds.ErrInvalidDBParameterGroupState, "Default %s cannot have tags: %s", groupWord[kind], r.Value.Name)
	}
	return t, err
}
