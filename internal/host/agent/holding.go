package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/model/regain"
	"howdah/internal/state"
	"howdah/internal/system/fscrypt"
)

const (
	// holdingEvery is how often a host says what data it has while a database waits to be
	// taken over, and holdingSlow how often at other times after a restoration.
	holdingEvery = time.Second
	holdingSlow  = 30 * time.Second
	// readWithin is how long the end of a member's WAL may be looked for.
	readWithin = 2 * time.Minute
)

// holdings tells what data this host has once the home was restored, and tells all
// again that was told of the host and its members.
type holdings struct {
	agent   *Agent
	cache   *state.Cache
	home    string // of what was told; "": of nothing
	at      time.Time
	copies  map[string]regain.Copy // told, by member id
	members []string               // told
	hosts   []string               // told, or to be told
	listed  time.Time              // hosts were listed
	ends    map[string]end         // of members that do not run, or receive nothing
	sealed  map[string]sealed      // of members whose directories are locked
}

// end is where the WAL of a member ends. Reading it takes a while.
type end struct {
	changed time.Time // of its control file; of one that runs, when it was looked at
	copy    regain.Copy
}

func (a *Agent) followRestored(ctx context.Context) error {
	h := &holdings{agent: a, cache: state.NewCache(a.store.Client, a.Log, state.RestoredRoot, state.HeldRoot)}
	go func() { _ = h.cache.Run(ctx) }()
	if err := h.cache.Loaded(ctx); err != nil {
		return nil //nolint:nilerr // it was told to end
	}
	for sleep(ctx, holdingEvery) {
		_ = h.list(ctx) // again in a second; etcd may be away for long
		home, err := state.Load[regain.Home](h.cache, state.Restored())
		if err != nil {
			continue
		}
		if err := h.tell(ctx, home.Value); err != nil && ctx.Err() == nil {
			a.Log.Warn("tell the restored home what is here", "error", err)
		}
	}
	return nil
}

func (h *holdings) tell(ctx context.Context, home regain.Home) error {
	if h.home != home.ID {
		h.agent.Log.Info("the home was restored: telling it what is here", "from", home.From, "taken", home.Taken)
		h.home, h.at, h.copies, h.members = home.ID, time.Time{}, map[string]regain.Copy{}, nil
		h.ends, h.sealed = map[string]end{}, map[string]sealed{}
		h.agent.undescribed.Store(true)
		h.listed = time.Time{}
		if err := h.list(ctx); err != nil {
			h.home = "" // again
			return err
		}
		for _, r := range h.agent.allRunners() {
			r.publisher.again()
		}
	}
	if len(h.cache.Keys(state.HeldRoot)) == 0 && time.Since(h.at) < holdingSlow {
		return nil
	}
	copies, err := h.look(ctx)
	if err != nil {
		return err
	}
	ops, members := h.news(home.ID, copies)
	if len(ops) > 0 || h.at.IsZero() {
		said := regain.Holding{Home: home.ID, Host: h.agent.Name, Members: members, Hosts: h.hosts, At: time.Now().UTC()}
		// The list comes last: what it names is there.
		if _, err := h.agent.store.CommitEach(ctx, append(ops, state.Put(state.Holding(h.agent.Name), said))); err != nil {
			h.at = time.Time{}
			return err
		}
	}
	h.at, h.copies, h.members = time.Now(), copies, members
	return nil
}

// news are the changes since it was told last.
func (h *holdings) news(home string, copies map[string]regain.Copy) (ops []state.Op, members []string) {
	for id, c := range copies {
		members = append(members, id)
		c.Home = home
		copies[id] = c
		if old, told := h.copies[id]; !told || !reflect.DeepEqual(old, c) {
			ops = append(ops, state.Put(state.HeldCopy(h.agent.Name, id), c))
		}
	}
	slices.Sort(members)
	for id := range h.copies {
		if _, there := copies[id]; !there {
			ops = append(ops, state.Delete(state.HeldCopy(h.agent.Name, id)))
		}
	}
	return ops, members
}

// look finds all members of which data are here.
func (h *holdings) look(ctx context.Context) (map[string]regain.Copy, error) {
	entries, err := os.ReadDir(h.agent.path("members"))
	if err != nil {
		return nil, fmt.Errorf("look for members: %w", err)
	}
	copies := map[string]regain.Copy{}
	for _, e := range entries {
		if !memberIDForm.MatchString(e.Name()) {
			continue
		}
		if c, ok := h.copyOf(ctx, e.Name()); ok {
			copies[e.Name()] = c
		}
	}
	return copies, ctx.Err()
}

// copyOf is what is here of a member; not ok: no data.
func (h *holdings) copyOf(ctx context.Context, id string) (c regain.Copy, ok bool) {
	a := h.agent
	a.looking.Lock()
	defer a.looking.Unlock()
	c = regain.Copy{Host: a.Name}
	c.Assignment.ID = id
	c.Assignment.Scope, c.Assignment.Name, _ = strings.Cut(id, ".")
	key, encrypted, err := fscrypt.Of(a.memberDir(id))
	state := fscrypt.Present
	if err == nil && encrypted {
		c.Encrypted = true
		state, err = fscrypt.KeyState(a.memberDir(id), key)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return c, false
	case err != nil:
		c.Unsettled = "it cannot be known whether its directory is locked: " + err.Error()
		return c, true
	case state != fscrypt.Present:
		return h.unsealed(ctx, c, key)
	}
	delete(h.sealed, id)
	return h.readable(ctx, c)
}

// readable is what is here of a member whose directory can be read.
func (h *holdings) readable(ctx context.Context, c regain.Copy) (_ regain.Copy, ok bool) {
	a, id := h.agent, c.Assignment.ID
	dir := filepath.Join(a.memberDir(id), "data")
	control, err := postgres.ReadControl(dir)
	if errors.Is(err, postgres.ErrNoData) {
		return c, false
	}
	if err != nil {
		c.Unsettled = err.Error()
		return c, true
	}
	c.System = strconv.FormatUint(control.SystemID, 10)
	last, err := a.remembered(id)
	if err != nil {
		c.Unsettled = "what it was told last cannot be read: " + err.Error()
		return c, true
	}
	c.Assignment, c.Told = last.Assignment, last.told()
	report, known := a.reportOf(id)
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

// receivedEvery is how often the end of the WAL is looked for of a standby that runs.
const receivedEvery = 10 * time.Second

// received is where the WAL ends of a standby that runs and receives nothing: its
// PostgreSQL knows of what it received since it was started, and of what it has replayed,
// and there may be more. What it told may be some seconds old, too.
func (h *holdings) received(ctx context.Context, c *regain.Copy, dir string) {
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
func (h *holdings) resting(ctx context.Context, c regain.Copy, dir string, control postgres.Control) (regain.Copy, bool) {
	if exists(filepath.Join(dir, "backup_label")) {
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
	follows := exists(filepath.Join(dir, standbySignal)) || exists(filepath.Join(dir, "recovery.signal"))
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
func (h *holdings) newestEnd(ctx context.Context, install postgres.Install, id, dir string) (lsn.LSN, int, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	return postgres.NewestEnd(ctx, install, h.agent.userOf(id), dir)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// reportOf is what was seen of a member last; not known: nobody looked yet.
func (a *Agent) reportOf(id string) (r member.Report, known bool) {
	a.mu.Lock()
	runner, ok := a.runners[id]
	a.mu.Unlock()
	if !ok {
		return r, false
	}
	r = runner.publisher.newest()
	return r, r.ID != ""
}
