// Package postgres drives PostgreSQL's own programs on one host: which versions
// are installed, prepared data directories, the control file, settings, and what
// a running server says of itself. It never starts a server that Patroni owns.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ErrNoVersion says that a major version is not installed here.
var ErrNoVersion = errors.New("this PostgreSQL version is not installed")

// Install is one major version's programs.
type Install struct {
	Major  int
	BinDir string
	Full   string // as "15.18"
}

// SupportedMajors lists the versions whose settings Howdah knows.
var SupportedMajors = []int{15, 16, 17, 18}

// Prefixes are where scripts/install puts things: for the user who ran it, or for
// everyone.
func Prefixes() []string {
	var places []string
	if dir, err := os.UserHomeDir(); err == nil && os.Geteuid() != 0 {
		places = append(places, filepath.Join(dir, ".local/share/howdah"))
	}
	return append(places, "/opt/howdah")
}

// places returns where a major version's programs may be. Packages of Debian and of the PostgreSQL
// project come before what scripts/install built, as they are kept up to date.
func places(major int) []string {
	dirs := []string{fmt.Sprintf("/usr/lib/postgresql/%d/bin", major)}
	for _, prefix := range Prefixes() {
		dirs = append(dirs, filepath.Join(prefix, fmt.Sprintf("postgresql-%d/bin", major)))
	}
	return dirs
}

// OfferVariable is the environment variable that names the major versions to be
// offered, as "15,17", where not all that are installed shall be.
const OfferVariable = "HOWDAH_POSTGRES"

// offered returns the supported versions that the environment allows.
func offered() []int {
	asked := os.Getenv(OfferVariable)
	if asked == "" {
		return SupportedMajors
	}
	names := strings.FieldsFunc(asked, func(r rune) bool { return r == ',' || r == ' ' })
	return slices.DeleteFunc(slices.Clone(SupportedMajors), func(major int) bool { return !slices.Contains(names, strconv.Itoa(major)) })
}

// Installed lists the installed major versions that may be offered, newest first.
func Installed() ([]Install, error) { return installed(offered(), places) }

func installed(majors []int, places func(major int) []string) ([]Install, error) {
	var found []Install
	for _, major := range majors {
		for _, bin := range places(major) {
			full, err := fullVersion(filepath.Join(bin, "postgres"))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			found = append(found, Install{Major: major, BinDir: bin, Full: full})
			break
		}
	}
	slices.Reverse(found)
	return found, nil
}

// Find returns the installation of one major version, or ErrNoVersion.
func Find(major int) (Install, error) {
	all, err := Installed()
	if err != nil {
		return Install{}, err
	}
	for _, i := range all {
		if i.Major == major {
			return i, nil
		}
	}
	return Install{}, fmt.Errorf("PostgreSQL %d: %w", major, ErrNoVersion)
}

var versionForm = regexp.MustCompile(`\(PostgreSQL\) ([0-9]+\.[0-9]+)`)

// answers holds what programs printed about themselves. Agents look every second at what is
// installed, and a program prints the same until its file changes.
var answers = struct {
	sync.Mutex
	of map[string]answer // by path
}{of: map[string]answer{}}

type answer struct {
	file os.FileInfo
	full string
}

func fullVersion(program string) (string, error) {
	file, err := os.Stat(program)
	if err != nil {
		return "", fmt.Errorf("find PostgreSQL: %w", err)
	}
	answers.Lock()
	defer answers.Unlock()
	old := answers.of[program]
	if old.file != nil && os.SameFile(old.file, file) && old.file.ModTime().Equal(file.ModTime()) && old.file.Size() == file.Size() {
		return old.full, nil
	}
	full, err := askVersion(program)
	if err != nil {
		return "", err
	}
	answers.of[program] = answer{file: file, full: full}
	return full, nil
}

func askVersion(program string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", program, err)
	}
	match := versionForm.FindSubmatch(out)
	if match == nil {
		return "", fmt.Errorf("ask %s for its version: answered %q", program, out)
	}
	return string(match[1]), nil
}

// Program is the path of one of the version's programs.
func (i Install) Program(name string) string { return filepath.Join(i.BinDir, name) }

// Extension reports whether a loadable module of this name is installed.
func (i Install) Extension(module string) bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(i.BinDir), "lib", module+".so"))
	return err == nil
}
