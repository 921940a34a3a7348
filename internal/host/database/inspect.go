package database

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/host/tree"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/model/regain"
	"howdah/internal/system/owner"
)

// readWithin is how long the end of a member's WAL may be looked for.
const readWithin = 2 * time.Minute

// receivedEvery is how often the end of the WAL is looked for of a standby that runs.
const receivedEvery = 10 * time.Second

// keeper is a host as far as an inspector needs it.
type keeper interface {
	MemberDir(id string) string
	UserOf(id string) *owner.User
	Remembered(id string) (agent.Order, error)
	ReportOf(id string) (r member.Report, known bool)
}

// inspector says how new the data of members are.
type inspector struct {
	host keeper
	ends map[string]end // of members that do not run, or receive nothing
}

// Inspector begins with nothing that was found before.
func (a *Host) Inspector() agent.Inspector { return &inspector{host: a, ends: map[string]end{}} }

// end is where the WAL of a member ends. Reading it takes a while.
type end struct {
	changed time.Time // of its control file; of one that runs, when it was looked at
	copy    regain.Copy
}

// Inspect says what is here of a member whose directory can be read.
func (h *inspector) Inspect(ctx context.Context, c regain.Copy) (_ regain.Copy, ok bool) {
	a, id := h.host, c.Assignment.ID
	dir := filepath.Join(a.MemberDir(id), "data")
	control, err := postgres.ReadControl(dir)
	if errors.Is(err, postgres.ErrNoData) {
		return c, false
	}
	if err != nil {
		c.Unsettled = err.Error()
		return c, true
	}
	c.System = strconv.FormatUint(control.SystemID, 10)
	last, err := a.Remembered(id)
	if err != nil {
		c.Unsettled = "what it was told last cannot be read: " + err.Error()
		return c, true
	}
	c.Assignment, c.Told = last.Assignment, last.Told()
	report, known := a.ReportOf(id)
	switch {
	case !known:
		c.Unsettled = "it was not looked at yet"
	case report.Postgres:
		describeRunning(&c, dir, report)
		if c.Unsettled == "" && !c.Primary && !c.Streaming {
			h.received(ctx, &c, dir)
		} else {
			delete(h.ends, id)
		}
	default:
		return h.resting(ctx, c, dir, control)
	}
	return c, true
}

// describeRunning is for a member whose PostgreSQL runs.
func describeRunning(c *regain.Copy, dir string, report member.Report) {
	c.Running, c.Primary = true, !report.InRecovery
	if !report.Ready {
		c.Primary, c.Unsettled = false, "its PostgreSQL runs, and does not answer"
		return
	}
	newest, _, err := postgres.NewestWAL(dir)
	if err != nil {
		c.Unsettled = err.Error()
	}
	c.Streaming = report.InRecovery && report.Streaming
	c.Timeline, c.LSN = max(report.Timeline, newest), report.LSN
}

// received is where the WAL ends of a standby that runs and receives nothing: its
// PostgreSQL knows of what it received since it was started, and of what it has replayed,
// and there may be more. What it told may be some seconds old, too.
func (h *inspector) received(ctx context.Context, c *regain.Copy, dir string) {
	known, ok := h.ends[c.Assignment.ID]
	if !ok || !known.copy.Running || time.Since(known.changed) > receivedEvery {
		known = end{changed: time.Now(), copy: *c}
		var err error
		install, err := postgres.Find(c.Assignment.Major)
		if err == nil {
			known.copy.LSN, known.copy.Timeline, err = h.newestEnd(ctx, install, c.Assignment.ID, dir)
		}
		if err != nil {
			c.Unsettled = "the end of its WAL cannot be found: " + err.Error()
			return
		}
		h.ends[c.Assignment.ID] = known
	}
	c.Timeline, c.LSN = max(c.Timeline, known.copy.Timeline), max(c.LSN, known.copy.LSN)
}

// resting is a member whose PostgreSQL does not run.
func (h *inspector) resting(ctx context.Context, c regain.Copy, dir string, control postgres.Control) (regain.Copy, bool) {
	if tree.Exists(filepath.Join(dir, "backup_label")) {
		return c, false // it is being copied, and has nothing of its own
	}
	if link, err := os.Lstat(dir); err == nil && link.Mode()&os.ModeSymlink != 0 {
		// Half of it may be another primary's, who had all that this one acknowledged.
		return c, false
	}
	info, err := os.Stat(filepath.Join(dir, "global", "pg_control"))
	if err != nil {
		c.Unsettled = err.Error()
		return c, true
	}
	if known, ok := h.ends[c.Assignment.ID]; ok && !known.copy.Running && known.changed.Equal(info.ModTime()) {
		known.copy.Assignment, known.copy.Told = c.Assignment, c.Told
		return known.copy, true
	}
	follows := tree.Exists(filepath.Join(dir, standbyFile)) || tree.Exists(filepath.Join(dir, "recovery.signal"))
	c.Primary = !follows && slices.Contains([]postgres.State{postgres.InProduction, postgres.ShutDown, postgres.ShuttingDown, postgres.InCrashRecovery}, control.State)
	install, err := postgres.Find(c.Assignment.Major)
	if err == nil {
		c.LSN, c.Timeline, err = h.newestEnd(ctx, install, c.Assignment.ID, dir)
	}
	if err != nil {
		c.Unsettled = "the end of its WAL cannot be found: " + err.Error()
		return c, true
	}
	h.ends[c.Assignment.ID] = end{changed: info.ModTime(), copy: c}
	return c, true
}

// newestEnd reads WAL, up to as much as a server writes between checkpoints. The other
// members do not wait for ever for one whose disk hangs.
func (h *inspector) newestEnd(ctx context.Context, install postgres.Install, id, dir string) (lsn.LSN, int, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	return postgres.NewestEnd(ctx, install, h.host.UserOf(id), dir)
}
