package database

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"howdah/internal/engine/postgres"
)

// PatroniVersion is the release that Howdah installs and knows. Some of its functions are
// replaced when it starts (sitecustomize.py). In another release these may be others, and
// then nothing would say that a guard is missing.
const PatroniVersion = "4.1.5"

// patroniVariable names a program in place of the one that scripts/install makes.
const patroniVariable = "HOWDAH_PATRONI"

var (
	errNoPatroni      = errors.New("Patroni " + PatroniVersion + " is not installed: run scripts/install")
	errPatroniVersion = errors.New("Howdah takes only " + PatroniVersion)
)

// FindPatroni finds the program, of the right version, or answers what to do.
func FindPatroni() (string, error) {
	if p := os.Getenv(patroniVariable); isProgram(p) {
		return p, checkPatroni(p, "unset "+patroniVariable+", and run scripts/install")
	}
	for _, prefix := range postgres.Prefixes() {
		dir := filepath.Join(prefix, "patroni-"+PatroniVersion)
		if p := filepath.Join(dir, "bin/patroni"); isProgram(p) {
			return p, checkPatroni(p, "remove "+dir+", and run scripts/install")
		}
	}
	return "", errNoPatroni
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&0o111 != 0
}

var versionLine = regexp.MustCompile(`(?m)^__version__\b.*=\s*['"]([^'"]+)['"]`)

// checkPatroni refuses a program of another version, and says what to do. It reads what is
// installed beside the program: to ask that itself takes half a second of every start.
func checkPatroni(program, remedy string) error {
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
	if version != PatroniVersion {
		return fmt.Errorf("%s is Patroni %s, and %w: %s", program, version, errPatroniVersion, remedy)
	}
	return nil
}
