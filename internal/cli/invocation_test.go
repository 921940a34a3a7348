package cli

import (
	"os"
	"path/filepath"
	"testing"

	"howdah/internal/identity/home"
)

func TestInvocation(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "howdah")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, dir, want string }{
		{"found by the shell", bin, "/", "howdah"},
		{"in the directory", "/nowhere", filepath.Dir(program), "./" + filepath.Base(program)},
		{"elsewhere", "/nowhere", t.TempDir(), program},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("PATH", c.path)
			t.Chdir(c.dir)
			if got := invocation(); got != c.want {
				t.Errorf("%q, not %q", got, c.want)
			}
		})
	}
}

func TestPasteable(t *testing.T) {
	usual := &home.Home{Dir: home.DefaultDir()}
	other := &home.Home{Dir: "/srv/my home"}
	for _, c := range []struct {
		at            *home.Home
		command, want string
	}{
		{nil, "howdah status", "./bin/howdah status"},
		{usual, "howdah status", "./bin/howdah status"},
		{other, "howdah status", "./bin/howdah --home '/srv/my home' status"},
		{other, "scripts/install", "scripts/install"},
		{other, "howdah agent --az d", "howdah agent --az d"},
	} {
		o := &Options{Program: "./bin/howdah", At: c.at}
		if got := o.Pasteable(c.command); got != c.want {
			t.Errorf("%s: %s, not %s", c.command, got, c.want)
		}
	}
}
