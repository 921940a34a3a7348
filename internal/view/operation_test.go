package view

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
)

func TestOperations(t *testing.T) {
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	kind := operation.Kind{Name: "upgrade", Within: time.Hour, Excludes: []operation.Deed{operation.Restart}}
	about := operation.About{Scope: spec.Scope{Account: "123456789012", Region: "us-east-1"}, Type: event.Instance, Name: "orders", Database: "db-1"}
	next := func(n int) (state.Op, error) {
		r, err := operation.New(fmt.Sprintf("op-%d", n), kind, about, nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return Begin(cache, r)
	}
	if _, excluded := Excluding(cache, "db-1", operation.Restart); excluded {
		t.Error("nothing is under way, and restarts are excluded")
	}
	for n := range operation.MaxOf {
		op, err := next(n)
		if err != nil {
			t.Fatal(err)
		}
		etcdtest.Put(t, store, cache, op)
	}
	if _, err := next(99); !errors.Is(err, operation.ErrTooMany) {
		t.Errorf("one too many: %v", err)
	}
	if r, excluded := Excluding(cache, "db-1", operation.Restart); !excluded || r.Kind != "upgrade" {
		t.Errorf("%+v", r)
	}
	if _, excluded := Excluding(cache, "db-1", operation.Failover); excluded {
		t.Error("failovers are excluded, and nobody said so")
	}
	etcdtest.Put(t, store, cache, state.Delete(state.Operation("op-7")))
	op, err := next(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Commit(t.Context(), op); !errors.Is(err, state.ErrConflict) {
		t.Errorf("begun twice: %v", err)
	}
}
