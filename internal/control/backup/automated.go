package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// automate sees to the automated backups of a database that lives: it keeps their record, and begins
// one when it is due.
func (k *keeper) automate(ctx context.Context, t target) error {
	c := t.common()
	r, has := k.automated[c.ResourceID]
	if c.Deleting || c.Final != "" || c.Hidden() || t.follows() {
		return nil
	}
	if c.BackupRetention == 0 {
		if has {
			return k.commit(ctx, state.Remove(r.Key, r.Revision))
		}
		return nil
	}
	layout, err := state.View[plan.Layout](k.Cache, state.Layout(c.ResourceID))
	if err != nil || !layout.Value.Created {
		return nil //nolint:nilerr // there is nothing to back up yet
	}
	a := backup.Automated{Scope: c.Scope, Database: c.ResourceID, Created: k.now}
	if has {
		a = *r.Value
	}
	moved := false
	if _, _, known := k.Cache.Raw(state.Repository(a.Repository)); !known {
		// There was none yet, or it was removed: then WAL goes to the usual one, too.
		if a.Repository, moved = k.repository(), has; a.Repository == "" {
			return nil
		}
	}
	changed := moved || !has || shown(a) != c.Generation || a.Name != c.Name || a.Retention != c.BackupRetention
	var kept backup.Snapshot
	kept.Keep(t.instance, t.cluster)
	a.Name, a.Retention, a.Instance, a.Cluster = c.Name, c.BackupRetention, kept.Instance, kept.Cluster
	begun, err := k.begin(t, &a)
	switch {
	case err != nil:
		return err
	case len(begun) == 0 && !(has && changed):
		return nil
	}
	return k.commit(ctx, append(begun, state.Swap(state.Automated(c.ResourceID), r.Revision, a))...)
}

// shown returns the generation of the database that a record shows.
func shown(a backup.Automated) int64 {
	switch {
	case a.Cluster != nil:
		return a.Cluster.Generation
	case a.Instance != nil:
		return a.Instance.Generation
	}
	return -1
}

// repository returns the name of the repository of databases that have none yet, or "".
func (b *Backups) repository() string {
	for _, r := range state.ViewAll[backup.Repository](b.Cache, state.RepositoryRoot) {
		if r.Value.Default {
			return r.Value.Name
		}
	}
	return ""
}

// begin returns the changes that begin a backup of a database now, and notes it in a. There are none
// if no backup is due, or none can be made now.
func (k *keeper) begin(t target, a *backup.Automated) ([]state.Op, error) {
	id := a.Database
	if k.worksFirst(id) || k.all >= mostAutomated || k.ofAccount[a.Account] >= mostOfAccount {
		return nil, nil
	}
	window, attempt, due := k.due(t, a)
	if !due && a.Made.IsZero() {
		return nil, nil // the first backup is tried again when it is time
	}
	p, err := k.place(t, a.Repository)
	if err != nil || k.onHost[p.host] >= mostOnHost {
		return nil, nil //nolint:nilerr // as soon as it can be made
	}
	args := backup.TakeArgs{Repository: a.Repository, Automated: true}
	next := *a
	var name string
	switch {
	case due:
		next.Window, next.Attempt, args.Window = window, attempt, window
		name = automatedID(id, window, attempt)
	case p.archived.Broken != "" && k.now.Sub(a.Healing).Abs() >= firstRetry, k.drilledBadly(a):
		next.Healing, args.Full = k.now, true
		name = healing + strings.ToLower(id) + "-" + strconv.FormatInt(k.now.Unix(), 36)
	case k.lacks(t, a):
		args.Repository, name = a.Second, secondID(id, a.Window)
	default:
		return nil, nil
	}
	if k.Low != nil && k.Low(args.Repository) != "" {
		return nil, nil // what room is left is for WAL; status tells
	}
	ops, err := k.begins(t, name, args)
	if err != nil || len(ops) == 0 {
		return nil, err
	}
	*a = next
	k.all++
	k.ofAccount[a.Account]++
	k.onHost[p.host]++
	return ops, nil
}

// drilledBadly reports whether a drill found damage in the repository that a full backup heals now. It
// heals at once what was found since the last one was begun. If a backup that was to heal is damaged,
// too, the next one waits for a day: the repository itself is at fault.
func (k *keeper) drilledBadly(a *backup.Automated) bool {
	all := k.backups(a.Database, a.Repository)
	d := k.drillOf(a.Database, a.Repository)
	if d.Heal(all) == "" {
		return false
	}
	ago := k.now.Sub(a.Healing).Abs()
	if slices.ContainsFunc(all, func(b backup.Backup) bool { return b.Label == d.Label && heals(b) && d.Spoils(b) }) {
		return ago >= backup.Day
	}
	return a.Healing.Before(d.Ended) || ago >= firstRetry
}

// second ends the id of an operation that makes the backup of a window in the second repository.
const second = "-second"

func secondID(database string, window time.Time) string {
	return automatedID(database, window, 1) + second
}

// worksFirst reports whether a backup of a database is being made that its automated one waits for. It
// does not wait for one in the second repository, which may be away.
func (s sight) worksFirst(database string) bool {
	return slices.ContainsFunc(s.about[database], func(o *operation.Record) bool {
		return (o.Kind == backup.Take.Name || o.Kind == backup.Final.Name) && !strings.HasSuffix(o.ID, second)
	})
}

// lacks reports whether the second repository is to get a backup now: one for each window, after the
// first repository has got its own.
func (k *keeper) lacks(t target, a *backup.Automated) bool {
	if a.Second == "" || !a.Made.Equal(a.Window) || k.works(a.Database, backup.Take, backup.Final) {
		return false
	}
	if _, _, begun := k.Cache.Raw(state.Operation(secondID(a.Database, a.Window))); begun {
		return false
	}
	if newest, ok := backup.Newest(k.backups(a.Database, a.Second)); ok && newest.Stop.After(a.Window) {
		return false
	}
	_, err := k.place(t, a.Second)
	return err == nil
}

// due returns the window for which an automated backup is to be begun now, and which attempt it is.
func (k *keeper) due(t target, a *backup.Automated) (window time.Time, attempt int, due bool) {
	if window, due = backup.Due(t.common().BackupWindow, a.Window, k.now); due {
		return window, 1, true
	}
	if a.Window.IsZero() || a.Made.Equal(a.Window) {
		return window, 0, false
	}
	last, err := state.View[operation.Record](k.Cache, state.Operation(automatedID(a.Database, a.Window, a.Attempt)))
	if err == nil && (!last.Value.State.Ended() || last.Value.State == operation.Cancelled || k.now.Before(last.Value.Ended.Add(retry(a.Attempt)))) {
		return window, 0, false
	}
	return a.Window, a.Attempt + 1, true
}

// retry returns the pause after an attempt that failed.
func retry(attempt int) time.Duration {
	if attempt > 5 {
		return longestRetry
	}
	return min(firstRetry<<max(attempt-1, 0), longestRetry)
}

// automatedID returns the id of the operation for a window. Whoever leads, it is the same.
func automatedID(database string, window time.Time, attempt int) string {
	id := "auto-" + strings.ToLower(database) + "-" + window.UTC().Format("200601021504")
	if attempt > 1 {
		id += "-" + strconv.Itoa(attempt)
	}
	return id
}

// begins returns the changes that begin a backup, with its snapshot if it is one of a window. There
// are none if too many operations are under way.
func (k *keeper) begins(t target, name string, args backup.TakeArgs) ([]state.Op, error) {
	about := t.about()
	var ops []state.Op
	if about.Type == event.Instance {
		e, err := event.Make(about.Source(), "0001", k.now)
		if err != nil {
			return nil, fmt.Errorf("raise event: %w", err)
		}
		ops = append(ops, state.Put(state.Event(about.Account, about.Region, e.Key(name)), e))
	}
	if !args.Window.IsZero() {
		s := automatedSnapshot(t, args.Repository, name, k.now)
		args.Snapshot = snapshotKey(s)
		src, number := event.Source{Scope: s.Scope, Type: event.Snapshot, Name: s.Name}, "0090"
		if s.Cluster != nil {
			src.Type, number = event.ClusterSnapshot, "0168"
		}
		e, err := event.Make(src, number, k.now)
		if err != nil {
			return nil, fmt.Errorf("raise event: %w", err)
		}
		ops = append(ops, state.Swap(args.Snapshot, 0, s), state.Put(state.Event(s.Account, s.Region, e.Key(name)), e))
	}
	// Nobody asked for it: whoever wants to delete the database need not wait.
	kind := backup.Take
	kind.Excludes = nil
	r, err := operation.New(name, kind, about, args, k.now)
	if err != nil {
		return nil, err
	}
	begun, err := view.Begin(k.Cache, r)
	if errors.Is(err, operation.ErrTooMany) {
		return nil, nil
	}
	// A database that was changed meanwhile is looked at again.
	return append(ops, begun, state.Unchanged(t.key, t.revision)), err
}

// automatedSnapshot returns the record of the snapshot of a window.
func automatedSnapshot(t target, repository, id string, now time.Time) backup.Snapshot {
	c := t.common()
	s := backup.Snapshot{
		Scope: c.Scope, Name: "rds:" + c.Name + "-" + now.Format("2006-01-02-15-04"), Automated: true, State: backup.Creating,
		Database: c.ResourceID, Repository: repository, Operation: id, Asked: now, KMSKey: c.StorageKey, Tags: []spec.Tag{},
	}
	s.Keep(t.instance, t.cluster)
	if c.CopyTagsToSnapshot {
		s.Tags = append(s.Tags, c.Tags...)
	}
	return s
}
