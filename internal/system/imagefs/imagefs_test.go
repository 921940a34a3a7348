package imagefs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"howdah/internal/testkit"
)

const size = 64 << 20

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		testkit.Missing(t, "root: file systems are mounted")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What is in the file outlasts a mount. Nothing of it stays mounted, and each step may be taken
// twice.
func TestAFileSystemInAFile(t *testing.T) {
	needRoot(t)
	file, dir := filepath.Join(t.TempDir(), "a file"), filepath.Join(t.TempDir(), "the place")
	if err := Mount(t.Context(), file, dir); !errors.Is(err, ErrGone) {
		t.Errorf("without a file: %v", err)
	}
	must(t, Make(t.Context(), file, size))
	t.Cleanup(func() { _ = Unmount(context.Background(), file, dir) })
	if err := Make(t.Context(), file, size); !errors.Is(err, ErrExists) {
		t.Errorf("twice: %v", err)
	}
	for round := range 2 {
		must(t, Mount(t.Context(), file, dir))
		must(t, Mount(t.Context(), file, dir))
		own, mounted, err := Mounted(file, dir)
		if !own || !mounted || err != nil {
			t.Fatalf("mounted: %t, %t, %v", own, mounted, err)
		}
		mark := filepath.Join(dir, "mark")
		if _, err := os.Stat(mark); (err == nil) != (round > 0) {
			t.Errorf("round %d: %v", round, err)
		}
		must(t, os.WriteFile(mark, []byte("x"), 0o600))
		must(t, Unmount(t.Context(), file, dir))
		must(t, Unmount(t.Context(), file, dir))
		if own, mounted, err := Mounted(file, dir); own || mounted || err != nil {
			t.Fatalf("unmounted: %t, %t, %v", own, mounted, err)
		}
	}
}

// Something else at the place is neither covered nor removed.
func TestAnotherFileSystemInThePlace(t *testing.T) {
	needRoot(t)
	one, other, dir := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "other"), t.TempDir()
	must(t, Make(t.Context(), one, size))
	must(t, Make(t.Context(), other, size))
	must(t, Mount(t.Context(), other, dir))
	t.Cleanup(func() { _ = Unmount(context.Background(), other, dir) })
	if err := Mount(t.Context(), one, dir); !errors.Is(err, ErrOther) {
		t.Errorf("mounted over it: %v", err)
	}
	must(t, Unmount(t.Context(), one, dir))
	if own, _, err := Mounted(other, dir); !own || err != nil {
		t.Errorf("the other one is gone: %v", err)
	}
}

func TestWhatCannotBeMade(t *testing.T) {
	needRoot(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := Make(t.Context(), file, 1000); err == nil {
		t.Error("of 1000 bytes")
	}
	left, err := filepath.Glob(file + "*")
	if err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := Make(t.Context(), filepath.Join(t.TempDir(), "no", "place"), size); err == nil {
		t.Error("in no directory")
	}
}
