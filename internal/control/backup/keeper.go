package backup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/state"
	"howdah/internal/view"
)

const (
	// roundEvery is how soon the keeper sees what is to be done. Parts are looked at less often.
	roundEvery = 5 * time.Second
	partsEvery = 6 // rounds
	// How many operations the keeper has under way at most, so that there is room for those of users.
	mostAutomated = 64
	mostOfAccount = 32
	mostOnHost    = 2 * perHost
	mostTidies    = 4
	// tidyEvery is how often a part is tidied although no record says that something is to go: WAL
	// grows old, and operations that were cancelled leave backups that nobody knows.
	tidyEvery = 24 * time.Hour
	// After an automated backup failed it is begun again after a pause that doubles.
	firstRetry   = 15 * time.Minute
	longestRetry = 6 * time.Hour
)

// Keep begins what is to be done without being asked for, until ctx ends. leading is the condition of
// a commit that only the control plane that leads may make.
func (b *Backups) Keep(ctx context.Context, leading state.Op) error {
	if err := b.Cache.Loaded(ctx); err != nil {
		return nil
	}
	timer := time.NewTicker(roundEvery)
	defer timer.Stop()
	for n := 0; ; n++ {
		b.round(ctx, leading, time.Now().UTC(), n%partsEvery == 0)
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
	}
}

// keeper is one round of the keeper.
type keeper struct {
	*Backups
	sight
	leading state.Op
	now     time.Time
	// How many operations of the keeper are under way: in all, of accounts, on hosts, and Tidies.
	all       int
	ofAccount map[string]int
	onHost    map[string]int
	tidies    int
	drills    int
	drilled   map[string]bool // databases whose backups are being tried
}

// round does everything that is due.
func (b *Backups) round(ctx context.Context, leading state.Op, now time.Time, parts bool) {
	k := &keeper{Backups: b, sight: b.look(), leading: leading, now: now, ofAccount: map[string]int{}, onHost: map[string]int{}}
	k.drilled = map[string]bool{}
	for _, o := range b.active("", backup.Drill) {
		k.drills++
		k.drilled[o.About.Database] = true
	}
	for _, o := range k.sight.active {
		if o.Kind == backup.Tidy.Name {
			k.tidies++
			continue
		}
		host := o.Notes[noteHost]
		if host == "" {
			host = b.primaryHost(o.About.Database) // it is about to be chosen
		}
		k.onHost[host]++
		if strings.HasPrefix(o.ID, "auto-") || strings.HasPrefix(o.ID, healing) {
			k.all++
			k.ofAccount[o.About.Account]++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(k.targets)) {
		b.note(ctx, "automated backups of "+id, k.automate(ctx, k.targets[id]))
	}
	for _, id := range slices.Sorted(maps.Keys(k.automated)) {
		b.note(ctx, "retained backups of "+id, k.retire(ctx, k.automated[id]))
	}
	if parts {
		for _, id := range slices.Sorted(maps.Keys(k.targets)) {
			b.note(ctx, "repository of "+id, k.meet(ctx, k.targets[id]))
			b.note(ctx, "drill of "+id, k.drill(ctx, k.targets[id]))
		}
		for _, r := range state.ViewAll[backup.Repository](b.Cache, state.RepositoryRoot) {
			b.note(ctx, "copies in "+r.Value.Name, k.findCopies(ctx, r.Value.Name))
		}
		k.settle(ctx)
		for _, r := range state.ViewAll[backup.Part](b.Cache, state.BackupPartRoot) {
			b.note(ctx, "tidy "+r.Key, k.tidy(ctx, r.Key, *r.Value))
		}
	}
}

// note logs what went wrong, once until it changes. Where others were quicker the next round sees it.
func (b *Backups) note(ctx context.Context, what string, err error) {
	switch {
	case err == nil:
		delete(b.told, what)
	case ctx.Err() != nil || errors.Is(err, state.ErrConflict):
	case b.told[what] != err.Error():
		b.told[what] = err.Error()
		b.Log.Warn("keep backups", "what", what, "error", err)
	}
}

// commit makes changes if this control plane leads.
func (k *keeper) commit(ctx context.Context, ops ...state.Op) error {
	_, err := k.Store.Commit(ctx, append(ops, k.leading)...)
	return err
}

// retire sees to automated backups whose database was deleted.
func (k *keeper) retire(ctx context.Context, r state.Record[*backup.Automated]) error {
	if t, ok := k.targets[r.Value.Database]; ok && !t.common().Deleting {
		return nil
	}
	a := *r.Value
	all := k.backups(a.Database, a.Repository)
	switch {
	case a.Retained && len(all) == 0 && k.unlisted(a.Database, a.Repository):
		return nil
	case !a.Retained, len(all) == 0, !a.Until.IsZero() && !backup.Floor(a.Retention, k.now).Before(a.Until):
		return k.commit(ctx, state.Remove(r.Key, r.Revision))
	case a.Until.IsZero():
		newest, _ := backup.Newest(all) // there is one
		a.Until = until(all, newest, k.restorable(a.Database).At)
		return k.commit(ctx, state.Swap(r.Key, r.Revision, a))
	}
	return nil
}

// meet records the parts that a database has of repositories, as soon as its WAL goes there.
func (k *keeper) meet(ctx context.Context, t target) error {
	id := t.common().ResourceID
	layout, err := state.View[plan.Layout](k.Cache, state.Layout(id))
	if err != nil {
		return nil //nolint:nilerr // nothing of it is anywhere
	}
	for _, m := range layout.Value.Members {
		told, _ := view.LastAssigned(k.Cache, m.Host, member.ID(id, m.Name))
		if told.Value.Archive == nil {
			continue
		}
		for _, repository := range told.Value.Archive.Repositories {
			key := state.BackupPart(id, repository)
			if _, _, known := k.Cache.Raw(key); known {
				continue
			}
			if err := k.commit(ctx, state.Swap(key, 0, backup.Part{About: t.about(), Repository: repository})); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// tidy begins a Tidy of a part if something is to go from it, or if it is time.
func (k *keeper) tidy(ctx context.Context, key string, p backup.Part) error {
	id := p.About.Database
	if id == allCopies {
		return k.forgetCopies(ctx, key, p.Repository)
	}
	if _, _, held := k.Cache.Raw(state.Hold(id)); held {
		return nil // after the home was restored: first it must be known what there is
	}
	if _, _, known := k.Cache.Raw(state.Repository(p.Repository)); !known || k.works(id, backup.Take, backup.Final, backup.Tidy) || k.tidies >= mostTidies {
		return nil
	}
	last, known := k.tidied[key]
	if !known {
		// Those of all databases are not due at the same time.
		last = k.now.Add(-time.Duration(spread(key)%1440) * time.Minute)
		k.tidied[key] = last
	}
	h := k.holdings(id, p.Repository)
	idle := k.now.Sub(last) < tidyEvery
	if backup.IsCopy(id) {
		idle = true // nothing is added to it
		if k.unlisted(id, p.Repository) {
			return nil // first it must be known whether the copy is whole
		}
	}
	if !k.unlisted(id, p.Repository) && len(h.over(k.now)) == 0 && !h.gone(h.Keep(k.now)) && idle {
		return nil
	}
	name := "tidy-" + strings.ToLower(id) + "-" + strconv.FormatInt(k.now.Unix(), 36)
	r, err := operation.New(name, backup.Tidy, p.About, backup.TidyArgs{Repository: p.Repository}, k.now)
	if err != nil {
		return err
	}
	begun, err := view.Begin(k.Cache, r)
	if errors.Is(err, operation.ErrTooMany) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := k.commit(ctx, begun); err != nil {
		return fmt.Errorf("begin %s: %w", name, err)
	}
	k.tidied[key] = k.now
	k.tidies++
	return nil
}
