// Package pgbackrest backs databases up by pgBackRest.
//
// Each repository has a configuration of its own, in which it is the only one. So one repository
// that is away keeps WAL from no other one, and no command needs to say which repository it means.
// All that pgBackRest writes lies in the repository or in Place.Dir.
//
// A backup of a standby has the standby's own server, and the primary's behind a server of
// pgBackRest's on the primary's host. docs/design/backup.md says what keeps others out of it.
//
// Seven scripts stand around the program, since they have to do what it does not:
//   - archive: on a standby it only asks whether a file is there, it gives files up where too many
//     wait, and it pushes ahead to those repositories that work.
//   - fetch: it ends recovery with an error where the program would say that there is no more WAL.
//   - prepare: a repository whose preparation was killed is prepared to the end, where pgBackRest
//     refuses.
//   - backup, serve, link and restore: pgBackRest refuses tablespaces that are directories in pg_tblspc, as ours
//     are. For it they are what a link in the data directory points to.
package pgbackrest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/postgres"
)

// Oldest is the oldest release that works: Debian 12's.
var Oldest = Version{2, 45, 0}

// Preferred is the release that scripts/install installs if the system's is older.
var Preferred = Version{2, 55, 1}

// variable names a program in place of the one that scripts/install makes.
const variable = "HOWDAH_PGBACKREST"

// ErrNone says that there is no program here that works.
var ErrNone = errors.New("pgBackRest 2.45 or newer is not installed: run scripts/install")

// Version is a release.
type Version [3]int

func (v Version) String() string {
	text := fmt.Sprintf("%d.%d", v[0], v[1])
	if v[2] > 0 {
		text += "." + strconv.Itoa(v[2])
	}
	return text
}

// atLeast reports whether v is not older than other.
func (v Version) atLeast(other Version) bool {
	for i := range v {
		if v[i] != other[i] {
			return v[i] > other[i]
		}
	}
	return true
}

// blocks reports whether a release can back up those blocks of a file alone that have changed.
func (v Version) blocks() bool { return v.atLeast(Version{2, 46, 0}) }

// Engine is one installed program.
type Engine struct {
	Program string
	Version Version
}

var _ backup.Engine = Engine{}

// Find finds the newest program: of those that scripts/install makes, and the system's.
func Find() (Engine, error) {
	if path := os.Getenv(variable); path != "" {
		return At(path)
	}
	places := []string{"/usr/bin/pgbackrest"}
	for _, prefix := range postgres.Prefixes() {
		found, err := filepath.Glob(filepath.Join(prefix, "pgbackrest-*/usr/bin/pgbackrest"))
		if err != nil {
			return Engine{}, fmt.Errorf("look for pgBackRest: %w", err)
		}
		places = append(places, found...)
	}
	var best Engine
	for _, path := range places {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		engine, err := At(path)
		if err != nil {
			continue // there may be another one
		}
		if engine.Version.atLeast(best.Version) {
			best = engine
		}
	}
	if best.Program == "" {
		return Engine{}, ErrNone
	}
	return best, nil
}

var versionForm = regexp.MustCompile(`^pgBackRest (\d+)\.(\d+)(?:\.(\d+))?`)

// At returns the program with this path.
func At(path string) (Engine, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "version").Output()
	if err != nil {
		return Engine{}, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	version, err := parseVersion(string(out))
	if err != nil {
		return Engine{}, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	if !version.atLeast(Oldest) {
		return Engine{}, fmt.Errorf("%s is pgBackRest %s: %w", path, version, ErrNone)
	}
	return Engine{Program: path, Version: version}, nil
}

var errVersion = errors.New("it did not say it as pgBackRest does")

func parseVersion(text string) (v Version, err error) {
	match := versionForm.FindStringSubmatch(text)
	if match == nil {
		return v, fmt.Errorf("%w: %q", errVersion, text)
	}
	for i, digits := range match[1:] {
		if digits == "" {
			continue
		}
		if v[i], err = strconv.Atoi(digits); err != nil {
			return v, fmt.Errorf("%w: %q", errVersion, text)
		}
	}
	return v, nil
}

// Name says which program it is.
func (e Engine) Name() string { return "pgBackRest " + e.Version.String() }
