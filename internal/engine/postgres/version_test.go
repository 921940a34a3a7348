package postgres

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A program is asked once, and again when it is another one.
func TestVersionsAreRemembered(t *testing.T) {
	dir := t.TempDir()
	program, calls := filepath.Join(dir, "postgres"), filepath.Join(dir, "calls")
	install := func(version string) {
		t.Helper()
		text := fmt.Sprintf("#!/bin/sh\necho x >> %s\necho 'postgres (PostgreSQL) %s (Debian)'\n", calls, version)
		if err := os.WriteFile(program+".new", []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(program+".new", program); err != nil {
			t.Fatal(err)
		}
	}
	for n, version := range []string{"15.18", "15.20"} {
		install(version)
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
