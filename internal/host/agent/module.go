package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"howdah/internal/engine/postgres"
)

// Our module in PostgreSQL keeps cancels from ending the wait of a commit, others than
// members from confirming one, and master users within their rights. The configuration
// that names it is no proof that it is loaded: a server may have been started with another
// one, and only the next start loads what is named since.

// lacksModule says what a server was started with that should have loaded the module, or "".
func (r *runner) lacksModule(f postgres.Facts) string {
	const setting = "shared_preload_libraries"
	wanted := cmp.Or(r.want.Parameters[setting], r.want.Cluster.Parameters[setting])
	if !namesModule(wanted) || namesModule(f.Libraries) {
		return ""
	}
	return fmt.Sprintf("it was started with %s = '%s'", setting, f.Libraries)
}

// namesModule: the module is in a list of libraries.
func namesModule(list string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(l string) bool { return strings.Trim(l, ` "`) == "howdah" })
}
