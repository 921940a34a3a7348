package database

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"howdah/internal/host/kernelcut"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
)

// Cuts that were in force when everything was stopped are taken out of the kernel:
// those of a host when it stops, those of all hosts when the home goes, and nobody
// else's.
func TestStoppingRemovesCuts(t *testing.T) {
	t.Parallel()
	testkit.NeedRoot(t)
	testkit.NeedProgram(t, "nft")
	id, other := fmt.Sprintf("%08x", rand.Uint32()), fmt.Sprintf("%08x", rand.Uint32())
	if err := (&kernelcut.Rules{Table: kernelcut.Table(id, "t")}).Try(t.Context()); err != nil {
		t.Skipf("needs rules in the kernel: %v", err)
	}
	tables := []string{
		kernelcut.Table(id, "zone-a"), kernelcut.Table(id, "zone-a") + "_try", kernelcut.Table(id, "zone-b"), kernelcut.Table(id, "zone-aa"), kernelcut.Table(other, "zone-a"),
	}
	for _, name := range tables {
		if _, err := (&kernelcut.Rules{Table: name}).Hold(t.Context(), []string{"127.255.255.254:1"}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { exec.Command("nft", "delete", "table", "inet", name).Run() })
	}
	left := func() (all []string) {
		for _, name := range tables {
			if exec.Command("nft", "list", "table", "inet", name).Run() == nil {
				all = append(all, name)
			}
		}
		return all
	}
	for range 2 {
		if err := StopHost(t.Context(), id, "zone-a", t.TempDir(), true); err != nil {
			t.Fatal(err)
		}
		if got := left(); !slices.Equal(got, tables[2:]) {
			t.Errorf("after the stop of a host: %v, want %v", got, tables[2:])
		}
	}
	for range 2 {
		if err := kernelcut.RemoveHome(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if got := left(); !slices.Equal(got, tables[4:]) {
			t.Errorf("after the end of the home: %v, want %v", got, tables[4:])
		}
	}
}

// A home that is purged leaves nothing in memory, neither of its members nor of those that
// were deleted just before.
func TestStoppingForgetsWhatWasKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, path := range map[string]string{"a member": "members/db-1.m1", "a deleted one": "trash/db-2.m1-1"} {
		left := leaveMemory(t, filepath.Join(dir, path, patroni.DataDir))
		for range 2 {
			if err := StopHost(t.Context(), fmt.Sprintf("%08x", rand.Uint32()), "zone-a", dir, true); err != nil {
				t.Fatal(err)
			}
		}
		if left() {
			t.Errorf("the segment of %s is still there", name)
		}
	}
}
