package database

import (
	"os"
	"path/filepath"
	"testing"

	"howdah/internal/host/tree"
)

// What a member's user put into the place where it is handed data is left to the trash: the
// runner does not wait until it is removed.
func TestThePlaceOfDataIsThrownAwayAtOnce(t *testing.T) {
	w := newWorld(t, "")
	a := w.open()
	w.Must(os.MkdirAll(filepath.Join(a.handedPath("db-1.m1"), "d"), 0o700))
	for range 2 {
		w.Must(a.closeHandover("db-1.m1"))
	}
	if tree.Exists(a.handedPath("db-1.m1")) {
		t.Error("it is there")
	}
	left, err := filepath.Glob(filepath.Join(a.TrashPath("db-1.m1-*"), "d"))
	if err != nil || len(left) != 1 {
		t.Errorf("the trash has %v: %v", left, err)
	}
}
