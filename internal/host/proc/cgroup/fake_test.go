package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const parent = "howdah-test"

// fake is a host that this machine is not: a process table, and control group directories of plain
// files. Here no kernel puts files into a new group, so the tests put those of the probed group
// where it will look.
type fake struct {
	t    *testing.T
	root string
}

func newFake(t *testing.T) fake { return fake{t: t, root: t.TempDir()} }

func (f fake) path(name string) string { return filepath.Join(f.root, name) }

func (f fake) file(name, text string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(f.path(name)), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(f.path(name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f fake) text(name string) string {
	f.t.Helper()
	text, err := os.ReadFile(f.path(name))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

// group makes a directory with the names of an empty group's files, and their text after a "=".
func (f fake) group(dir string, files ...string) {
	for _, file := range files {
		name, text, _ := strings.Cut(file, "=")
		f.file(filepath.Join(dir, name), text)
	}
}

func (f fake) probed(base string, files ...string) {
	f.group(filepath.Join(base, parent, probeName()), files...)
}

// mounts writes mountinfo from lines of "type point root options".
func (f fake) mounts(groups string, lines ...string) {
	var info strings.Builder
	info.WriteString("27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n")
	for i, line := range lines {
		fields := strings.Fields(line)
		fmt.Fprintf(&info, "%d 27 0:%d %s %s rw,relatime shared:7 - %s %s rw,%s\n",
			30+i, 30+i, fields[2], f.path(fields[1]), fields[0], fields[0], fields[3])
	}
	f.file("proc/self/mountinfo", info.String())
	f.file("proc/self/cgroup", groups)
}

func (f fake) detect() Layout {
	f.t.Helper()
	layout, err := Detect(f.path("proc"), parent)
	if err != nil {
		f.t.Fatal(err)
	}
	return layout
}
