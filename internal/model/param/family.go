package param

import (
	"strconv"
	"strings"
)

const (
	postgresEngine = "postgres"
	auroraEngine   = "aurora-postgresql"
)

// Majors lists the major versions that have families.
var Majors = []int{15, 16, 17, 18}

// Family is an engine in one major version. Each group is made for one family.
type Family struct {
	Engine string
	Major  int
}

// Name returns RDS's name of the family, such as postgres15.
func (f Family) Name() string { return f.Engine + strconv.Itoa(f.Major) }

// DefaultGroup returns the name of the group that a database has when its user names none.
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

// ParseDefault reads the family from the name of a default group.
func ParseDefault(group string) (Family, bool) {
	name, ok := strings.CutPrefix(group, defaultPrefix)
	if !ok {
		return Family{}, false
	}
	return ParseFamily(name)
}

// IsDefault reports whether a name has the form of a default group's. Such names belong to the
// platform, even where there is no such group.
func IsDefault(group string) bool { return strings.HasPrefix(group, defaultPrefix) }

// Families returns all families, by engine and version.
func Families() []Family {
	var all []Family
	for _, engine := range []string{auroraEngine, postgresEngine} {
		for _, major := range Majors {
			all = append(all, Family{engine, major})
		}
	}
	return all
}
