package param

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Effect is what the values of groups mean for PostgreSQL.
type Effect struct {
	// Settings are settings of PostgreSQL.
	Settings map[string]string
	// ForceTLS, Logical and Cache (cluster cache management) are nil if no group sets them.
	ForceTLS, Logical, Cache *bool
}

// platformLibraries are always preloaded, whatever a group says.
var platformLibraries = []string{"pg_stat_statements", "howdah"}

// Apply turns values into settings for one machine. Values were checked when they were set. A
// formula that cannot be computed for this machine is left out: then the default is in force, which
// is better than a database that is down.
func Apply(values map[string]string, m Machine) Effect {
	e := Effect{Settings: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values[name]
		if IsFormula(value) {
			n, err := Evaluate(value, m)
			if err != nil {
				continue
			}
			value = strconv.FormatInt(n, 10)
		}
		switch name {
		case forceSSL:
			e.ForceTLS = boolOf(value)
			e.Settings[name] = value
		case logicalReplication:
			e.Logical = boolOf(value)
			e.Settings[name] = value
		case ccm:
			e.Cache = boolOf(value)
		case rdsExtensions, allowedExtensions:
		case "shared_preload_libraries":
			e.Settings[name] = preload(value)
			if slices.Contains(Names(value), "pg_cron") {
				// Otherwise jobs would log in over TCP, without a password.
				e.Settings["cron.use_background_workers"] = "on"
			}
		default:
			e.Settings[name] = value
		}
	}
	e.extensions(values)
	bound(e.Settings, m)
	return e
}

// extensions sets which extensions users may create.
func (e Effect) extensions(values map[string]string) {
	all, listed := values[rdsExtensions]
	allowed, narrowed := values[allowedExtensions]
	names := Names(all)
	switch only := Names(allowed); {
	case !narrowed || slices.Contains(only, "*"):
		if !listed {
			return
		}
	case listed:
		names = slices.DeleteFunc(names, func(n string) bool { return !slices.Contains(only, n) })
	default:
		names = only
	}
	e.Settings["howdah.extensions"] = Quoted(names) // the module shows it as rds.extensions, too
	if narrowed {
		e.Settings[allowedExtensions] = allowed
	}
}

// Quoted returns a list of names with each name quoted as an identifier of PostgreSQL.
func Quoted(names []string) string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = `"` + strings.ReplaceAll(n, `"`, `""`) + `"`
	}
	return strings.Join(all, ",")
}

func boolOf(value string) *bool {
	on, ok := parseBool(value)
	if !ok {
		return nil
	}
	return &on
}

func preload(value string) string {
	libraries := slices.Clone(platformLibraries)
	for _, name := range Names(value) {
		if !slices.Contains(libraries, name) {
			libraries = append(libraries, name)
		}
	}
	return strings.Join(libraries, ",")
}

// Added returns the libraries that settings have the server load, or each session, beside the platform's own.
func Added(settings map[string]string) []string {
	var added []string
	for _, name := range append(Names(settings["shared_preload_libraries"]), Names(settings["session_preload_libraries"])...) {
		if !slices.Contains(platformLibraries, name) && !slices.Contains(added, name) {
			added = append(added, name)
		}
	}
	return added
}

// Split separates the values for a whole database from the values for a single member.
func Split(values map[string]string) (database, member map[string]string) {
	database, member = map[string]string{}, map[string]string{}
	for name, value := range values {
		if Shared(name) {
			database[name] = value
			continue
		}
		member[name] = value
	}
	return database, member
}
