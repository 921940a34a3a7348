package form

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The mix is 10:10:1:1:1.
func TestPick(t *testing.T) {
	var got [Kinds]int
	for drawn := 1; drawn <= Shares; drawn++ {
		got[Pick(drawn)]++
	}
	want := [Kinds]int{NewOrder: 10, Payment: 10, Delivery: 1, StockLevel: 1, OrderStatus: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shares: -want +got:\n%s", diff)
	}
}

func TestKindNames(t *testing.T) {
	for k := range Kind(Kinds) {
		text, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		var back Kind
		if err := json.Unmarshal(text, &back); err != nil || back != k {
			t.Errorf("%s became %s (%v)", text, back, err)
		}
	}
	for _, text := range []string{`"rollback"`, `7`, `""`} {
		var k Kind
		if err := json.Unmarshal([]byte(text), &k); err == nil {
			t.Errorf("%s was read as %s", text, k)
		}
	}
	if got := Kind(9).String(); got != "kind 9" {
		t.Errorf("an unknown one is called %q", got)
	}
}

func TestChecks(t *testing.T) {
	for _, m := range []Mode{Compatible, Specification} {
		if err := m.Check(); err != nil {
			t.Error(err)
		}
	}
	for _, m := range []Mode{"", "compat", "Specification"} {
		if err := m.Check(); !errors.Is(err, ErrMode) {
			t.Errorf("mode %q: %v", m, err)
		}
	}
	for _, c := range []Call{Procedures, ClientSQL} {
		if err := c.Check(); err != nil {
			t.Error(err)
		}
	}
	if err := Call("functions").Check(); !errors.Is(err, ErrCall) {
		t.Errorf("functions: %v", err)
	}
}
