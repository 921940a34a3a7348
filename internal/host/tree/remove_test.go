package tree_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/host/tree"
	"howdah/internal/testkit/hosttest"
)

// dying is a context that ends when it was asked so many times.
type dying struct {
	context.Context
	left int
}

func (d *dying) Err() error {
	if d.left--; d.left < 0 {
		return context.Canceled
	}
	return nil
}

// A removal ends anywhere in a deep tree: all that it leaves has a name by which it is found, and
// nothing is left after the next one.
func TestWhatIsLeftOfADeepTreeIsFound(t *testing.T) {
	t.Parallel()
	for _, calls := range []int{tree.Deep - 10, tree.Deep + 10, 2*tree.Deep + 50, 3 * tree.Deep} {
		dir := t.TempDir()
		first := filepath.Join(dir, "thrown-1")
		if err := os.Mkdir(first, 0o700); err != nil {
			t.Fatal(err)
		}
		hosttest.MakeDeep(t, first, 3*tree.Deep)
		if err := tree.RemoveOwn(&dying{t.Context(), calls}, first); !errors.Is(err, context.Canceled) {
			t.Fatalf("%d: %v", calls, err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), "thrown-") {
				t.Errorf("%d: left %s", calls, e.Name())
			}
			path := filepath.Join(dir, e.Name())
			if err := tree.RemoveOwn(&dying{t.Context(), calls}, path); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%d: %v", calls, err)
			}
		}
		found, err := filepath.Glob(filepath.Join(dir, "thrown-*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if strings.Count(path, "-deep-") > 1 {
				t.Errorf("%d: the name grows: %s", calls, path)
			}
			if err := tree.RemoveOwn(t.Context(), path); err != nil {
				t.Errorf("%d: %v", calls, err)
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%d: %v is left: %v", calls, left, err)
		}
	}
}
