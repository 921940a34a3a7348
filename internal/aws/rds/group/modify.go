package group

import (
	"context"
	"log/slog"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/event"
	"howdah/internal/model/param"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

const (
	// maxChanges is how many parameters one request may change, as on RDS.
	maxChanges    = 20
	immediate     = "immediate"
	pendingReboot = "pending-reboot"
)

// change changes the values of a group, and answers its name.
func (s *Groups) change(ctx context.Context, c front.Call, kind param.Kind, name *string, change func(*edit) error) (*string, error) {
	var changed string
	return &changed, s.State.Retry(ctx, func() error {
		l := s.Looks.Of(c.Account)
		g, err := find(l, c.Scope, kind, wire.Or(name, ""))
		if err != nil {
			return err
		}
		changed = g.Value.Name
		if g.Revision == 0 {
			return wire.NewError(api.ErrInvalidParameterValue, "Default %s cannot be modified: %s. Create a parameter group of your own, and use that.", word[kind], changed)
		}
		family, _ := param.ParseFamily(g.Value.Family)
		catalogue, err := catalogueOf(l, family)
		if err != nil {
			return err
		}
		e := &edit{Look: l, Call: c, settings: s.Settings, log: s.Log, group: g.Value, family: family, catalogue: catalogue}
		e.group.Serial++
		if err := change(e); err != nil {
			return err
		}
		if err := e.bearable(); err != nil {
			return err
		}
		events, err := e.events()
		if err != nil {
			return err
		}
		return s.State.Commit(ctx, append(events, state.Swap(g.Key, g.Revision, e.group))...)
	})
}

// edit is a change of a group in the making.
type edit struct {
	*look.Look
	front.Call
	settings  Settings
	log       *slog.Logger
	group     spec.ParameterGroup
	family    param.Family
	catalogue param.Catalogue
	told      [][3]string // name, value, method
}

// parameter finds what a request wants to change, and whether it may.
func (e *edit) parameter(in rds.Parameter, seen map[string]bool) (param.Parameter, string, error) {
	name := wire.Or(in.ParameterName, "")
	if name == "" {
		return param.Parameter{}, "", wire.NewError(api.ErrMissingParameter, "The parameter ParameterName must be provided for each of Parameters.")
	}
	p, ok := e.catalogue.Find(e.family, name)
	if !ok {
		return p, "", wire.NewError(api.ErrInvalidParameterValue, "Invalid parameter name: %s. The family %s has no such parameter.", name, e.family.Name())
	}
	if seen[p.Name] {
		return p, "", wire.NewError(api.ErrInvalidParameterValue, "The parameter %s is given more than once.", p.Name)
	}
	seen[p.Name] = true
	if why := param.Owned(p, e.family, e.group.Kind); why != "" {
		return p, "", wire.NewError(api.ErrInvalidParameterValue, "The parameter %s cannot be modified: %s.", p.Name, why)
	}
	method := wire.Or(in.ApplyMethod, "")
	switch {
	case method == "":
		return p, "", wire.NewError(api.ErrMissingParameter, "The parameter ApplyMethod must be provided for %s: %s or %s.", p.Name, immediate, pendingReboot)
	case p.Static() && method == immediate:
		return p, "", wire.NewError(api.ErrInvalidParameterCombination, "cannot use immediate apply method for static parameter: %s", p.Name)
	}
	return p, method, nil
}

func checkCount(in []rds.Parameter) error {
	switch {
	case len(in) == 0:
		return wire.NewError(api.ErrMissingParameter, "The parameter Parameters must hold at least one parameter.")
	case len(in) > maxChanges:
		return wire.NewError(api.ErrInvalidParameterValue, "At most %d parameters can be changed in one request, not %d.", maxChanges, len(in))
	}
	return nil
}

// checkReset refuses a request for all parameters that names some, too, and one for neither.
func checkReset(all bool, in []rds.Parameter) error {
	if all && len(in) > 0 {
		return wire.NewError(api.ErrInvalidParameterCombination, "ResetAllParameters and Parameters cannot both be given.")
	}
	if all {
		return nil
	}
	return checkCount(in)
}

// modify sets values of a group, and answers its name.
func (s *Groups) modify(ctx context.Context, c front.Call, kind param.Kind, name *string, in []rds.Parameter) (*string, error) {
	if err := checkCount(in); err != nil {
		return nil, err
	}
	return s.change(ctx, c, kind, name, func(e *edit) error { return e.modify(ctx, in) })
}

// reset sets some values of a group, or all, back to their defaults, and answers its name.
func (s *Groups) reset(ctx context.Context, c front.Call, kind param.Kind, name *string, all *bool, in []rds.Parameter) (*string, error) {
	if err := checkReset(wire.Or(all, false), in); err != nil {
		return nil, err
	}
	return s.change(ctx, c, kind, name, func(e *edit) error { return e.reset(in, wire.Or(all, false)) })
}

// modify sets values.
func (e *edit) modify(ctx context.Context, in []rds.Parameter) error {
	seen := map[string]bool{}
	for _, each := range in {
		p, method, err := e.parameter(each, seen)
		if err != nil {
			return err
		}
		if each.ParameterValue == nil {
			return wire.NewError(api.ErrMissingParameter, "The parameter ParameterValue must be provided for %s.", p.Name)
		}
		value := strings.TrimSpace(*each.ParameterValue)
		if err := e.check(ctx, p, value); err != nil {
			return err
		}
		e.set(p, &value, method)
	}
	return nil
}

func (e *edit) set(p param.Parameter, value *string, method string) {
	e.group.Values = e.group.Values.Set(p.Name, param.Version{
		Serial: e.group.Serial, Value: value, Waits: method == pendingReboot, Static: p.Static(),
	})
	e.told = append(e.told, [3]string{p.Name, wire.Or(value, p.Default), method})
}

// reset sets some parameters, or all, back to their defaults.
func (e *edit) reset(in []rds.Parameter, all bool) error {
	seen := map[string]bool{}
	for _, each := range in {
		p, method, err := e.parameter(each, seen)
		if err != nil {
			return err
		}
		if e.group.Values.Latest(p.Name) != nil {
			e.set(p, nil, method)
		}
	}
	if !all {
		return nil
	}
	for _, p := range e.catalogue.All(e.family) {
		if e.group.Values.Latest(p.Name) == nil {
			continue
		}
		method := immediate
		if p.Static() {
			method = pendingReboot
		}
		e.set(p, nil, method)
	}
	return nil
}

// events tell of each value that changed.
func (e *edit) events() ([]state.Op, error) {
	var ops []state.Op
	for _, t := range e.told {
		made, err := event.Make(event.Source{Scope: e.group.Scope, Type: event.ParameterGroup, Name: e.group.Name}, "0037", e.Now, t[0], t[1], t[2])
		if err != nil {
			return nil, err
		}
		made.ARN = e.group.ARN() // which says the kind
		ops = append(ops, state.Put(state.Event(e.group.Account, e.group.Region, made.Key(e.group.Name+"-"+t[0])), made))
	}
	return ops, nil
}
