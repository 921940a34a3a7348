package format

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
)

// The number only grows, and a larger one is refused in one line.
func TestTheFormatOfAHome(t *testing.T) {
	t.Parallel()
	s := etcdtest.Store(t)
	if r, err := Read(t.Context(), s.Client); err != nil || r.Format != 0 || r.Check("1.0") != nil {
		t.Errorf("%+v, %v", r, err)
	}
	won := state.ElectionRoot + "s1"
	revision, err := s.Commit(t.Context(), state.Put(won, "s1"))
	if err != nil {
		t.Fatal(err)
	}
	leading := state.Held(won, revision)
	// One that does not lead any more raises nothing.
	if err := Raise(t.Context(), s, state.Held(won, revision-1), "1.0", time.Now()); !errors.Is(err, state.ErrConflict) {
		t.Errorf("raised by one that does not lead: %v", err)
	}
	for range 2 {
		if err := Raise(t.Context(), s, leading, "1.1", time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := Read(t.Context(), s.Client); err != nil || r.Format != Newest || r.Release != "1.1" || r.Check("1.1") != nil {
		t.Errorf("%+v, %v", r, err)
	}
	newer := Record{Format: Newest + 1, Release: "2.0"}
	if _, err := s.Commit(t.Context(), state.Put(state.HomeFormat, newer)); err != nil {
		t.Fatal(err)
	}
	if err := Raise(t.Context(), s, leading, "1.1", time.Now()); err != nil {
		t.Fatal(err)
	}
	r, err := Read(t.Context(), s.Client)
	if err != nil || r.Format != newer.Format {
		t.Errorf("%+v, %v", r, err)
	}
	refused := r.Check("1.1")
	if !errors.Is(refused, ErrNewer) || strings.Contains(refused.Error(), "\n") || !strings.Contains(refused.Error(), fmt.Sprintf("howdah 1.1 reads %d: start howdah 2.0 or newer", Newest)) {
		t.Errorf("%v", refused)
	}
}

// Of what control planes say the highest number counts. One of an older release says nothing.
func TestHeard(t *testing.T) {
	t.Parallel()
	s := etcdtest.Store(t)
	cache := etcdtest.Cache(t, s, nil)
	if r := Heard(cache); r.Format != 0 {
		t.Errorf("%+v", r)
	}
	etcdtest.Put(t, s, cache, state.Put(state.Control("s1"), Said{Reads: 3, Format: 2, Release: "2.0"}),
		state.Put(state.Control("s2"), map[string]string{"name": "s2"}), state.Put(state.Control("s3"), Said{Reads: 3, Format: 3, Release: "3.0"}))
	if r := Heard(cache); r.Format != 3 || r.Release != "3.0" {
		t.Errorf("%+v", r)
	}
}
