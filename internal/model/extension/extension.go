// Package extension knows the extensions that databases can have: what each is for, which package
// has it, whether users may create it, and why not. It is the only such list. The module's own list
// (extensions/howdah/src/howdah.c), what scripts/install installs, the parameters of parameter
// groups and the page of the guide are made of it, or compared with it by a test. It does no I/O.
package extension

import (
	"slices"
	"strconv"
	"strings"
)

// Extension is one extension of PostgreSQL.
type Extension struct {
	// Name is what CREATE EXTENSION calls it. Libraries that come without an extension have the
	// library's name.
	Name string
	// For says in a few words what it is for.
	For string
	// Package is its Debian package, where N stands for the major version of PostgreSQL. "" says
	// that it comes with PostgreSQL.
	Package string
	// Version is that of the package in Debian 12. Hosts say what they really have.
	Version string
	// Source is the package of a later Debian's sources that it is built of where there is no
	// Package: see scripts/build-extension.
	Source string
	// Library is what shared_preload_libraries must name before the extension can be used, or may
	// name for it: see Preload. It is also the library of what is a plugin of logical slots.
	Library string
	Preload Preload
	// Until is the last major version that has it. 0 says that the newest one does.
	Until int
	// Refused says why users may not create it, as a sentence without its full stop. "" says that
	// they may.
	Refused string
	// Note says what is different from PostgreSQL or RDS, or what has to be known to use it.
	Note string
}

// Preload says when a library has to be loaded.
type Preload string

// The kinds.
const (
	Never   Preload = ""        // when it is used, by itself
	May     Preload = "may"     // it does more if it is preloaded
	Must    Preload = "must"    // it does nothing without
	Session Preload = "session" // it may also be loaded for each session
)

// All returns all extensions, by name.
func All() []Extension {
	all := slices.Concat(contrib, packaged)
	slices.SortFunc(all, func(a, b Extension) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Find finds an extension by its name.
func Find(name string) (Extension, bool) {
	i := slices.IndexFunc(all, func(e Extension) bool { return e.Name == name })
	if i < 0 {
		return Extension{}, false
	}
	return all[i], true
}

var all = All()

// Creatable reports whether it is an extension that users may create.
func (e Extension) Creatable() bool { return e.Refused == "" && !e.bare() }

// bare reports whether there is a library, and no extension.
func (e Extension) bare() bool { return slices.Contains(bareLibraries, e.Name) }

// In reports whether a major version of PostgreSQL can have it.
func (e Extension) In(major int) bool { return e.Until == 0 || major <= e.Until }

// DebianPackage returns the package for a major version of PostgreSQL, or "".
func (e Extension) DebianPackage(major int) string {
	return strings.ReplaceAll(e.Package, "N", strconv.Itoa(major))
}

// Names returns the names of all extensions that users may create.
func Names() []string {
	var names []string
	for _, e := range all {
		if e.Creatable() {
			names = append(names, e.Name)
		}
	}
	return names
}

// Libraries returns the libraries that may be preloaded by the server.
func Libraries() []string { return libraries(func(Extension) bool { return true }) }

// SessionLibraries returns the libraries that may be loaded for each session. A library that must
// not would end every session as it begins, the platform's too.
func SessionLibraries() []string {
	return libraries(func(e Extension) bool { return e.Preload == Session })
}

func libraries(which func(Extension) bool) []string {
	var names []string
	for _, e := range all {
		if e.Library != "" && e.Preload != Never && e.Refused == "" && which(e) {
			names = append(names, e.Library)
		}
	}
	return names
}

// Missing returns which of the extensions that some host has are not on all of them, by name. Each
// host is the names of what it has; one that is nil said nothing, and counts as one that has all.
func Missing(hosts ...[]string) []string {
	hosts = slices.DeleteFunc(slices.Clone(hosts), func(has []string) bool { return has == nil })
	var missing []string
	for _, has := range hosts {
		for _, name := range has {
			everywhere := !slices.ContainsFunc(hosts, func(other []string) bool { return !slices.Contains(other, name) })
			if !everywhere && !slices.Contains(missing, name) {
				missing = append(missing, name)
			}
		}
	}
	slices.Sort(missing)
	return missing
}
