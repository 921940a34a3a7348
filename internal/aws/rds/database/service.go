package database

import (
	"context"

	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/state"
)

// Service does what the actions on one kind of records have alike: it makes and changes records,
// and answers them as O, which is how the API shows them. All fields are required.
type Service[T, O any] struct {
	*Source
	Kind *Kind[T]
	Show func(*Sight, T) *O
}

// Create writes the record that begin answers, with all that comes along, again while others are
// quicker.
func (s *Service[T, O]) Create(ctx context.Context, c front.Call, begin func(*Sight) (T, []state.Op, error)) (*O, error) {
	var made T
	return s.answer(ctx, c, &made, func(l *Sight) error {
		v, ops, err := begin(l)
		if err != nil {
			return err
		}
		made = v
		return s.State.Commit(ctx, append(ops, state.Swap(s.Kind.Key(v), 0, v))...)
	})
}

// Change alters the record of that identifier, and with it what change answers, again while
// others are quicker.
func (s *Service[T, O]) Change(ctx context.Context, c front.Call, identifier *string, change func(*Sight, *T) ([]state.Op, error)) (*O, error) {
	return s.alter(ctx, c, identifier, func(l *Sight, r state.Record[T], changed *T) error {
		ops, err := change(l, changed)
		if err != nil {
			return err
		}
		s.Kind.Common(changed).Generation++
		return s.State.Commit(ctx, append(ops, state.Swap(r.Key, r.Revision, *changed))...)
	})
}

// Modify is Change by a modification.
func (s *Service[T, O]) Modify(ctx context.Context, c front.Call, identifier *string, modify func(*Modification, *T) error) (*O, error) {
	return s.alter(ctx, c, identifier, func(l *Sight, r state.Record[T], changed *T) error {
		m := s.Kind.Begin(l, c)
		if err := modify(m, changed); err != nil {
			return err
		}
		return s.Kind.write(ctx, m, r, *changed)
	})
}

// alter finds the record of that identifier, has a copy of it changed and written, and shows the
// copy.
func (s *Service[T, O]) alter(ctx context.Context, c front.Call, identifier *string, write func(l *Sight, r state.Record[T], changed *T) error) (*O, error) {
	var changed T
	return s.answer(ctx, c, &changed, func(l *Sight) error {
		r, err := s.Kind.Find(l.Look, c.Scope, wire.Or(identifier, ""))
		if err != nil {
			return err
		}
		changed = r.Value
		return write(l, r, &changed)
	})
}

// answer does something to a record, and shows what became of it.
func (s *Service[T, O]) answer(ctx context.Context, c front.Call, v *T, do func(*Sight) error) (*O, error) {
	if err := s.State.Retry(ctx, func() error { return do(s.Of(c.Account)) }); err != nil {
		return nil, err
	}
	return s.Show(s.Of(c.Account), *v), nil
}
