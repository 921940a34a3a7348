package agent

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

var errNoModule = errors.New("the module howdah is not installed for it: run scripts/install")

// findModules is the directory with our PostgreSQL modules for a major version.
func findModules(major int) (string, error) {
	for _, prefix := range postgres.Prefixes() {
		dir := filepath.Join(prefix, "lib", strconv.Itoa(major))
		if _, err := os.Stat(filepath.Join(dir, "howdah.so")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("PostgreSQL %d: %w", major, errNoModule)
}
