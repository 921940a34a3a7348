package database

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/engine/patroni/program"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// writesHalf is a program with the modules of the real Patroni that writes a file as
// Patroni does, and says what others read in the middle of it and after it.
const writesHalf = `exec '%s' -c '
import os, signal
signal.signal(signal.SIGHUP, signal.SIG_IGN)
from patroni.postgresql.config import ConfigWriter
def read():
    return open("postgresql.conf").read().split()[-1]
open("postgresql.conf", "w").write("before")
with ConfigWriter("postgresql.conf") as f:
    f.writeline("after")
    between = read()
print(between, read(), os.environ.get("PYTHONPATH", "none"), file=open("said", "w"))
signal.pause()
'
`

// Patroni rewrites PostgreSQL's configuration when it is told to reload, also while it
// starts PostgreSQL. Who reads it then must not see half of it.
func TestPatroniReplacesConfigurationsWhole(t *testing.T) {
	t.Parallel()
	program, err := program.Find()
	if err != nil {
		testkit.Missing(t, err.Error())
	}
	w := newWorld(t, fmt.Sprintf(writesHalf, filepath.Join(filepath.Dir(program), "python3")))
	w.run(nil)
	a := w.Assignment("db-1", 1)
	w.Assign(a)
	var said string
	testkit.Eventually(t, 2*hosttest.Soon, func() error {
		if said = strings.Join(w.Lines(a.ID, "said"), " "); said == "" {
			return errors.New("it has not written yet")
		}
		return nil
	})
	if said != "before after none" {
		t.Errorf("in the middle, at the end, and Python's path of what it starts: %s", said)
	}
}
