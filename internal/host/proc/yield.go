package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"howdah/internal/host/proc/cgroup"
)

// yieldNice is the nice value of what yields: it weighs about a tenth of others (sched(7)).
const yieldNice = "10"

// yields makes a command that yields.
func (c Command) yields() Command {
	if c.Yields {
		c.Path, c.Args = "/usr/bin/nice", append([]string{"-n", yieldNice, c.Path}, c.Args...)
	}
	return c
}

// standBack has a session that was just started stand back as a whole. A nice value counts among the
// processes of one session only where the kernel shares the processors out among sessions
// (sched(7), autogroup) or control groups. A kernel that does neither has no means, and needs none.
func (g *Group) standBack(pid int) error {
	err := os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(yieldNice), 0)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // the kernel has none, or the process has ended
	}
	layout := g.host.layout
	if layout.CPU.Version == cgroup.V2 {
		err = errors.Join(err, cgroup.YieldCPU(cgroup.V2, g.weightDir(layout.CPU)))
	}
	if layout.IO.Version == cgroup.V2 {
		if weighed := cgroup.YieldIO(cgroup.V2, g.weightDir(layout.IO)); !errors.Is(weighed, cgroup.ErrNoWeight) {
			err = errors.Join(err, weighed)
		}
	}
	return err
}

// weightDir is the group whose weight counts against those of other members: a group in version 2 is
// weighed against its siblings, and PostgreSQL's has only Patroni's beside it.
func (g *Group) weightDir(controller cgroup.Controller) string {
	if controller.Version == cgroup.V2 {
		return g.below(g.host.layout.Unified)
	}
	return g.limitDir(controller)
}
