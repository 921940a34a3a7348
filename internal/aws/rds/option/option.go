// Package option is about option groups. PostgreSQL has no options: a group is kept, shown, and
// named by databases of its version.
package option

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// service has the handlers.
type service struct {
	*state.Client
	looks *look.Source
}

// Actions are those on option groups.
func Actions(client *state.Client, looks *look.Source) map[string]front.Action {
	s := &service{client, looks}
	return map[string]front.Action{
		"CopyOptionGroup":            front.On(s.copyOptionGroup),
		"CreateOptionGroup":          front.On(s.createOptionGroup),
		"DeleteOptionGroup":          front.On(s.deleteOptionGroup),
		"DescribeOptionGroupOptions": front.On(s.describeOptionGroupOptions),
		"DescribeOptionGroups":       front.On(s.describeOptionGroups),
		"ModifyOptionGroup":          front.On(s.modifyOptionGroup),
	}
}

func key(g spec.OptionGroup) string { return state.OptionGroup(g.Account, g.Region, g.Name) }

// defaults are those of the versions that are installed, by name.
func defaults(s *look.Source, scope spec.Scope) []spec.OptionGroup {
	var all []spec.OptionGroup
	for _, engine := range []string{spec.Aurora, spec.Postgres} {
		for _, major := range slices.Sorted(maps.Keys(s.Installed())) {
			text := strconv.Itoa(major)
			all = append(all, spec.OptionGroup{
				Scope: scope, Name: "default:" + engine + "-" + text, Engine: engine, Major: text, Description: "Default option group for " + engine + " " + text,
			})
		}
	}
	return all
}

// isDefault reports whether a name, or an ARN, is that of a default group that exists.
func isDefault(s *look.Source, scope spec.Scope, identifier string) (spec.OptionGroup, bool) {
	name := strings.ToLower(strings.TrimSpace(identifier))
	for _, g := range defaults(s, scope) {
		if g.Name == name || g.ARN("og", g.Name) == name {
			return g, true
		}
	}
	return spec.OptionGroup{}, false
}

// Check refuses a group that does not exist, or that is for another version than a database's.
// Its name becomes what it is stored as.
func Check(l *look.Look, name *string, c spec.Common) error {
	*name = strings.ToLower(strings.TrimSpace(*name))
	if *name == look.DefaultOptionGroup(c) {
		return nil
	}
	g, is := isDefault(l.Source, c.Scope, *name)
	if !is {
		r, err := l.FindOptionGroup(c.Scope, *name)
		if err != nil {
			return err
		}
		g = r.Value
		r.Value.Generation++
		l.Checked[r.Key] = state.Swap(r.Key, r.Revision, r.Value)
	}
	if g.Engine != c.Engine || g.Major != strconv.Itoa(c.Major) {
		return wire.NewError(api.ErrInvalidParameterCombination,
			"The option group %s is for %s %s, and cannot be used with %s %d.", g.Name, g.Engine, g.Major, c.Engine, c.Major)
	}
	*name = g.Name
	return nil
}

// createOptionGroup keeps a group for a version that is installed.
func (s *service) createOptionGroup(ctx context.Context, c front.Call, in *rds.CreateOptionGroupMessage) (*rds.CreateOptionGroupResult, error) {
	g := spec.OptionGroup{
		Name: wire.Lower(in.OptionGroupName), Description: wire.Or(in.OptionGroupDescription, ""), Engine: wire.Or(in.EngineName, ""), Major: wire.Or(in.MajorEngineVersion, ""), Tags: look.TagsIn(in.Tags),
	}
	offers, err := s.looks.Offers(&g.Engine)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(offers, func(o look.Offer) bool { return strconv.Itoa(o.Major) == g.Major }) {
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "Cannot find major version %s for %s: see MajorEngineVersion of DescribeDBMajorEngineVersions", g.Major, g.Engine)
	}
	g, err = s.add(ctx, c, "OptionGroupName", g)
	if err != nil {
		return nil, err
	}
	return &rds.CreateOptionGroupResult{OptionGroup: groupOut(g)}, nil
}

func (s *service) add(ctx context.Context, c front.Call, what string, g spec.OptionGroup) (spec.OptionGroup, error) {
	g.Scope, g.Created, g.Generation = c.Scope, c.Now, 1
	if err := look.First(spec.CheckOptionGroup(what, g.Name, g.Description), spec.CheckTags(g.Tags)); err != nil {
		return g, err
	}
	return g, s.Retry(ctx, func() error {
		own := s.looks.OptionGroups(c.Scope)
		switch {
		case slices.ContainsFunc(own, func(r state.Record[spec.OptionGroup]) bool { return r.Value.Name == g.Name }):
			return wire.NewError(rds.ErrOptionGroupAlreadyExists, "An option group named %s already exists.", g.Name)
		case len(own) >= look.MaxOptionGroups:
			return wire.NewError(rds.ErrOptionGroupQuotaExceeded, "The account has %d option groups already.", look.MaxOptionGroups)
		}
		return s.Commit(ctx, state.Swap(key(g), 0, g))
	})
}

// copyOptionGroup makes a group like one that a user made.
func (s *service) copyOptionGroup(ctx context.Context, c front.Call, in *rds.CopyOptionGroupMessage) (*rds.CopyOptionGroupResult, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	if g, is := isDefault(s.looks, c.Scope, wire.Or(in.SourceOptionGroupIdentifier, "")); is {
		return nil, wire.NewError(api.ErrInvalidParameterValue, "The default option group %s cannot be copied.", g.Name)
	}
	from, err := s.looks.FindOptionGroup(c.Scope, wire.Or(in.SourceOptionGroupIdentifier, ""))
	if err != nil {
		return nil, err
	}
	g := from.Value
	g.Name, g.Description, g.Tags, g.Source = wire.Lower(in.TargetOptionGroupIdentifier), wire.Or(in.TargetOptionGroupDescription, ""), look.TagsIn(in.Tags), from.Value.Name
	g, err = s.add(ctx, c, "TargetOptionGroupIdentifier", g)
	if err != nil {
		return nil, err
	}
	return &rds.CopyOptionGroupResult{OptionGroup: groupOut(g)}, nil
}

// modifyOptionGroup has nothing to add or remove: PostgreSQL has no options.
func (s *service) modifyOptionGroup(ctx context.Context, c front.Call, in *rds.ModifyOptionGroupMessage) (*rds.ModifyOptionGroupResult, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	if g, is := isDefault(s.looks, c.Scope, wire.Or(in.OptionGroupName, "")); is {
		return nil, wire.NewError(rds.ErrInvalidOptionGroupState, "The default option group %s cannot be changed.", g.Name)
	}
	r, err := s.looks.FindOptionGroup(c.Scope, wire.Or(in.OptionGroupName, ""))
	if err != nil {
		return nil, err
	}
	names := slices.Clone(in.OptionsToRemove)
	for _, o := range in.OptionsToInclude {
		names = append(names, wire.Or(o.OptionName, ""))
	}
	if len(names) > 0 {
		return nil, wire.NewError(api.ErrInvalidParameterValue, "Invalid option %s in OptionsToInclude or OptionsToRemove: PostgreSQL has no options. Extensions are made with CREATE EXTENSION.", names[0])
	}
	return &rds.ModifyOptionGroupResult{OptionGroup: groupOut(r.Value)}, nil
}

// deleteOptionGroup deletes a group that no database uses.
func (s *service) deleteOptionGroup(ctx context.Context, c front.Call, in *rds.DeleteOptionGroupMessage) (*front.Void, error) {
	return nil, s.Retry(ctx, func() error {
		if g, is := isDefault(s.looks, c.Scope, wire.Or(in.OptionGroupName, "")); is {
			return wire.NewError(rds.ErrInvalidOptionGroupState, "The default option group %s cannot be deleted.", g.Name)
		}
		r, err := s.looks.FindOptionGroup(c.Scope, wire.Or(in.OptionGroupName, ""))
		if err != nil {
			return err
		}
		name := r.Value.Name
		if who := s.looks.Of(c.Account).WhoHas(c.Scope, func(_ spec.Common, group string) bool { return group == name }); who != "" {
			return wire.NewError(rds.ErrInvalidOptionGroupState, "The option group '%s' cannot be deleted because it is in use by %s.", name, who)
		}
		return s.Commit(ctx, state.Remove(r.Key, r.Revision))
	})
}

// describeOptionGroups lists the default groups and those that users made.
func (s *service) describeOptionGroups(ctx context.Context, c front.Call, in *rds.DescribeOptionGroupsMessage) (*rds.OptionGroups, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	if _, err := look.ReadFilters(in.Filters); err != nil {
		return nil, err
	}
	all, err := s.matching(c.Scope, in)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b spec.OptionGroup) int { return strings.Compare(a.Name, b.Name) })
	chosen, marker, err := page.Of(all, func(g spec.OptionGroup) string { return g.Name }, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.OptionGroups{OptionGroupsList: []rds.OptionGroup{}, Marker: marker}
	for _, g := range chosen {
		out.OptionGroupsList = append(out.OptionGroupsList, *groupOut(g))
	}
	return out, nil
}

func (s *service) matching(scope spec.Scope, in *rds.DescribeOptionGroupsMessage) ([]spec.OptionGroup, error) {
	switch {
	case in.OptionGroupName != nil && (in.EngineName != nil || in.MajorEngineVersion != nil):
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "OptionGroupName cannot be given together with EngineName or MajorEngineVersion.")
	case in.MajorEngineVersion != nil && in.EngineName == nil:
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "MajorEngineVersion can only be given together with EngineName.")
	case in.OptionGroupName != nil:
		if g, is := isDefault(s.looks, scope, *in.OptionGroupName); is {
			return []spec.OptionGroup{g}, nil
		}
		r, err := s.looks.FindOptionGroup(scope, *in.OptionGroupName)
		return []spec.OptionGroup{r.Value}, err
	}
	all := defaults(s.looks, scope)
	for _, r := range s.looks.OptionGroups(scope) {
		all = append(all, r.Value)
	}
	return slices.DeleteFunc(all, func(g spec.OptionGroup) bool {
		return g.Engine != wire.Or(in.EngineName, g.Engine) || g.Major != wire.Or(in.MajorEngineVersion, g.Major)
	}), nil
}

func groupOut(g spec.OptionGroup) *rds.OptionGroup {
	out := &rds.OptionGroup{
		OptionGroupName: wire.Some(g.Name), OptionGroupDescription: wire.Some(g.Description), EngineName: wire.Some(g.Engine), MajorEngineVersion: wire.Some(g.Major),
		Options: []rds.Option{}, AllowsVpcAndNonVpcInstanceMemberships: wire.Some(true), OptionGroupArn: wire.Some(g.ARN("og", g.Name)),
	}
	if g.Source != "" {
		out.SourceOptionGroup, out.SourceAccountId, out.CopyTimestamp = wire.Some(g.ARN("og", g.Source)), wire.Some(g.Account), wire.Moment(g.Created)
	}
	return out
}

// describeOptionGroupOptions lists none: PostgreSQL has none.
func (s *service) describeOptionGroupOptions(_ context.Context, _ front.Call, in *rds.DescribeOptionGroupOptionsMessage) (*rds.OptionGroupOptionsMessage, error) {
	if _, err := look.ReadFilters(in.Filters); err != nil {
		return nil, err
	}
	if _, err := s.looks.Offers(in.EngineName); err != nil {
		return nil, err
	}
	none, marker, err := page.Of([]rds.OptionGroupOption{}, func(rds.OptionGroupOption) string { return "" }, in.MaxRecords, in.Marker)
	return &rds.OptionGroupOptionsMessage{OptionGroupOptions: none, Marker: marker}, err
}

// Tagged is an option group with its tags.
func Tagged(l *look.Look, scope spec.Scope, name string) (look.Tagged, error) {
	r, err := l.FindOptionGroup(scope, name)
	return look.Tagged{Tags: r.Value.Tags, Put: func(tags []spec.Tag) state.Op {
		g := r.Value
		g.Tags = tags
		g.Generation++
		return state.Swap(r.Key, r.Revision, g)
	}}, err
}
