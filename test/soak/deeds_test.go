package soak

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"howdah/test/soak/model"
)

// The soak can do everything that the model can draw.
func TestEveryVerbIsDone(t *testing.T) {
	for _, verb := range model.Verbs() {
		if deeds[verb] == nil {
			t.Errorf("nobody does %s", verb)
		}
	}
	for verb := range deeds {
		if !slices.Contains(model.Verbs(), verb) {
			t.Errorf("%s is never drawn", verb)
		}
	}
}

func TestKindOfAFailure(t *testing.T) {
	inner := failed("rows are lost", errors.New("3 of orders"))
	for want, err := range map[string]error{
		"rows are lost":         errors.Join(nil, failed("a step does not end", fmt.Errorf("delete orders: %w", inner))),
		"the soak itself fails": errors.New("no rig"),
	} {
		if got := Kind(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	if failed("anything", nil) != nil {
		t.Error("no error is a failure")
	}
}
