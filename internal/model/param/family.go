package param

import (
	"strconv"
	"strings"
)

const (
	postgresEngine = "postgres"
	auroraEngine   = "aurora-postgresql"
)

// Majors are the versions that there are families of.
var Majors = []int{15, 16, 17, 18}

// Family is what groups are made for: an engine in one major version.
type Family struct {
	Engine string
	Major  int
}

// Name is RDS's name: postgres15.
func (f Family) Name() string { return f.Engine + strconv.Itoa(f.Major) }

// DefaultGroup is the name of the group that a database has when none is given.
func (f Family) DefaultGroup() string { return defaultPrefix + f.Name() }

const defaultPrefix = "default."

// ParseFamily reads a family's name.
func ParseFamily(name string) (Family, bool) {
	for _, f := range Families() {
		if f.Name() == name {
			return f, true
		}
	}
	return Family{}, false
}

// ParseDefault reads the name of a default group.
func ParseDefault(group string) (Family, bool) {
	name, ok := strings.CutPrefix(group, defaultPrefix)
	if !ok {
		return Family{}, false
	}
	return ParseFamily(name)
}

// IsDefault: names of this form are the platform's, whether it has such a group or
// not.
func IsDefault(group string) bool { return strings.HasPrefix(group, defaultPrefix) }

// Families are all of them, by engine and version.
func Families() []Family {
	var all []Family
	for _, engine := range []string{auroraEngine, postgresEngine} {
		for _, major := range Majors {
			all = append(all, Family{engine, major})
		}
	}
	return all
}
