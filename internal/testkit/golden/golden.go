// Package golden checks what pure code makes of an input against files that hold both: the input, a line
// of four dashes, and what is expected. `go test ./PACKAGE -update` rewrites what is expected.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const line = "----\n"

// File is one golden file, as its test has it.
type File struct {
	// Input is all above the line of dashes.
	Input string

	t    *testing.T
	path string
	want string
}

// Each runs a test for each of the package's files testdata/*.txt, under the file's name, and returns how
// many there are. There must be one.
func Each(t *testing.T, test func(t *testing.T, f *File)) int {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f := &File{t: t, path: path}
			f.Input, f.want, _ = strings.Cut(string(content), line)
			test(t, f)
		})
	}
	return len(paths)
}

// Check fails the test if the file expects something else, or has it expect this from now on.
func (f *File) Check(got string) {
	f.t.Helper()
	if *update {
		if err := os.WriteFile(f.path, []byte(f.Input+line+got), 0o644); err != nil {
			f.t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(f.want, got); diff != "" {
		f.t.Errorf("-want +got; go test -update rewrites it:\n%s", diff)
	}
}
