// Package shape checks the import rules of ARCHITECTURE.md: a package that is said to be pure reads
// no file, opens no connection and starts no program.
package shape

import (
	"go/build"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "howdah/"

// impure has the packages that do I/O, or start what does. A name that ends in a slash stands for
// all packages below it.
var impure = []string{
	"os", "os/", "net", "net/http", "net/http/", "syscall", "io/ioutil", "log/slog", "database/sql", "sync", "context",
	"go.etcd.io/", "github.com/jackc/", "golang.org/x/sys/",
}

// allowed has, by importer, imports that pure packages may have although they are not pure, for
// their types only.
var allowed = map[string][]string{
	// The parts of a post-mortem are types of those who write them.
	"internal/failover/postmortem": {module + "internal/failover/fence", module + "internal/edge/seen"},
}

func TestPurePackagesDoNoIO(t *testing.T) {
	for _, pkg := range []string{
		"internal/model/param", "internal/control/plan", "internal/model/spec", "internal/identity/iam", "internal/model/member", "internal/model/route", "internal/failover/postmortem",
		"internal/model/network", "internal/model/network/cidr", "internal/model/event", "internal/model/topic", "internal/model/regain", "internal/model/operation",
		"internal/model/patroni", "internal/engine/patroni/config", "internal/engine/backup", "internal/model/lsn", "internal/model/zone",
	} {
		t.Run(pkg, func(t *testing.T) {
			for _, path := range reaches(t, pkg, map[string]bool{}) {
				if !strings.HasPrefix(path, module) && isImpure(path) {
					t.Errorf("it reaches %s", path)
				}
			}
		})
	}
}

// reaches returns all imports of a package, and of those packages of ours that it imports.
func reaches(t *testing.T, pkg string, seen map[string]bool) []string {
	t.Helper()
	p, err := build.ImportDir(filepath.Join("..", "..", pkg), 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, path := range p.Imports {
		if seen[path] || slices.Contains(allowed[pkg], path) {
			continue
		}
		seen[path] = true
		all = append(all, path)
		if own, ok := strings.CutPrefix(path, module); ok {
			all = append(all, reaches(t, own, seen)...)
		}
	}
	return all
}

func isImpure(path string) bool {
	return slices.ContainsFunc(impure, func(p string) bool {
		return path == p || strings.HasSuffix(p, "/") && strings.HasPrefix(path, p)
	})
}

// The rule must be able to fail.
func TestWhatDoesIOIsNoticed(t *testing.T) {
	for _, pkg := range []string{"internal/control/judge", "internal/host/agent", "internal/host/database", "internal/engine/patroni/rest", "internal/engine/postgres"} {
		if !slices.ContainsFunc(reaches(t, pkg, map[string]bool{}), isImpure) {
			t.Errorf("%s does I/O, and that is not seen", pkg)
		}
	}
}

// The pure planner knows nothing of those who carry out what it decides. Agents know nothing of
// those who decide.
func TestLayers(t *testing.T) {
	forbidden := map[string][]string{
		"internal/control/plan":   {"internal/control/reconcile", "internal/host/agent", "internal/host/database", "internal/state", "internal/failover/fence", "internal/control/judge", "internal/aws/server"},
		"internal/view":           {"internal/control/reconcile", "internal/host/agent", "internal/control/judge", "internal/aws/server"},
		"internal/host/agent":     {"internal/host/database", "internal/engine/patroni/config", "internal/engine/patroni/rest", "internal/engine/postgres", "internal/control/plan", "internal/control/reconcile", "internal/control/judge", "internal/aws/server", "internal/model/spec"},
		"internal/edge":           {"internal/control/plan", "internal/control/reconcile", "internal/control/judge", "internal/aws/server", "internal/host/agent"},
		"internal/failover/fence": {"internal/control/plan", "internal/control/reconcile", "internal/control/judge", "internal/aws/server", "internal/host/agent"},
		"internal/edge/endpoint":  {"internal/control/plan", "internal/control/reconcile", "internal/state", "internal/host/agent", "internal/edge"},
		"internal/aws/server":     {"internal/control/reconcile", "internal/control/judge", "internal/control/notify", "internal/host/agent", "internal/host/database"},
		// Instances and clusters know what they are alike in, and nothing of each other.
		"internal/aws/rds/database": {"internal/aws/rds/instance", "internal/aws/rds/cluster"},
		"internal/aws/rds/instance": {"internal/aws/rds/cluster"},
		"internal/aws/rds/cluster":  {"internal/aws/rds/instance"},
	}
	for pkg, names := range forbidden {
		for _, path := range reaches(t, pkg, map[string]bool{}) {
			for _, name := range names {
				if path == module+name {
					t.Errorf("%s reaches %s", pkg, path)
				}
			}
		}
	}
}

// What the parts of RDS stand on stands on none of them.
func TestALookReachesNoPartOfRDS(t *testing.T) {
	for _, path := range reaches(t, "internal/aws/rds/look", map[string]bool{}) {
		if strings.HasPrefix(path, module+"internal/aws/rds") || path == module+"internal/aws/server" {
			t.Errorf("it reaches %s", path)
		}
	}
}
