// Package origin makes the first data of a restored database, beside its member and before Patroni
// is started. Patroni's initdb script then takes the data, as that of any new database takes
// prepared ones. A member of a restored database is never handed an empty data directory: its
// script has no other data than those that were restored.
package origin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
	"howdah/internal/host/restore"
	"howdah/internal/host/tree"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
)

// dir is where a member's first data are made, below its directory.
const dir = "restore"

// groupSuffix tells the group of the programs that make them from the member's own.
const groupSuffix = ".restore"

// tellEvery is how often progress is reported at most.
const tellEvery = 2 * time.Second

// Source opens what a member is restored from, for reading.
type Source struct {
	// Live is the server that is cloned; nil: it is restored from a repository.
	Live *restore.Live
	// Encrypted says that its storage is, so that of its clone has to be.
	Encrypted bool
	Engine    backup.Engine
	Access    backup.Access
	// CA signs the repository's certificate, as PEM; nil: Access says it.
	CA []byte
	// Close ends the access; nil: there is nothing to end.
	Close func()
}

// Open opens it for a member of this host. An error that is final (restore.Final) is not tried
// again.
type Open func(ctx context.Context, id string, from member.Restore) (Source, error)

// ErrSourceAway says that no server of the database that is cloned answers on this host.
var ErrSourceAway = errors.New("the database that it is a clone of does not answer here")

// errPlain is not met by way of the API, which encrypts such a clone.
var errPlain = &restore.Error{Reason: "the storage of the database that it is a clone of is encrypted, and its own is not", Final: true}

// ErrNoRepositories says that this host cannot read repositories.
var ErrNoRepositories = errors.New("this host cannot read repositories")

// Restorer makes the data of one member. The exported fields are required; its methods are called by
// the member's goroutine.
type Restorer struct {
	*agent.Member
	Agent   *agent.Agent
	DataDir string
	Open    Open
	// Made is called by the member's goroutine when the data are there.
	Made func()

	looked  bool               // what an earlier agent left was ended
	going   bool               // a goroutine restores
	cancel  context.CancelFunc // of that; set while it goes on
	of      member.Restore     // what is or was restored
	whole   bool               // those data are there
	gaveUp  bool               // they cannot be made
	retry   pace.Backoff
	tidying bool

	mu     sync.Mutex
	told   *member.Restoring // guarded by mu; replaced, never changed
	toldAt time.Time         // guarded by mu
}

func place(memberDir string) string { return filepath.Join(memberDir, dir) }

// Script stands for initdb in the Patroni configuration of a member that inherits its data.
func Script(memberDir string) []byte {
	return fmt.Appendf(nil, `#!/bin/sh
# Called by Patroni in place of initdb: moves the data that were restored to the place that the
# last argument names. There are no others: the database never begins empty.
for data; do :; done
[ -d '%[1]s' ] && exec mv -T '%[1]s' "$data"
echo "the data of this database are restored by another member, or are not restored yet" >&2
exit 1
`, restore.DataDir(place(memberDir)))
}

func (r *Restorer) group() (*proc.Group, error) { return groupOf(r.Agent, r.ID) }

func groupOf(a *agent.Agent, id string) (*proc.Group, error) {
	return a.Procs.Group(strings.ToLower(id) + groupSuffix)
}

// Settled reports whether nothing is being restored that shall not be: it ends that, also what an
// earlier agent left. Until it is settled nothing else may be done with the member.
func (r *Restorer) Settled(ctx context.Context) bool {
	wanted := r.Want.Want == member.Running && r.Want.Restore != nil && !tree.Exists(r.DataDir)
	if r.going {
		if wanted && *r.Want.Restore == r.of {
			return true
		}
		r.cancel()
		return false
	}
	if r.looked || wanted || !r.Want.Inherits {
		return true // nothing is left, or Restore ends it
	}
	group, err := r.group()
	if err == nil {
		_, err = group.Kill(ctx)
	}
	if err != nil {
		r.Problem, r.Detail = member.CannotContain, err.Error()
		return false
	}
	r.looked = true
	return true
}

// Told has what failed tried again.
func (r *Restorer) Told() { r.retry, r.gaveUp = pace.Backoff{}, false }

// Makes reports whether the member's first data are not there yet. It has them made. Patroni must
// not be started before.
func (r *Restorer) Makes(ctx context.Context) bool {
	if r.Want.Restore == nil || tree.Exists(r.DataDir) {
		return false
	}
	if r.of != *r.Want.Restore {
		r.of, r.whole = *r.Want.Restore, false
		r.Told()
	}
	r.whole = r.whole && tree.Exists(restore.DataDir(place(r.Dir())))
	now := time.Now()
	if r.whole || r.going || r.gaveUp || !r.retry.Ready(now) {
		return !r.whole
	}
	r.retry.Attempt(now)
	r.Acted = r.Want.Generation
	ctx, r.cancel = context.WithCancel(ctx)
	r.going, r.looked = true, true
	want := r.Want
	r.tell(&member.Restoring{Phase: "files", Began: now.UTC()})
	r.Go(func() {
		result, err := r.restore(ctx, want)
		r.tell(nil)
		stopped := ctx.Err() != nil
		r.Do(func(context.Context) { r.ended(result, err, stopped) })
	})
	return true
}

// ended takes note of how a restore ended.
func (r *Restorer) ended(result restore.Result, err error, stopped bool) {
	r.cancel()
	r.going = false
	switch {
	case err == nil:
		r.whole, r.retry = true, pace.Backoff{}
		r.Problem, r.Detail = member.None, ""
		r.Log.Info("restored", "from", sourceOf(r.of), "until", result.EndLSN.String(), "last_commit", result.LastCommit, "bytes", result.Bytes, "shared", result.Shared, "files", result.Files.String(), "replay", result.Replay.String())
		r.Made()
	case stopped:
	case restore.Final(err):
		r.gaveUp = true
		r.Problem, r.Detail = member.RestoreFails, err.Error()
		r.Log.Error("restore", "from", sourceOf(r.of), "error", err)
	default:
		r.Problem, r.Detail = problemOf(err), "restore: "+err.Error()
		r.Log.Warn("restore", "from", sourceOf(r.of), "attempt", r.retry.Failures, "error", err)
	}
}

// problemOf tells what holds a restore up that is tried again.
func problemOf(err error) member.Problem {
	switch text := err.Error(); {
	case errors.Is(err, ErrSourceAway):
		return member.SourceAway
	case errors.Is(err, postgres.ErrNoVersion):
		return member.NoVersion
	case errors.Is(err, syscall.ENOSPC), strings.Contains(text, syscall.ENOSPC.Error()), strings.Contains(text, "No space left on device"):
		return member.DiskFull
	case errors.Is(err, syscall.EDQUOT), strings.Contains(text, "Disk quota exceeded"):
		return member.StorageFull
	default:
		return member.StartFails
	}
}

// Restoring is how far the restore is; nil: none goes on. The same value is the same pointer.
func (r *Restorer) Restoring() *member.Restoring {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told
}

// tell notes progress, if a moment has passed, or something else goes on.
func (r *Restorer) tell(now *member.Restoring) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now != nil && r.told != nil && now.Phase == r.told.Phase && time.Since(r.toldAt) < tellEvery {
		return
	}
	r.told, r.toldAt = now, time.Now()
}

// restore makes the data.
func (r *Restorer) restore(ctx context.Context, want member.Assignment) (restore.Result, error) {
	from := *want.Restore
	target, err := targetOf(from)
	if err != nil {
		return restore.Result{}, err
	}
	install, err := postgres.Find(want.Major)
	if err != nil {
		return restore.Result{}, err
	}
	group, err := r.group()
	if err != nil {
		return restore.Result{}, err
	}
	source, err := r.Open(ctx, want.ID, from)
	if err != nil {
		return restore.Result{}, fmt.Errorf("open the repository %s: %w", from.Repository, err)
	}
	if source.Encrypted && !want.Encrypted {
		return restore.Result{}, errPlain
	}
	// Patroni keeps what it failed to start.
	err = r.User().Do(func() error { return os.RemoveAll(r.DataDir + ".failed") })
	if err != nil {
		return restore.Result{}, err
	}
	if source.Close != nil {
		defer source.Close()
	}
	settings := map[string]string{}
	for _, all := range []map[string]string{want.Cluster.Parameters, want.Parameters} {
		if value := all["shared_buffers"]; value != "" {
			settings["shared_buffers"] = value
		}
	}
	return restore.Restore(ctx, restore.Request{
		Dir: place(r.Dir()), User: r.User(), Procs: r.Agent.Procs, Group: group, NoSubvolumes: r.Agent.IsVolume(want.ID),
		Limit: func(p proc.Process) { r.limit(group, want.Limits, p) }, Install: install,
		Engine: source.Engine, Live: source.Live,
		Place:  backup.Place{Database: from.Database, Repositories: []backup.Access{source.Access}, User: superuser, DBName: database},
		CA:     source.CA,
		Source: backup.Restore{Repository: from.Repository, Label: from.Label, Target: target},
		// No server of the member runs.
		SocketDir: r.Agent.SocketDir(want.ID), Port: want.Port, Superuser: superuser, DBName: database, Settings: settings,
		Finish:   postgres.LeaveSource,
		Progress: func(p member.Restoring) { r.tell(&p) }, Log: r.Log,
	})
}

// sourceOf says in words what is restored.
func sourceOf(from member.Restore) string {
	if from.Live {
		return "the database " + from.Database
	}
	return from.Label
}

// The platform's superuser and database, which all databases have.
const superuser, database = "rdsadmin", "rdsadmin"

func targetOf(from member.Restore) (backup.Target, error) {
	t := backup.Target{Until: from.Until, Before: from.Before, Newest: from.Newest}
	if from.LSN != "" {
		at, err := lsn.Parse(from.LSN)
		if err != nil {
			return t, &restore.Error{Reason: err.Error(), Final: true}
		}
		t.LSN = at
	}
	return t, nil
}

// limit puts a program under the limits of the member's class.
func (r *Restorer) limit(group *proc.Group, l member.Limits, p proc.Process) {
	limits := proc.Limits{CPUs: l.CPUs, MemoryBytes: l.MemoryBytes, IOPS: l.IOPS}
	if device, err := proc.DeviceOf(r.Dir()); err == nil {
		limits.Device = device
	}
	_, err := group.Limit(limits)
	if err == nil {
		err = group.MoveDatabase(p)
	}
	if err != nil && !errors.Is(err, proc.ErrGone) && !errors.Is(err, proc.ErrMoving) {
		r.Log.Warn("limit a restore", "error", err)
	}
}

// Tidy removes, beside the member, what a restore left once the member has data.
func (r *Restorer) Tidy(ctx context.Context) {
	if r.tidying || r.going || !tree.Exists(r.DataDir) || !tree.Exists(place(r.Dir())) {
		return
	}
	group, err := r.group()
	if err != nil {
		return
	}
	r.tidying = true
	r.Go(func() {
		if err := restore.Discard(ctx, group, r.User(), place(r.Dir())); err != nil {
			r.Log.Warn("remove what a restore left", "error", err)
		}
		r.Do(func(context.Context) { r.tidying = false })
	})
}

// Forget removes the group of a member that was deleted.
func Forget(ctx context.Context, a *agent.Agent, id string) error {
	group, err := groupOf(a, id)
	if err != nil {
		return err
	}
	if _, err := group.Kill(ctx); err != nil {
		return err
	}
	return group.Remove()
}
