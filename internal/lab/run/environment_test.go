package run

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"howdah/internal/lab/result"
	"howdah/internal/observe/environment"
	"howdah/internal/testkit/pgtest"
)

const changing = `
name: changing
title: {en: Changing}
question: {en: Changing}
factors: [{name: kb, title: {en: kB}, levels: [5000, 6000]}]
runs: 2
each: [{sql: {text: "ALTER ROLE CURRENT_USER SET work_mem = '${kb}kB'"}}]
quick: {}
`

// Somebody else's server is looked at after each point. That it did not stay as it was is told, once.
func TestAServerThatChanges(t *testing.T) {
	t.Parallel()
	o := given(t, pgtest.Start(t, pgtest.Options{}), changing)
	r, err := Run(t.Context(), o)
	if err != nil || len(r.Problems) != 1 || !strings.HasPrefix(r.Problems[0], "the environment has changed since the run began") {
		t.Fatalf("%+v, %v", r, err)
	}
	if len(r.Servers) != 1 || !slices.Equal(r.Servers[0].Settings, []string{"kb=5000", "kb=6000"}) {
		t.Errorf("%+v", r.Servers)
	}
	// It is as it was when it was measured, and not before.
	if got := r.Environment.Database.Settings["work_mem"].Value; got != "5000" {
		t.Errorf("work_mem is %q", got)
	}
}

// A Howdah has a server for each that settings want. Each is read once.
func TestServersOfAHowdah(t *testing.T) {
	t.Parallel()
	o := given(t, pgtest.Start(t, pgtest.Options{}), strings.Replace(changing, "quick: {}", "server: {storage: $kb}\nneeds: [howdah]\nquick: {}", 1))
	d := &doing{Options: o}
	r := &result.Result{Target: result.Target{Kind: kindHowdah}}
	settings := o.Experiment.Settings()
	for _, s := range []int{0, 1, 0, 1} {
		d.measuredOn(t.Context(), r, settings[s])
	}
	if len(r.Servers) != 2 || len(r.Problems) > 0 || !slices.Equal(r.Servers[1].Settings, []string{"kb=6000"}) {
		t.Errorf("%+v, %q", r.Servers, r.Problems)
	}
}

// A result does not go on with another server behind the same address.
func TestAnotherServerIsRefused(t *testing.T) {
	t.Parallel()
	o := given(t, pgtest.Start(t, pgtest.Options{}), changing)
	of := func(kind, id string) *result.Result {
		return &result.Result{
			Schema: result.Schema, Experiment: o.Experiment.Name, Howdah: o.Release, Source: o.Source, Target: result.Target{Name: o.Target.Name(), Kind: kind},
			Environment: &environment.Environment{Database: environment.Database{SystemID: id}},
		}
	}
	d := &doing{Options: o}
	own, ok := d.environment(t.Context(), &result.Result{})
	if !ok || own.Database.SystemID == "" {
		t.Fatalf("%+v", own)
	}
	for what, c := range map[string]struct {
		r    *result.Result
		want error
	}{
		"the same":                {of("address", own.Database.SystemID), nil},
		"another":                 {of("address", "1"), ErrServer},
		"one that is not known":   {of("address", ""), nil},
		"another one of a Howdah": {of(kindHowdah, "1"), nil},
		"nothing is known":        {&result.Result{}, nil},
	} {
		if err := d.sameServer(t.Context(), c.r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	o.Dir = t.TempDir()
	if err := result.Write(o.Dir, of("address", "1")); err != nil {
		t.Fatal(err)
	}
	if r, err := Run(t.Context(), o); !errors.Is(err, ErrServer) || len(r.Points) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
