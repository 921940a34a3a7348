package script

import (
	"context"
	"errors"
	"fmt"
	"time"

	"howdah/internal/testkit/patience"
)

// callTimeout bounds one call.
const callTimeout = 30 * time.Second

// Client calls an action as a program or a library does. Its answer is what encoding/json makes of
// the answer's JSON. An error of the API is a *Refusal.
type Client interface {
	Call(ctx context.Context, service, action string, with map[string]any) (any, error)
}

// Refusal is an error that the API answered.
type Refusal struct{ Code, Message string }

func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

// Walk is a walk of a client through the script.
type Walk struct {
	Name   string // of the client, as lacks knows it
	Client Client
	Given  Variables // that the client has from the start
	// Late has variables that come by another way. They are asked for when they are first used.
	Late  map[string]func(context.Context) (any, error)
	Pause time.Duration // between two tries of a step
	Log   func(format string, args ...any)
}

// Run takes the steps one by one, without those that the client cannot take. It ends at the first
// one that fails.
func (w Walk) Run(ctx context.Context, steps []Step) error {
	began := time.Now()
	values := Variables{}
	for name, value := range w.Given {
		values[name] = value
	}
	for n, s := range steps {
		if Lacks(w.Name, s.Call) != "" {
			continue
		}
		if err := w.supply(ctx, s, values); err != nil {
			return fmt.Errorf("step %d, %s: %w", n+1, s.Sentence, err)
		}
		if err := w.take(ctx, s, values); err != nil {
			return fmt.Errorf("step %d, %s: %s: %w", n+1, s.Sentence, s.Call, err)
		}
		w.Log("%7.1f  %s", time.Since(began).Seconds(), s.Sentence)
	}
	return nil
}

// supply gets the late variables that a step uses.
func (w Walk) supply(ctx context.Context, s Step, values Variables) error {
	for _, found := range reference.FindAllStringSubmatch(textOf(s.With), -1) {
		get, late := w.Late[found[1]]
		if _, known := values[found[1]]; known || !late {
			continue
		}
		value, err := get(ctx)
		if err != nil {
			return fmt.Errorf("wait for the variable %s: %w", found[1], err)
		}
		values[found[1]] = value
	}
	return nil
}

// take tries a step until it has what it wants, or its time is over.
func (w Walk) take(ctx context.Context, s Step, values Variables) error {
	deadline := time.Now().Add(patience.For(time.Duration(s.Within) * time.Second))
	for {
		err := w.try(ctx, s, values)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(w.Pause):
		}
	}
}

func (w Walk) try(ctx context.Context, s Step, values Variables) error {
	ctx, cancel := context.WithTimeout(ctx, patience.For(callTimeout))
	defer cancel()
	with, err := values.fill(s.With)
	if err != nil {
		return err
	}
	service, action := s.Split()
	got, err := w.Client.Call(ctx, service, action, with.(map[string]any))
	var refusal *Refusal
	switch {
	case s.Fails == "" && (err != nil || s.Want == nil):
		return err
	case s.Fails == "":
		return values.match(s.Want, got)
	case err == nil:
		return fmt.Errorf("it succeeds instead of answering %s: %s", s.Fails, short(got))
	case !errors.As(err, &refusal) || refusal.Code != s.Fails:
		return fmt.Errorf("instead of %s: %w", s.Fails, err)
	}
	return nil
}
