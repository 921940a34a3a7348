package fault

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A file takes its room, is never written over another one, and goes when it is removed.
func TestFilling(t *testing.T) {
	t.Parallel()
	file := Placed{Dir: t.TempDir(), Name: filepath.Join("data", fillName)}
	if err := file.fill(1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if err := os.Mkdir(filepath.Join(file.Dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := file.fill(1 << 20); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file.String())
	if err != nil || info.Size() != 1<<20 || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := file.fill(1); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
	if free, err := file.free(); err != nil || free <= 0 {
		t.Errorf("%d bytes are free, %v", free, err)
	}
	if err := file.gone(); !errors.Is(err, errThere) {
		t.Error(err)
	}
	for range 2 {
		if err := errors.Join(file.remove(), file.gone()); err != nil {
			t.Error(err)
		}
	}
	// So does one whose member was removed meanwhile.
	lost := Placed{Dir: filepath.Join(file.Dir, "none"), Name: "x"}
	if err := errors.Join(lost.remove(), lost.gone()); err != nil {
		t.Error(err)
	}
}

// Who has the member's directory may put links there. Nothing is made or removed where they lead.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	victim := filepath.Join(elsewhere, fillName)
	for what, link := range map[string]func(member string) error{
		"of the directory": func(member string) error { return os.Symlink(elsewhere, filepath.Join(member, "data")) },
		"out of it": func(member string) error {
			return errors.Join(os.Mkdir(filepath.Join(member, "real"), 0o700), os.Symlink("real/../../"+filepath.Base(elsewhere), filepath.Join(member, "data")))
		},
		"of the file": func(member string) error {
			return errors.Join(os.Mkdir(filepath.Join(member, "data"), 0o700), os.Symlink(victim, filepath.Join(member, "data", fillName)))
		},
	} {
		member := t.TempDir()
		if err := link(member); err != nil {
			t.Fatal(err)
		}
		file := Placed{Dir: member, Name: filepath.Join("data", fillName)}
		if err := file.fill(4096); err == nil {
			t.Errorf("%s: it was filled", what)
		}
		if _, err := os.Lstat(victim); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: it filled what the link leads to: %v", what, err)
		}
		if err := os.WriteFile(victim, []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = file.remove() // the link itself may go
		if _, err := os.Lstat(victim); err != nil {
			t.Errorf("%s: what the link leads to was removed: %v", what, err)
		}
		if err := os.Remove(victim); err != nil {
			t.Fatal(err)
		}
	}
	// A link in the place of the member's directory is not one.
	link := filepath.Join(t.TempDir(), "member")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	if err := (Placed{Dir: link, Name: fillName}).fill(1); !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP) {
		t.Error(err)
	}
}

// Root makes and removes the file with the rights of whom the directory belongs to, and no more.
func TestFillingAsTheMembersUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	const user = 64321
	top := t.TempDir()
	file := Placed{Dir: filepath.Join(top, "member"), Name: filepath.Join("data", fillName)}
	data := filepath.Join(file.Dir, "data")
	err := errors.Join(os.MkdirAll(data, 0o700), os.Chown(file.Dir, user, user), os.Chown(data, user, user))
	for dir := top; err == nil && dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		err = os.Chmod(dir, 0o711)
	}
	if err == nil {
		err = file.fill(4096)
	}
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file.String())
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != user { //nolint:forcetypeassert // of Linux
		t.Errorf("%+v, %v", info, err)
	}
	// What the user may not write to, root does not write to for the user.
	if err := errors.Join(file.remove(), os.Chown(data, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if err := file.fill(4096); !errors.Is(err, os.ErrPermission) {
		t.Errorf("a directory of root's: %v", err)
	}
}
