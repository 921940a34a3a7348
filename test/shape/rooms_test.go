package shape

import (
	"go/build"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const internal = module + "internal/"

// closed says for a room which rooms no package in it may reach, by whatever way. The verbs of the
// admin API stand on aws: its front knows who calls, and its looks know what a status says. aws does
// not stand on them. A control plane (control/serve) puts both together.
var closed = map[string][]string{
	"edge":       {"control", "aws", "admin", "host"},
	"host":       {"control", "aws", "admin"},
	"engine":     {"control", "aws", "admin", "host", "edge", "failover", "state", "view"},
	"state":      {"control", "aws", "admin", "edge", "failover", "view"},
	"repository": {"control", "aws", "admin", "host", "edge", "failover", "state", "view"},
	"failover":   {"control", "aws", "admin", "host", "view"},
	"identity":   {"control", "aws", "admin", "host", "edge", "failover", "view"},
	"admin":      {"control"},
	"aws":        {"control", "admin"},
	"view":       {"control", "aws", "admin", "host"},
}

// alone has the rooms that reach no other room.
var alone = []string{"model", "system"}

// doors has the packages of closed rooms that may be reached. The planner is one: a status says
// what the planner decides by.
var doors = []string{internal + "control/plan"}

// top is the room that no other room reaches: only the program stands on the command line.
const top = "cli"

// room returns the room of a package of ours, or "" if it is not below internal.
func room(path string) string {
	rest, ok := strings.CutPrefix(path, internal)
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

func TestRooms(t *testing.T) {
	packages := ours(t)
	if len(packages) < 50 {
		t.Fatalf("only %d packages were found", len(packages))
	}
	for _, pkg := range packages {
		own := room(module + pkg)
		for _, path := range reaches(t, pkg, map[string]bool{}) {
			if own != top && room(path) == top {
				t.Errorf("%s reaches %s", pkg, path)
			}
		}
		if own == "testkit" || strings.HasSuffix(pkg, "/testserver") || strings.HasSuffix(pkg, "/conformance") {
			continue // they put all of it together, for tests alone
		}
		for _, path := range reaches(t, pkg, map[string]bool{}) {
			other := room(path)
			if other == "" || other == own || slices.Contains(doors, path) {
				continue
			}
			if slices.Contains(closed[own], other) || slices.Contains(alone, own) {
				t.Errorf("%s reaches %s", pkg, path)
			}
		}
	}
}

// ours returns the packages below internal.
func ours(t *testing.T) (all []string) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if entry.Name() == "testdata" {
			return filepath.SkipDir
		}
		if _, err := build.ImportDir(path, 0); err != nil {
			return nil //nolint:nilerr // a room, or a directory without Go
		}
		own, err := filepath.Rel(root, path)
		all = append(all, filepath.ToSlash(own))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
