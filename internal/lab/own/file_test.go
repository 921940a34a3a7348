package own_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"howdah/internal/lab/own"
)

func TestAFileIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	if _, err := own.ReadFile(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a file that is not there: %v", err)
	}
	for _, text := range []string{"one", "two"} {
		if err := own.WriteFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := own.ReadFile(path); err != nil || string(got) != text {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("it left %v, %v", left, err)
	}
}

// Whoever made the directory may have put anything there.
func TestWhatIsNotOursIsRefused(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"others may write": func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o666)) }, //nolint:gosec // so it is to be
		"a link":           func(path string) error { return os.Symlink("/etc/hostname", path) },
		"a pipe":           func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a second name": func(path string) error {
			return errors.Join(os.WriteFile(path+".2", nil, 0o600), os.Link(path+".2", path))
		},
		"another user's": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, 4711, 4711))
		},
		"a whole directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		path := filepath.Join(t.TempDir(), "record.json")
		if err := put(path); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := own.ReadFile(path); err == nil || errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: it was read: %v", name, err)
		}
	}
}

func TestALinkIsNotWrittenThrough(t *testing.T) {
	dir := t.TempDir()
	target, path := filepath.Join(dir, "target"), filepath.Join(dir, "record.json")
	if err := errors.Join(os.WriteFile(target, []byte("theirs"), 0o600), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
	if err := own.WriteFile(path, []byte("ours")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "theirs" {
		t.Errorf("%q, %v", text, err)
	}
}
