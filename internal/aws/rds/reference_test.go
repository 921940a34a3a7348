package rds

import (
	"os"
	"slices"
	"strings"
	"testing"

	"howdah/api/rds"
	"howdah/internal/aws/rds/catalogue"
)

// TestReferenceIsUpToDate: `make generate` writes it.
func TestReferenceIsUpToDate(t *testing.T) {
	text, err := os.ReadFile("../../../docs/guide/api.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != Reference() {
		t.Error("docs/guide/api.md is old: run `make generate`, or go run ./cmd/howdah gen-api docs/guide/api.md")
	}
}

// TestEveryActionIsInTheReference: once, with one of four words.
func TestEveryActionIsInTheReference(t *testing.T) {
	text := Reference()
	for _, a := range rds.Service.Actions {
		word, _ := coverage(a.Name)
		if n := strings.Count(text, "\n| "+a.Name+" | "+word+" |"); n != 1 {
			t.Errorf("%s is there %d times", a.Name, n)
		}
		if !slices.Contains([]string{does, doesEmpty, doesNot, doesNotYet}, word) {
			t.Errorf("%s: %s", a.Name, word)
		}
	}
	if len(rds.Service.Actions) != 168 {
		t.Errorf("the model has %d actions", len(rds.Service.Actions))
	}
}

// TestTablesFitTheModel: what they name exists, and is in one table only.
func TestTablesFitTheModel(t *testing.T) {
	does, none := Nobodys().actions(), catalogue.Nothing(catalogue.Config{})
	for name := range catalogue.Skipped {
		if _, ok := rds.Service.Action(name); !ok {
			t.Errorf("skipped: RDS has no %s", name)
		}
		if _, ok := does[name]; ok {
			t.Errorf("%s is skipped and done", name)
		}
		_, isEmpty := none[name]
		if describes := strings.HasPrefix(name, "Describe"); describes != isEmpty {
			t.Errorf("%s: an empty list: %t", name, isEmpty)
		}
	}
	for name := range none {
		if catalogue.Skipped[name] == "" {
			t.Errorf("%s answers an empty list for no reason", name)
		}
	}
	if len(catalogue.Skipped) != 36 {
		t.Errorf("%d actions are skipped, of 36", len(catalogue.Skipped))
	}
	for name := range notes {
		if _, ok := does[name]; !ok {
			t.Errorf("a note on %s, which is not done", name)
		}
	}
}
