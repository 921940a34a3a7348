// Package program finds the program of Patroni, of the one release that Howdah knows.
package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"howdah/internal/engine/postgres"
)

// Version is the release that Howdah installs and knows. Some of its functions are
// replaced when it starts (sitecustomize.py). In another release these may be others, and
// then nothing would say that a guard is missing.
const Version = "4.1.5"

// variable names a program in place of the one that scripts/install makes.
const variable = "HOWDAH_PATRONI"

var (
	errNone    = errors.New("Patroni " + Version + " is not installed: run scripts/install")
	errVersion = errors.New("Howdah takes only " + Version)
)

// Find finds the program, of the right version, or answers what to do.
func Find() (string, error) {
	if p := os.Getenv(variable); isProgram(p) {
		return p, check(p, "unset "+variable+", and run scripts/install")
	}
	for _, prefix := range postgres.Prefixes() {
		dir := filepath.Join(prefix, "patroni-"+Version)
		if p := filepath.Join(dir, "bin/patroni"); isProgram(p) {
			return p, check(p, "remove "+dir+", and run scripts/install")
		}
	}
	return "", errNone
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&0o111 != 0
}

var versionLine = regexp.MustCompile(`(?m)^__version__\b.*=\s*['"]([^'"]+)['"]`)

// check refuses a program of another version, and says what to do. It reads what is
// installed beside the program: to ask that itself takes half a second of every start.
func check(program, remedy string) error {
	version := "of an unknown version"
	resolved, err := filepath.EvalSymlinks(program)
	if err != nil {
		return fmt.Errorf("look at %s: %w", program, err)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(resolved)), "lib/python3*/site-packages/patroni/version.py"))
	if err != nil {
		return fmt.Errorf("look at %s: %w", program, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("look at %s: %w", program, err)
		}
		if found := versionLine.FindSubmatch(text); found != nil {
			version = string(found[1])
		}
	}
	if version != Version {
		return fmt.Errorf("%s is Patroni %s, and %w: %s", program, version, errVersion, remedy)
	}
	return nil
}
