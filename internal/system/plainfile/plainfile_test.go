package plainfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.WriteFile(at("plain"), []byte("some\ntext\n"), 0o600), os.Symlink("plain", at("link")), unix.Mkfifo(at("pipe"), 0o600),
		os.Mkdir(at("directory"), 0o700), os.WriteFile(at("large"), nil, 0o600), os.Truncate(at("large"), Most+1))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text, tail string
		err        error
	}{
		"plain": {text: "some\ntext\n", tail: "xt\n"}, "link": {text: "some\ntext\n", tail: "xt\n"},
		"pipe": {err: ErrOther}, "directory": {err: ErrOther}, "none": {err: os.ErrNotExist},
	} {
		if text, err := Read(at(name)); string(text) != c.text || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if text, err := Tail(at(name), 3); string(text) != c.tail || !errors.Is(err, c.err) {
			t.Errorf("the end of %s: %q, %v", name, text, err)
		}
	}
	if _, err := Read(at("large")); !errors.Is(err, ErrOther) {
		t.Errorf("a large one: %v", err)
	}
	if text, err := Tail(at("large"), 3); string(text) != "\x00\x00\x00" || err != nil {
		t.Errorf("the end of a large one: %q, %v", text, err)
	}
	if text, err := Tail(at("plain"), 100); string(text) != "some\ntext\n" || err != nil {
		t.Errorf("more than there is: %q, %v", text, err)
	}
}

// A file is replaced as a whole. A link in its place is replaced, and not followed.
func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other, path := filepath.Join(dir, "other"), filepath.Join(dir, "file")
	if err := errors.Join(os.WriteFile(other, []byte("kept"), 0o600), os.Symlink(other, path)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", "second"} {
		if err := Replace(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(path)
		now, readErr := os.ReadFile(path)
		if err := errors.Join(err, readErr); err != nil || string(now) != text || info.Mode() != 0o640 {
			t.Errorf("%q, %v, %v", now, info.Mode(), err)
		}
	}
	if now, err := os.ReadFile(other); string(now) != "kept" {
		t.Errorf("the other is %q, %v", now, err)
	}
	if err := Replace(filepath.Join(dir, "none", "file"), nil, 0o600); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	names, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(names) > 0 {
		t.Errorf("left behind: %s, %v", strings.Join(names, " "), err)
	}
}
