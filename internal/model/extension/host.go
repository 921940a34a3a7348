package extension

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Installed is what a host has for one major version of PostgreSQL: the version of each extension,
// and "" for a library without an extension, by name. It is nil if the host does not say, because
// its agent is of an older release, or could not look.
type Installed map[string]string

// Has reports whether it is known that the host has an extension or a library. Of a host that does
// not say, only what comes with PostgreSQL is.
func (i Installed) Has(name string) bool {
	if i == nil {
		e, known := Find(name)
		return known && e.Package == "" && e.Refused == ""
	}
	_, has := i[name]
	return has
}

// Missing returns which of the extensions that some host has are not known to be on all of them, by
// name.
func Missing(hosts ...Installed) []string {
	missing := map[string]bool{}
	for _, has := range hosts {
		for name := range has {
			missing[name] = slices.ContainsFunc(hosts, func(other Installed) bool { return !other.Has(name) })
		}
	}
	maps.DeleteFunc(missing, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(missing))
}

// Differing returns the extensions of which hosts have different versions, each with the oldest of
// them. An extension of a newer version than that does not work on all hosts: its objects need a
// library that is as new. Those of an older version work with a newer library: so are packages
// upgraded.
func Differing(hosts ...Installed) map[string]string {
	oldest, differs := map[string]string{}, map[string]bool{}
	for _, has := range hosts {
		for name, version := range has {
			known, seen := oldest[name]
			order := Compare(version, known)
			differs[name] = differs[name] || seen && order != 0
			if !seen || order < 0 {
				oldest[name] = version
			}
		}
	}
	maps.DeleteFunc(oldest, func(name, _ string) bool { return !differs[name] })
	return oldest
}

var words = regexp.MustCompile(`[0-9]+|[A-Za-z]+`)

// Compare orders two versions of an extension, number by number: 1.9 is older than 1.10, and 1.4 is
// older than 1.4-1. The module has the same order (extension_version.c).
func Compare(a, b string) int {
	return slices.CompareFunc(words.FindAllString(a, -1), words.FindAllString(b, -1), func(x, y string) int {
		n, notX := strconv.ParseUint(x, 10, 64)
		m, notY := strconv.ParseUint(y, 10, 64)
		if notX == nil && notY == nil {
			return cmp.Compare(n, m)
		}
		return strings.Compare(x, y)
	})
}
