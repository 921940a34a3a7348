package logfile

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// However many files there are, and whatever their names, few are looked at: the oldest, which are
// to be trimmed, and the newest.
func TestFewOfManyFilesAreLookedAt(t *testing.T) {
	t.Parallel()
	d := newDir(t, nil)
	const many = 2*mostNames + namesOnce
	name := func(n int) string {
		return time.Date(2026, 1, 1, n, 0, 0, 0, time.UTC).Format("postgresql.log.2006-01-02-15")
	}
	for n := range many {
		must(t, os.WriteFile(d.path(name(n)), nil, 0o600))
		must(t, os.WriteFile(d.path(fmt.Sprint(n)), nil, 0o600))
	}
	all := d.names(t)
	if len(all) != mostNames || all[0] != name(0) || all[len(all)-1] != name(many-1) {
		t.Errorf("%d files from %s to %s", len(all), all[0], all[len(all)-1])
	}
}
