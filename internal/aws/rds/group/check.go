package group

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"howdah/api"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/hostapi"
	"howdah/internal/model/extension"
	"howdah/internal/model/member"
	"howdah/internal/model/param"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Settings has the PostgreSQL of a host judge a value. See hostapi.SettingChecker.
type Settings interface {
	Check(ctx context.Context, host, address string, in hostapi.SettingRequest) (why string, err error)
}

// check refuses a value that PostgreSQL would refuse: by what is known of it, and by asking
// PostgreSQL itself. What is known is enough for everything but texts.
func (e *edit) check(ctx context.Context, p param.Parameter, value string) error {
	if err := e.catalogue.Check(p, value, everyMachine()); err != nil {
		return invalidValue(err)
	}
	if !judged(p, value) {
		return nil
	}
	why, err := e.judge(ctx, p, value)
	if err == nil && why != "" {
		return wire.NewError(api.ErrInvalidParameterValue, "Invalid value %q for parameter %s: %s.", value, p.Name, why)
	}
	return err
}

// judged reports whether PostgreSQL can say something of a value without a server. Of parameters
// of libraries it cannot, but those do not keep it from starting.
func judged(p param.Parameter, value string) bool {
	return !param.IsFormula(value) && !strings.Contains(p.Name, ".") && !strings.HasSuffix(p.Name, "_preload_libraries") && p.Name != "apg_ccm_enabled"
}

// judge has PostgreSQL of the family's version judge a value: the one beside this server, or that
// of a host. It answers why PostgreSQL refuses the value, or "".
func (e *edit) judge(ctx context.Context, p param.Parameter, value string) (string, error) {
	install, err := postgres.Find(e.family.Major)
	switch {
	case err == nil:
		err = postgres.CheckSetting(ctx, install, p.Name, value)
		if errors.Is(err, postgres.ErrSetting) {
			return err.Error(), nil
		}
		return "", err
	case !errors.Is(err, postgres.ErrNoVersion):
		return "", err
	case p.Type != "string" || len(p.Enum) > 0:
		return "", nil
	}
	return e.judgeElsewhere(ctx, p, value)
}

// mostAsked bounds how many hosts are asked when some of them do not answer.
const mostAsked = 3

func (e *edit) judgeElsewhere(ctx context.Context, p param.Parameter, value string) (string, error) {
	asked := 0
	for _, h := range e.Hosts() {
		if !h.Alive || !slices.Contains(h.Majors, e.family.Major) || asked == mostAsked || e.settings == nil {
			continue
		}
		asked++
		why, err := e.settings.Check(ctx, h.Name, e.AgentAddress(h.Name), hostapi.SettingRequest{Major: e.family.Major, Name: p.Name, Value: value})
		if err == nil {
			return why, nil
		}
		e.log.Warn("check a parameter's value", "host", h.Name, "parameter", p.Name, "error", err)
	}
	return "", wire.NewError(api.ErrServiceUnavailable,
		"The value of the parameter %s cannot be checked now: no host with PostgreSQL %d answers. See `howdah status`, and try again.", p.Name, e.family.Major)
}

func invalidValue(err error) error {
	text := err.Error()
	return wire.NewError(api.ErrInvalidParameterValue, "%s.", strings.ToUpper(text[:1])+text[1:])
}

// everyMachine are the smallest and the largest storage of each class: a formula must give all of
// them a valid value.
func everyMachine() []param.Machine {
	var all []param.Machine
	for _, class := range spec.Classes() {
		for _, gib := range []int64{5, 65536} {
			all = append(all, param.Machine{Memory: class.Memory, Storage: gib << 30, CPUs: class.CPUs, Port: look.DefaultPort})
		}
	}
	return all
}

// bearable refuses a group if a PostgreSQL that gets its values would not start with them.
func (e *edit) bearable() error {
	before := e.Look
	e.Look = with(before, e.group)
	latest := map[string]string{}
	for name := range e.group.Values {
		if v := e.group.Values.Latest(name); v != nil {
			latest[name] = *v.Value
		}
	}
	if err := param.CheckTogether(latest); err != nil {
		return invalidValue(err)
	}
	for _, r := range e.Instances {
		if !r.Value.Deleting && e.concerns(*r.Value) {
			if err := fits(e.Look, *r.Value, libraries(before, *r.Value)); err != nil {
				return err
			}
		}
	}
	return nil
}

// with is the look with a group as it is about to be.
func with(l *look.Look, g spec.ParameterGroup) *look.Look {
	next := *l
	next.Groups = maps.Clone(l.Groups)
	next.Groups.Add(g)
	return &next
}

// concerns reports whether an instance gets values of the group: by itself, by its cluster, or by
// following one that does.
func (e *edit) concerns(i spec.Instance) bool {
	uses := func(c spec.Common, kind param.Kind) bool {
		return e.group.Kind == kind && c.Scope == e.group.Scope && c.ParameterGroup == e.group.Name
	}
	cluster, member := e.Cluster[i.Cluster]
	if uses(i.Common, param.Instance) || member && uses(cluster.Common, param.Cluster) {
		return true
	}
	if !i.Follows() {
		return false
	}
	source, ok := e.Instance[i.Source]
	return ok && e.concerns(*source) || uses(e.Cluster[i.Source].Common, param.Cluster)
}

// Fits refuses an instance if its PostgreSQL would not start with the settings that it has now, or
// with those that it has after a reboot.
func Fits(l *look.Look, i spec.Instance) error { return fits(l, i, libraries(l, i)) }

// fits does so where these libraries were wanted before the change.
func fits(l *look.Look, i spec.Instance, loaded []string) error {
	later := i
	Take(l, &later)
	return look.First(starts(l, i, loaded), starts(l, later, loaded))
}

// libraries are those that an instance loads, but for the platform's.
func libraries(l *look.Look, i spec.Instance) []string {
	settings, _ := settingsOf(l, i)
	return param.Added(settings)
}

func starts(l *look.Look, i spec.Instance, loaded []string) error {
	settings, memory := settingsOf(l, i)
	if err := param.CheckStart(settings, i.Major); err != nil {
		return invalidValue(fmt.Errorf("%w, for %s", err, i.Name))
	}
	if err := loads(l, i, settings, loaded); err != nil {
		return err
	}
	needed := param.SharedMemory(settings, i.Major)
	if limit := memory - memory/10; needed > limit {
		return wire.NewError(api.ErrInvalidParameterValue,
			"Invalid value for parameter %s: PostgreSQL of %s would ask for %d MiB of shared memory with it and not start; it has %d MiB in its class %s.",
			param.Heaviest(settings, i.Major), i.Name, int64(math.Ceil(float64(needed)/(1<<20))), memory>>20, i.Class)
	}
	return nil
}

// loads refuses an instance if a host of it lacks a library that its PostgreSQL would load. Of a
// host whose agent does not say, because it is of an older release, this is not known: there an
// instance gets no new library, and keeps those that are loaded.
func loads(l *look.Look, i spec.Instance, settings map[string]string, loaded []string) error {
	known := extension.Libraries()
	for m := range look.PlacesOf(i, l.FactsOf(i)) {
		host, err := state.View[member.Host](l.Cache, state.Host(m.Host))
		if err != nil {
			continue
		}
		has := host.Value.Extensions[i.Major]
		for _, name := range param.Added(settings) {
			switch {
			case has.Has(name) || !slices.Contains(known, name):
			case has == nil && slices.Contains(loaded, name):
			case has == nil:
				return wire.NewError(api.ErrInvalidParameterValue,
					"The agent of the host %s of %s does not say whether the library %s is installed there, because it is of an older release or cannot look. Upgrade it first.",
					m.Host, i.Name, name)
			default:
				return wire.NewError(api.ErrInvalidParameterValue,
					"The library %s is not installed on the host %s of %s: PostgreSQL would not start there. Install it with scripts/install --extensions %s, on every host.",
					name, m.Host, i.Name, name)
			}
		}
	}
	return nil
}

// settingsOf are the settings that an instance shall have in the end, and the memory that it has
// for them: its class's, or its host's where that is less.
func settingsOf(l *look.Look, i spec.Instance) (map[string]string, int64) {
	want, seat := Want(l, i)
	raise(l, &want, i)
	class, _ := spec.LookupClass(i.Class)
	memory := memoryFor(l, i, class.Memory)
	a := plan.Assign(want, plan.Layout{}, plan.Placed{Seat: seat.Key}, memory)
	all := maps.Clone(want.Parameters)
	maps.Copy(all, a.Parameters)
	return all, memory
}

// raise gives one that follows another what it needs at least, as reconcile does.
func raise(l *look.Look, want *plan.Database, i spec.Instance) {
	if !i.Follows() {
		return
	}
	if source, ok := l.Instance[i.Source]; ok {
		its, _ := Want(l, *source)
		raise(l, &its, *source)
		want.Raise(its)
	} else if c, ok := l.Cluster[i.Source]; ok {
		want.Raise(plan.ForCluster(c, l.InstancesOf(c.ResourceID), plan.Links{Groups: l.Groups}))
	}
}

// memoryFor is the memory of a class on the smallest host that an instance is on, or on the
// largest host there is for an instance that is nowhere yet.
func memoryFor(l *look.Look, i spec.Instance, class int64) int64 {
	var own, all []int64
	hosts := state.LoadAll[member.Host](l.Cache, state.HostRoot)
	members := slices.Collect(look.PlacesOf(i, l.FactsOf(i)))
	for _, h := range hosts {
		all = append(all, h.Value.Memory)
		if slices.ContainsFunc(members, func(m plan.Placed) bool { return m.Host == h.Value.Name }) {
			own = append(own, h.Value.Memory)
		}
	}
	switch {
	case len(own) > 0:
		return min(class, slices.Min(own))
	case len(all) > 0:
		return min(class, slices.Max(all))
	}
	return class
}
