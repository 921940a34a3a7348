package hosttest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"howdah/internal/system/owner"
)

// Giver is the part of an agent that gives directories to users.
type Giver interface {
	Path(parts ...string) string
	MemberDir(id string) string
	Give(dir string) error
	OwnerOf(dir string) *owner.User
}

// Victim is a file and a directory of root, with what a thief would look for.
type Victim struct {
	*testing.T
	host      Giver
	root      string
	before    string
	dir, file string
}

// NewVictim makes a victim on the disk of a host.
func NewVictim(t *testing.T, a Giver) *Victim {
	t.Helper()
	root, err := os.MkdirTemp(filepath.Dir(a.Path()), "victim-") // on the same disk
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	v := &Victim{T: t, host: a, root: root, dir: filepath.Join(root, "dir"), file: filepath.Join(root, "file")}
	v.Must(os.Chmod(root, 0o755)) // the user can get there
	v.Must(os.MkdirAll(filepath.Join(v.dir, "global"), 0o755))
	v.Must(os.WriteFile(v.file, []byte("primary_conninfo\nsecret\n"), 0o640))
	for _, name := range []string{"tls.key", "howdah", "pg_hba.conf", "postgresql.auto.conf"} {
		v.Must(os.WriteFile(filepath.Join(v.dir, name), []byte("root's"), 0o600))
	}
	v.before = v.state()
	return v
}

// Must ends the test if there is an error.
func (v *Victim) Must(err error) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
}

// state returns everything that can be changed of it.
func (v *Victim) state() string {
	v.Helper()
	var all strings.Builder
	v.Must(filepath.WalkDir(v.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		own, _ := info.Sys().(*syscall.Stat_t)
		fmt.Fprintln(&all, strings.TrimPrefix(path, v.root), info.Mode(), own.Uid, own.Gid)
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			fmt.Fprintf(&all, "%q\n", text)
			return err
		}
		return nil
	}))
	return all.String()
}

// Unchanged fails the test if anything of it has changed.
func (v *Victim) Unchanged() {
	v.Helper()
	if now := v.state(); now != v.before {
		v.Errorf("it was\n%s\nand is\n%s", v.before, now)
	}
}

// Plant makes a member whose user has put something else in the place of a path.
func (v *Victim) Plant(id, path, kind string) {
	v.Helper()
	member := v.host.MemberDir(id)
	v.Must(os.RemoveAll(member))
	v.Must(v.host.Give(member))
	user := v.host.OwnerOf(member)
	for _, dir := range []string{"tls", "tls/own", "python", "log", "data/global"} {
		v.Must(user.MakeDir(filepath.Join(member, dir)))
	}
	target := v.file
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		target = v.dir
	}
	v.Must(os.RemoveAll(path))
	switch kind {
	case "link":
		v.Must(user.Do(func() error { return os.Symlink(target, path) }))
	case "hard link":
		// The kernel may let the user do it: fs.protected_hardlinks.
		v.Must(os.Link(v.file, path))
	case "pipe":
		v.Must(user.Do(func() error { return unix.Mkfifo(path, 0o666) }))
	}
}

// MakeDeep makes directories below each other whose names together are longer than a path may be.
func MakeDeep(t *testing.T, dir string, depth int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for n := 0; err == nil && n < depth; n++ {
		const part = 100
		name := strings.TrimSuffix(strings.Repeat("d/", part), "/")
		for i := range part {
			if err = unix.Mkdirat(at, name[:2*i+1], 0o700); err != nil {
				break
			}
		}
		n += part - 1
		if err != nil {
			break
		}
		var next int
		next, err = unix.Openat(at, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		unix.Close(at)
		at = next
	}
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(at)
}
