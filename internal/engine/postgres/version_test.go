package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pretend writes a program that says it is PostgreSQL of this version.
func pretend(t *testing.T, dir, version, more string) {
	t.Helper()
	program := filepath.Join(dir, "postgres")
	text := fmt.Sprintf("#!/bin/sh\n%s\necho 'postgres (PostgreSQL) %s (Debian)'\n", more, version)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(program+".new", []byte(text), 0o700), os.Rename(program+".new", program)); err != nil {
		t.Fatal(err)
	}
}

// A program is asked once, and again when its file has changed.
func TestVersionsAreRemembered(t *testing.T) {
	dir := t.TempDir()
	program, calls := filepath.Join(dir, "postgres"), filepath.Join(dir, "calls")
	for n, version := range []string{"15.18", "15.20"} {
		pretend(t, dir, version, "echo x >> "+calls)
		for range 3 {
			if full, err := fullVersion(program); err != nil || full != version {
				t.Errorf("%q, %v; want %s", full, err, version)
			}
		}
		text, err := os.ReadFile(calls)
		if asked := strings.Count(string(text), "x"); err != nil || asked != n+1 {
			t.Errorf("asked %d times, %v; want %d", asked, err, n+1)
		}
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if _, err := fullVersion(program); err == nil {
		t.Error("a program that is gone has a version")
	}
}

// Packages come before what was built, and a newer version before an older one.
func TestInstalled(t *testing.T) {
	dir := t.TempDir()
	where := func(major int) []string {
		return []string{filepath.Join(dir, "packages", fmt.Sprint(major), "bin"), filepath.Join(dir, fmt.Sprintf("built-%d", major), "bin")}
	}
	pretend(t, where(15)[0], "15.20", "")
	pretend(t, where(17)[0], "17.12", "")
	pretend(t, where(17)[1], "17.11", "")
	pretend(t, where(18)[1], "18.6", "")
	// A build is a link to a directory, so that it can be upgraded. Nothing searches that directory
	// itself.
	pretend(t, filepath.Join(dir, "16.1", "bin"), "16.1", "")
	if err := os.Symlink("16.1", filepath.Join(dir, "built-16")); err != nil {
		t.Fatal(err)
	}
	found, err := installed(SupportedMajors, where)
	want := []Install{{18, where(18)[1], "18.6"}, {17, where(17)[0], "17.12"}, {16, where(16)[1], "16.1"}, {15, where(15)[0], "15.20"}}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("%+v, %v", found, err)
	}
	found, err = installed([]int{17}, where)
	if err != nil || !slices.Equal(found, want[1:2]) {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestOffered(t *testing.T) {
	for asked, want := range map[string][]int{"": SupportedMajors, "15": {15}, "17,15": {15, 17}, "17, 18": {17, 18}, "9": {}, "x": {}} {
		t.Setenv(OfferVariable, asked)
		if got := offered(); !slices.Equal(got, want) {
			t.Errorf("%q: %v", asked, got)
		}
	}
}

// Debian's directory comes first, and that for everyone last.
func TestPlaces(t *testing.T) {
	all := places(17)
	if all[0] != "/usr/lib/postgresql/17/bin" || all[len(all)-1] != "/opt/howdah/postgresql-17/bin" {
		t.Error(all)
	}
}
