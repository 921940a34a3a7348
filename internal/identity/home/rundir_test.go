package home

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Another user can pass through, although somebody else had made the directory before for
// themselves alone, and the umask hides what is new.
func TestTheWayToSocketsIsOpen(t *testing.T) {
	before := syscall.Umask(0o077)
	defer syscall.Umask(before)
	parent := filepath.Join(t.TempDir(), "howdah")
	if err := os.Mkdir(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "0123abcd")
	for range 2 {
		if err := OpenWay(parent, dir); err != nil {
			t.Fatal(err)
		}
		for _, d := range []string{parent, dir} {
			if info, err := os.Stat(d); err != nil || info.Mode().Perm() != 0o711 {
				t.Errorf("%s: %v, %v; want mode 0711", d, info.Mode(), err)
			}
		}
	}
}
