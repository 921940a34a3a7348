package spare

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"howdah/internal/host/tree"
	"howdah/internal/system/fscrypt"
	"howdah/internal/testkit/loopdisk"
)

func TestCopyEncrypted(t *testing.T) {
	disk := loopdisk.New(t, "16", "-O", "encrypt")
	from := filepath.Join(disk.Dir, "from")
	write := func(path, text string, mode os.FileMode) {
		t.Helper()
		path = filepath.Join(from, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	write("PG_VERSION", "15\n", 0o600)
	write("base/1/1255", strings.Repeat("row", 10000), 0o640)
	id, err := fscrypt.AddKey(disk.Dir, bytes.Repeat([]byte{4}, fscrypt.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(disk.Dir, "to")
	if err := os.MkdirAll(to+partSuffix+"/half", 0o700); err != nil { // of an agent that was killed
		t.Fatal(err)
	}
	if err := copyEncrypted(from, to, id); err != nil {
		t.Fatal(err)
	}
	if is, of, err := fscrypt.Of(filepath.Join(to, "base", "1")); err != nil || !of || is != id {
		t.Errorf("the copy is encrypted: %v, %v", of, err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "base/1/1255")); err != nil || len(text) != 30000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if info, err := os.Stat(filepath.Join(to, "base/1/1255")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode of the copy: %v", err)
	}
	if tree.Exists(filepath.Join(to, "half")) || tree.Exists(to+partSuffix) {
		t.Error("something of an earlier copy is left")
	}
	for name, plant := range map[string]func() error{
		"a link":      func() error { return os.Symlink("/etc/passwd", filepath.Join(from, "odd")) },
		"a hard link": func() error { return os.Link(filepath.Join(from, "PG_VERSION"), filepath.Join(from, "odd")) },
		"a pipe":      func() error { return unix.Mkfifo(filepath.Join(from, "odd"), 0o600) },
	} {
		if err := plant(); err != nil {
			t.Fatal(err)
		}
		again := filepath.Join(disk.Dir, "again")
		if err := copyEncrypted(from, again, id); err == nil || tree.Exists(again) {
			t.Errorf("%s was copied: %v", name, err)
		}
		if err := os.Remove(filepath.Join(from, "odd")); err != nil {
			t.Fatal(err)
		}
	}
}
