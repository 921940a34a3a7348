// Package conformance says by tests what an engine for backups must do. An engine's own tests run
// it with the real program, and with a real PostgreSQL.
package conformance

import (
	"maps"
	"slices"
	"testing"

	"howdah/internal/engine/backup"
	"howdah/internal/repository/store"
	"howdah/internal/testkit/pgtest"
)

// Config says what to test.
type Config struct {
	Engine backup.Engine
	// Other is the same engine of another release; nil: there is none here.
	Other backup.Engine
	// Brief leaves out what waits long for repositories that are away.
	Brief bool
	// Open makes an empty repository, and returns how a database whose server is s reaches its own
	// part. The repository is gone when the test ends.
	Open func(t testing.TB, s *pgtest.Server, name, database string) Repository
	// Copies says that repositories have Objects, and that the engine is a backup.Copier.
	Copies bool
}

// Repository is one that the suite may break.
type Repository struct {
	Access backup.Access
	// Remove takes away what has this in its name, and reports how many files there were.
	Remove func(t testing.TB, part string) int
	// Spoil replaces the content of each file whose path matches below the repository, and lists them. No
	// content removes the file. undo puts all back.
	Spoil func(t testing.TB, match func(path string) bool, change func(content []byte) []byte) (paths []string, undo func())
	// Away makes the repository fail, until back is called.
	Away func(t testing.TB) (back func())
	// Objects has the files of the repository, as the owner of it sees them.
	Objects store.Objects
}

// Run tests an engine.
func Run(t *testing.T, c Config) {
	t.Helper()
	all := map[string]func(*testing.T, Config){
		"archive":      testArchive,
		"standby":      testStandby,
		"third":        testThird,
		"foreign":      testForeign,
		"cap":          testCap,
		"second":       testSecond,
		"backup":       testBackup,
		"of a standby": testOfStandby,
		"targets":      testTargets,
		"end":          testEnd,
		"gap":          testGap,
		"expire":       testExpire,
		"wrong key":    testWrongKey,
		"other data":   testOtherData,
	}
	if c.Copies {
		all["copy"] = testCopy
	}
	run(t, c, all)
}

// RunDamage tests what an engine makes of a repository that is damaged, or away.
func RunDamage(t *testing.T, c Config) {
	t.Helper()
	run(t, c, map[string]func(*testing.T, Config){"damage": testDamage, "spoilt WAL": testSpoiltWAL, "away": testAway})
}

// long are the tests that wait long for repositories that are away.
var long = []string{"cap", "second", "gap", "of a standby"}

// run runs tests beside each other. The long ones begin, so that none is left alone at the end.
func run(t *testing.T, c Config, all map[string]func(*testing.T, Config)) {
	t.Helper()
	names := slices.Sorted(maps.Keys(all))
	slices.SortStableFunc(names, func(a, b string) int { return slices.Index(long, b) - slices.Index(long, a) })
	for _, name := range names {
		if c.Brief && slices.Contains(long, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all[name](t, c)
		})
	}
}
