package database

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
)

// Our module in PostgreSQL keeps cancels from ending the wait of a commit, others than
// members from confirming one, and master users within their rights. The configuration
// that names it is no proof that it is loaded: a server may have been started with another
// one, and only the next start loads what is named since.

// moduleEvery is how often the agent looks whether a server has the module that is installed.
const moduleEvery = 10 * time.Second

// moduleLook is the last look at the module that a server has loaded.
type moduleLook struct {
	of       proc.Process
	at       time.Time
	replaced bool
}

// lacks says what a server was started with that should have loaded the installed module,
// or "".
func (l *moduleLook) lacks(want member.Assignment, f postgres.Facts, server proc.Process) string {
	const setting = "shared_preload_libraries"
	wanted := cmp.Or(want.Parameters[setting], want.Cluster.Parameters[setting])
	switch {
	case !namesModule(wanted):
		return ""
	case !namesModule(f.Libraries):
		return fmt.Sprintf("it was started with %s = '%s'", setting, f.Libraries)
	case l.old(server, time.Now()):
		return "it has the one of an older installation, which was replaced after it was started"
	}
	return ""
}

// old reports whether the file of the module that a server has loaded was replaced since. Where
// the agent may not see what a process has loaded, it is not.
func (l *moduleLook) old(server proc.Process, now time.Time) bool {
	if l.of != server || now.Sub(l.at) >= moduleEvery {
		maps, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(server.PID), "maps"))
		*l = moduleLook{of: server, at: now, replaced: err == nil && hasReplaced(string(maps))}
	}
	return l.replaced
}

// hasReplaced reports whether a process has a module in its memory whose file has no name any more:
// an installation renames the new file over it. maps is the text of /proc/PID/maps (proc(5)).
func hasReplaced(maps string) bool {
	return slices.ContainsFunc(strings.Split(maps, "\n"), func(line string) bool {
		file, deleted := strings.CutSuffix(line, " (deleted)")
		return deleted && strings.HasSuffix(file, "/"+postgres.ModuleFile)
	})
}

// namesModule: the module is in a list of libraries.
func namesModule(list string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(l string) bool { return strings.Trim(l, ` "`) == "howdah" })
}
