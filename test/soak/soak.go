// Package soak runs sequences of package model on a real fleet: Howdah's own processes, Patroni and
// PostgreSQL, under writers and readers, while things break. After each round of steps everything
// that the model says must hold again, within a deadline. At the end nothing may be left of what
// was deleted.
package soak

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"howdah/internal/testkit/rig"
	"howdah/test/soak/model"
)

// Soak is a fleet on which a sequence is run.
type Soak struct {
	Rig     *rig.Rig
	Log     func(format string, args ...any)
	Figures *Figures
	// Upgrade is another build of the program. Without it an upgrade restarts the same build.
	Upgrade string
	// Keep is a directory for what the members of a database wrote that was away for long. Without
	// one that is lost with them.
	Keep string

	mu   sync.Mutex
	live map[int]*database // by serial; guarded by mu
	// ever are all databases that there were, also those that are gone: they may be restored.
	ever map[int]*database // by serial; guarded by mu
	// snapshots are those that were made, by name.
	snapshots map[string]span // guarded by mu
	begun     []string        // etcd's keys before the first step
	// addressed are the kernel's addresses before the first step.
	addressed []string
}

// Run does the rounds one after the other until they or the time are over. Then it deletes
// everything, and checks that nothing is left. The error says what did not hold, first in words
// that are the same each time.
func (s *Soak) Run(ctx context.Context, rounds []model.Round, until time.Time) (err error) {
	s.live, s.ever, s.snapshots = map[int]*database{}, map[int]*database{}, map[string]span{}
	defer s.endWriters()
	if s.begun, err = s.keys(ctx); err != nil {
		return err
	}
	if s.addressed, err = s.addresses(ctx); err != nil {
		return err
	}
	fleet := model.New(0)
	for _, round := range rounds {
		if time.Now().After(until) {
			break
		}
		if err := s.round(ctx, round); err != nil {
			return err
		}
		fleet = round.After
	}
	return s.end(ctx, fleet)
}

// slow is how long a round must take to be told of.
const slow = 20 * time.Second

func (s *Soak) round(ctx context.Context, round model.Round) error {
	began := time.Now()
	var text string
	for n, step := range round.Steps {
		step.Together = n > 0
		text += " " + step.String()
	}
	s.Log("%s", text[1:])
	if err := s.do(ctx, round); err != nil {
		return err
	}
	done := time.Since(began)
	defer func() {
		if all := time.Since(began); all > slow {
			s.Log("  the steps took %.1f s, and until all was well %.1f s", done.Seconds(), all.Seconds())
		}
	}()
	if err := s.settle(ctx, round.After); err != nil {
		return err
	}
	if err := s.nothingLost(ctx, round.After); err != nil {
		return err
	}
	s.Figures.round(ctx, s, round, began)
	return nil
}

// do does the steps of a round at once.
func (s *Soak) do(ctx context.Context, round model.Round) error {
	errs := make([]error, len(round.Steps))
	var all sync.WaitGroup
	for n, step := range round.Steps {
		all.Go(func() {
			if err := deeds[step.Verb](ctx, s, deed{step, round.Before, round.After}); err != nil {
				errs[n] = failed("a step does not end: "+step.Verb, fmt.Errorf("%s: %w", step.Do(), err))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// deed is a step with what it is done to.
type deed struct {
	model.Step
	before, after *model.Fleet
}

// database returns the database that a word names: as it was before the round, or as a step of the
// round makes it.
func (d deed) database(word int) model.Database {
	if m, ok := d.before.Databases[d.Word(word)]; ok {
		return m
	}
	return d.after.Databases[d.Word(word)]
}

// deeds has for each verb of the model how it is done.
var deeds = map[string]func(context.Context, *Soak, deed) error{}

func init() {
	for _, some := range []map[string]func(context.Context, *Soak, deed) error{setting, existence, backups, changes, restarts, faults} {
		for verb, do := range some {
			deeds[verb] = do
		}
	}
}

// end deletes everything.
func (s *Soak) end(ctx context.Context, fleet *model.Fleet) error {
	for _, name := range fleet.Names() {
		if fleet.Databases[name].Stopped {
			if err := s.round(ctx, single(fleet, model.Step{Verb: "start", Words: []string{name}}, &fleet)); err != nil {
				return err
			}
		}
	}
	for len(fleet.Databases) > 0 {
		name := fleet.Names()[0]
		if err := s.round(ctx, single(fleet, model.Step{Verb: "delete", Words: []string{name}}, &fleet)); err != nil {
			return err
		}
	}
	for verb, names := range map[string][]string{"delete-snapshot": slices.Sorted(maps.Keys(fleet.Snapshots)), "delete-retained": slices.Sorted(maps.Keys(fleet.Retained))} {
		for _, name := range names {
			if err := s.round(ctx, single(fleet, model.Step{Verb: verb, Words: []string{name}}, &fleet)); err != nil {
				return err
			}
		}
	}
	return s.nothingLeft(ctx)
}

// single returns a round of one step that the fleet certainly allows.
func single(before *model.Fleet, step model.Step, after **model.Fleet) model.Round {
	next := before.Clone()
	if err := model.Apply(next, step); err != nil {
		panic(err)
	}
	*after = next
	return model.Round{Steps: []model.Step{step}, Before: before, After: next}
}

// failure is what did not hold. To the code that shrinks, two failures of one kind are the same.
type failure struct {
	kind string
	err  error
}

func (f failure) Error() string { return f.kind + ": " + f.err.Error() }
func (f failure) Unwrap() error { return f.err }

func failed(kind string, err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[failure](err); ok {
		return f
	}
	return failure{kind, err}
}

// Kind returns the name of an error of Run, without figures and names.
func Kind(err error) string {
	if f, ok := errors.AsType[failure](err); ok {
		return f.kind
	}
	return "the soak itself fails"
}
