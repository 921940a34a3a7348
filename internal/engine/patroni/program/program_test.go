package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// environment makes what stands for a Python environment with a Patroni in it.
func environment(t *testing.T, version string) (program string) {
	t.Helper()
	dir := t.TempDir()
	program = filepath.Join(dir, "bin/patroni")
	files := map[string]string{program: "#!/bin/sh\n"}
	if version != "" {
		files[filepath.Join(dir, "lib/python3.11/site-packages/patroni/version.py")] = version
	}
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return program
}

// An agent starts with no Patroni but the one whose parts it replaces, and says what to do.
func TestAnAgentRefusesAnotherPatroni(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"an older one", "__version__ = '4.0.7'\n", "is Patroni 4.0.7"},
		{"a newer one", "__version__: str = \"4.2.0\"\n", "is Patroni 4.2.0"},
		{"one whose version begins like it", "__version__ = '4.1.50'\n", "is Patroni 4.1.50"},
		{"one that does not say", "version = '4.1.5'\n", "of an unknown version"},
		{"one that is alone", "", "of an unknown version"},
	}
	for _, c := range cases {
		t.Setenv(variable, environment(t, c.text))
		_, err := Find()
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") ||
			!strings.HasSuffix(err.Error(), ": unset HOWDAH_PATRONI, and run scripts/install") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestFindPatroni(t *testing.T) {
	right := environment(t, "# what it is\n__version__ = '"+Version+"'\n")
	link := filepath.Join(t.TempDir(), "patroni")
	if err := os.Symlink(right, link); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{right, link} {
		t.Setenv(variable, p)
		if got, err := Find(); got != p || err != nil {
			t.Errorf("%q, %v, want %q", got, err, p)
		}
	}
}

// The version that is installed is the one that agents take.
func TestInstallPinsPatroni(t *testing.T) {
	for file, line := range map[string]string{"install": "PATRONI_VERSION=" + Version, "patroni.txt": "patroni==" + Version} {
		text, err := os.ReadFile(filepath.Join("../../../../scripts", file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains("\n"+string(text), "\n"+line+"\n") {
			t.Errorf("scripts/%s does not have the line %s", file, line)
		}
	}
}
