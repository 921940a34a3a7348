package wire_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/wire"
)

// Every code that a handler can write must have one status, whichever service
// is asked first.
func TestCodesHaveOneStatus(t *testing.T) {
	tables := []map[string]int{api.CommonErrors}
	for _, s := range wire.Services() {
		tables = append(tables, s.Errors)
	}
	for _, table := range tables {
		for code, want := range table {
			if got := wire.NewError(code, "x").Status; got != want {
				t.Errorf("%s has the status %d, not %d", code, got, want)
			}
		}
	}
	if got := wire.NewError("NoSuchCode", "x").Status; got != 400 {
		t.Errorf("an unknown code has the status %d", got)
	}
}

func TestAsError(t *testing.T) {
	want := wire.NewError(rds.ErrDBInstanceNotFound, "DBInstance a not found.")
	if got := wire.AsError(fmt.Errorf("delete a: %w", want)); got != want {
		t.Errorf("got %v", got)
	}
	got := wire.AsError(errors.New("dial tcp 10.0.0.1: refused"))
	if got.Code != api.ErrInternalFailure || got.Status != 500 || strings.Contains(got.Message, "10.0.0.1") {
		t.Errorf("got %d %v", got.Status, got)
	}
}

func TestWithHintLeavesTheErrorAlone(t *testing.T) {
	e := wire.NewError(rds.ErrDBInstanceNotFound, "DBInstance a not found.")
	if hinted := e.WithHint("list them"); hinted.Hint != "list them" || e.Hint != "" || hinted.Error() != e.Error() {
		t.Errorf("got %+v from %+v", hinted, e)
	}
}
