package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/result"
	"howdah/internal/observe/environment"
	"howdah/internal/observe/machine"
)

// ErrServer says that another server answers where the one was that a result is of.
var ErrServer = errors.New("another server answers at this address than the one that the result is of: choose another directory")

// kindHowdah is a target that makes its servers itself, and makes others when they are gone.
const kindHowdah = "howdah"

// sameServer refuses to go on with another server behind one address, before anything is written there.
func (d *doing) sameServer(ctx context.Context, r *result.Result) error {
	if r.Environment == nil || r.Environment.Database.SystemID == "" || r.Target.Kind == kindHowdah {
		return nil // nobody knows which one it was, or it need not be that one
	}
	conn, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var id string
	if err := conn.QueryRow(ctx, "SELECT system_identifier::text FROM pg_catalog.pg_control_system()").Scan(&id); err != nil {
		return fmt.Errorf("ask the target which server it is: %w", err)
	}
	if id != r.Environment.Database.SystemID {
		return fmt.Errorf("%w: %s", ErrServer, d.Target.Name())
	}
	return nil
}

// prepared reads what is measured, once its data are there. The first point reads it anew.
func (d *doing) prepared(ctx context.Context, r *result.Result) {
	if r.Environment != nil {
		return
	}
	if found, ok := d.environment(ctx, r); ok {
		r.Environment = &found
	}
}

// measuredOn keeps what a point was measured on: once for each server that settings want. A server that
// somebody else runs is looked at after each point, and must stay as it was.
func (d *doing) measuredOn(ctx context.Context, r *result.Result, s experiment.Setting) {
	n := d.serverOf(r, s)
	if n < 0 || r.Target.Kind != kindHowdah {
		found, ok := d.environment(ctx, r)
		switch {
		case !ok:
			return
		case n < 0:
			n = len(r.Servers)
			r.Servers = append(r.Servers, result.Server{Environment: found})
			if n == 0 {
				r.Environment = &found
			}
		case r.Servers[n].Environment.Hash() != found.Hash():
			d.problem(r, "the environment has changed since the run began, as seen at ", found.At.Format(time.RFC3339))
		}
	}
	if key := d.Experiment.Key(s); !slices.Contains(r.Servers[n].Settings, key) {
		r.Servers[n].Settings = append(r.Servers[n].Settings, key)
	}
}

// serverOf returns the place of the server that a setting wants, or -1 if none was seen yet.
func (d *doing) serverOf(r *result.Result, s experiment.Setting) int {
	wanted, err := d.Experiment.Wanted(s)
	if err != nil {
		return -1
	}
	return slices.IndexFunc(r.Servers, func(server result.Server) bool {
		return slices.ContainsFunc(d.Experiment.Settings(), func(other experiment.Setting) bool {
			has, err := d.Experiment.Wanted(other)
			return err == nil && has.Same(wanted) && slices.Contains(server.Settings, d.Experiment.Key(other))
		})
	})
}

// environment reads what is measured. If that cannot be, the result says so.
func (d *doing) environment(ctx context.Context, r *result.Result) (found environment.Environment, ok bool) {
	conn, err := d.connect(ctx)
	if err == nil {
		defer conn.Close(context.WithoutCancel(ctx))
		found, err = environment.Read(ctx, conn, machine.System{})
	}
	if err != nil {
		d.problem(r, "the environment could not be read: ", err.Error())
	}
	return found, err == nil
}

// problem says something once, with what was true the first time.
func (*doing) problem(r *result.Result, what, details string) {
	if !slices.ContainsFunc(r.Problems, func(known string) bool { return strings.HasPrefix(known, what) }) {
		r.Problems = append(r.Problems, what+details)
	}
}
