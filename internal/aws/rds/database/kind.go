package database

import (
	"context"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/identity/secret"
	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Kind is what instances and clusters differ in where a record is found, changed and written. The
// packages of both have theirs.
type Kind[T any] struct {
	Type event.SourceType
	Find func(l *look.Look, scope spec.Scope, identifier string) (state.Record[T], error)
	// Key is where a record belongs, by its name.
	Key    func(T) string
	Common func(*T) *spec.Common
	Status func(*look.Look, T) string
	// May answers an error where a deed to an available database cannot be done now.
	May func(*look.Look, operation.Deed, T) error
	// Values are those of a record that others may wait to replace.
	Values func(T) spec.Values
	// Possible refuses values for which there is no room, and a name that is taken.
	Possible func(*Modification, T, spec.Values) error
	// CarryOut changes a record to values, all of which differ from its own.
	CarryOut func(*Modification, *T, spec.Values) error
	// Finish counts a modification.
	Finish func(*Modification, *T)
}

// Begin is a modification in which nothing was asked for yet.
func (k *Kind[T]) Begin(l *Sight, c front.Call) *Modification {
	return &Modification{Sight: l, Call: c, Kind: k.Type}
}

// Take has values take effect now, or wait for the window.
func (k *Kind[T]) Take(m *Modification, v *T, wanted spec.Values, now bool) error {
	c := k.Common(v)
	values := differing(merge(c.Pending, wanted), k.Values(*v))
	if err := k.Possible(m, *v, values); err != nil {
		return err
	}
	var err error
	if now {
		c.Pending = nil
		err = k.CarryOut(m, v, values)
	} else {
		c.Pending = OrNil(values)
	}
	k.Finish(m, v)
	return err
}

// ApplyWaiting carries out what waits for the window, once the database is usable.
func (k *Kind[T]) ApplyWaiting(ctx context.Context, l *Sight, c front.Call, r state.Record[T]) error {
	if !k.usable(l, r.Value) {
		return nil
	}
	m, v := k.Begin(l, c), r.Value
	common := k.Common(&v)
	values := differing(*common.Pending, k.Values(v))
	if err := k.Possible(m, v, values); err != nil {
		return err
	}
	common.Pending = nil
	return k.Apply(ctx, m, r, v, values)
}

// Apply carries values out on a record, and writes it.
func (k *Kind[T]) Apply(ctx context.Context, m *Modification, r state.Record[T], v T, values spec.Values) error {
	if err := k.CarryOut(m, &v, values); err != nil {
		return err
	}
	k.Finish(m, &v)
	return k.write(ctx, m, r, v)
}

// write commits a record, under its new name if it has one, with everything that the modification
// brings along.
func (k *Kind[T]) write(ctx context.Context, m *Modification, r state.Record[T], v T) error {
	ops := []state.Op{state.Swap(r.Key, r.Revision, v)}
	if key := k.Key(v); key != r.Key {
		ops = []state.Op{state.Remove(r.Key, r.Revision), state.Swap(key, 0, v)}
	}
	if m.Owner != nil {
		ops = append(ops, state.Swap(m.Owner.Key, m.Owner.Revision, m.Owner.Value))
	}
	events, err := look.Tell(m.Call, m.Kind, *k.Common(&v), m.Began...)
	if err != nil {
		return err
	}
	return m.State.Commit(ctx, append(append(ops, m.Ops...), events...)...)
}

// Rotate has a database take another password. The verifier and the secret change in one
// transaction: whatever ends in the middle, the password that goes with each of them is known.
func (k *Kind[T]) Rotate(ctx context.Context, s *Source, c front.Call, of Managed, asked Master) (secret.Secret, error) {
	l := s.Of(of.Account)
	r, err := k.Find(l.Look, of.Common.Scope, of.Common.Name)
	if err != nil {
		return secret.Secret{}, err
	}
	if !k.usable(l, r.Value) {
		return secret.Secret{}, ErrNotUsable
	}
	m, v := k.Begin(l, c), r.Value
	if err := m.Master(k.Common(&v), asked); err != nil {
		return secret.Secret{}, err
	}
	k.Finish(m, &v)
	return m.Rotated, k.write(ctx, m, r, v)
}

// usable reports whether the database can be changed now: no operation excludes it either.
func (k *Kind[T]) usable(l *Sight, v T) bool { return k.May(l.Look, operation.Change, v) == nil }

// Tagged is a record, by its ARN, with its tags; gone is why those of one that is being deleted
// cannot be changed.
func (k *Kind[T]) Tagged(l *look.Look, scope spec.Scope, arn string, gone func(T) error) (look.Tagged, error) {
	r, err := k.Find(l, scope, arn)
	t := look.Tagged{Tags: k.Common(&r.Value).Tags, Put: func(tags []spec.Tag) state.Op {
		v := r.Value
		c := k.Common(&v)
		c.Tags = tags
		c.Generation++
		return state.Swap(r.Key, r.Revision, v)
	}}
	if err == nil && k.Common(&r.Value).Going() {
		t.Gone = gone(r.Value)
	}
	return t, err
}
