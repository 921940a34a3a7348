package backup

import (
	"errors"
	"fmt"
	"slices"

	step "howdah/internal/control/operation"
	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// target is a database with the record that users changed last. Exactly one of the two is set. They
// are shared, and must not be changed.
type target struct {
	key      string
	revision int64
	instance *spec.Instance
	cluster  *spec.Cluster
}

func (t target) common() *spec.Common {
	if t.cluster != nil {
		return &t.cluster.Common
	}
	return &t.instance.Common
}

// about returns what an operation is about.
func (t target) about() operation.About {
	c := t.common()
	kind := event.Instance
	if t.cluster != nil {
		kind = event.Cluster
	}
	return operation.About{Scope: c.Scope, Type: kind, Name: c.Name, Database: c.ResourceID}
}

// follows reports whether the database is one that copies another one: that one is backed up.
func (t target) follows() bool { return t.instance != nil && t.instance.Follows() }

// put writes the record with another common part.
func (t target) put(c spec.Common) state.Op {
	c.Generation++
	if t.cluster != nil {
		next := *t.cluster
		next.Common = c
		return state.Swap(t.key, t.revision, next)
	}
	next := *t.instance
	next.Common = c
	return state.Swap(t.key, t.revision, next)
}

// databases returns all databases, by resource id.
func (b *Backups) databases() map[string]target {
	all := map[string]target{}
	for _, r := range state.ViewAll[spec.Instance](b.Cache, state.InstanceRoot) {
		if r.Value.Cluster == "" {
			all[r.Value.ResourceID] = target{r.Key, r.Revision, r.Value, nil}
		}
	}
	for _, r := range state.ViewAll[spec.Cluster](b.Cache, state.ClusterRoot) {
		all[r.Value.ResourceID] = target{r.Key, r.Revision, nil, r.Value}
	}
	return all
}

// target returns the database that an operation is about. It may have been renamed since.
func (b *Backups) target(about operation.About) (target, bool) {
	if about.Type == event.Cluster {
		r, err := state.View[spec.Cluster](b.Cache, state.Cluster(about.Account, about.Region, about.Name))
		if err == nil && r.Value.ResourceID == about.Database {
			return target{r.Key, r.Revision, nil, r.Value}, true
		}
	} else {
		r, err := state.View[spec.Instance](b.Cache, state.Instance(about.Account, about.Region, about.Name))
		if err == nil && r.Value.ResourceID == about.Database {
			return target{r.Key, r.Revision, r.Value, nil}, true
		}
	}
	t, ok := b.databases()[about.Database]
	return t, ok
}

// errFollows says why a database has no backups of its own.
var errFollows = errors.New("it copies another database: back that one up")

// backable returns the database that is to be backed up. It fails for good if there is none.
func (b *Backups) backable(about operation.About) (target, error) {
	t, ok := b.target(about)
	switch {
	case !ok || t.common().Deleting:
		return t, step.Final(fmt.Errorf("back up %s: %w", about.Name, errGone))
	case t.follows():
		return t, step.Final(fmt.Errorf("back up %s: %w", about.Name, errFollows))
	}
	return t, nil
}

// place is where a backup can be made.
type place struct {
	host     string
	member   string // its name
	archived member.Archived
	timeline int
	ownKey   bool // it shows a key of its own
}

// place returns where a backup of a database can be made now. An error says what it waits for.
func (b *Backups) place(t target, repository string) (place, error) {
	id := t.common().ResourceID
	layout, err := state.View[plan.Layout](b.Cache, state.Layout(id))
	_, _, held := b.Cache.Raw(state.Hold(id))
	switch {
	case held:
		return place{}, errors.New("the database is not taken over yet since the home was restored")
	case t.common().Stopped, t.common().ClosedBy != "":
		return place{}, errors.New("the database is stopped")
	case err != nil || !layout.Value.Created:
		return place{}, errors.New("the database has not been available yet")
	}
	leader := view.Leader(b.Cache, id)
	for _, m := range layout.Value.Members {
		report, err := state.View[member.Report](b.Cache, state.Report(m.Host, member.ID(id, m.Name)))
		if m.Name != leader || err != nil || !b.alive(m.Host) || !report.Value.Ready || report.Value.InRecovery {
			continue
		}
		if report.Value.Archived == nil {
			return place{}, fmt.Errorf("host %s says nothing of the archive of the primary's WAL yet", m.Host)
		}
		p := place{
			host: m.Host, member: m.Name, archived: *report.Value.Archived,
			timeline: report.Value.Timeline, ownKey: report.Value.OwnKey,
		}
		return p, b.archives(m, id, repository, p.archived)
	}
	return place{}, errors.New("the database has no primary that serves")
}

// archives returns an error if the WAL of a primary does not get into a repository: a backup is of no
// use without the WAL that was written meanwhile.
func (b *Backups) archives(m plan.Placed, id, repository string, now member.Archived) error {
	told, _ := view.LastAssigned(b.Cache, m.Host, member.ID(id, m.Name))
	switch {
	case told.Value.Archive == nil || !slices.Contains(told.Value.Archive.Repositories, repository):
		return fmt.Errorf("the primary does not archive its WAL in repository %s yet", repository)
	case now.Failing != "":
		return fmt.Errorf("the primary cannot archive its WAL: %s", now.Failing)
	}
	return nil
}

// mostLag is how far the standby that is backed up may be behind, in seconds. The backup begins once
// it has replayed what the primary had then.
const mostLag = 30

// standby returns the standby that is backed up in place of the primary. ok is false if there is none
// that is well enough.
func (b *Backups) standby(t target, primary place, repository string) (p place, ok bool) {
	id := t.common().ResourceID
	layout, err := state.View[plan.Layout](b.Cache, state.Layout(id))
	if err != nil || !primary.ownKey {
		return p, false
	}
	for _, m := range layout.Value.Members {
		r, err := state.View[member.Report](b.Cache, state.Report(m.Host, member.ID(id, m.Name)))
		if m.Name == primary.member || m.Host == primary.host || err != nil || !b.alive(m.Host) || !followsWell(*r.Value, primary) {
			continue
		}
		if b.archives(m, id, repository, member.Archived{}) == nil {
			return place{host: m.Host, member: m.Name}, true
		}
	}
	return p, false
}

// followsWell reports whether a member is a standby that replays what it receives.
func followsWell(r member.Report, primary place) bool {
	return r.Ready && r.InRecovery && r.Streaming && !r.Paused && r.OwnKey && r.LagSeconds <= mostLag && r.Timeline == primary.timeline
}

// primaryHost returns the host of the member with the leader key of a database, or "".
func (b *Backups) primaryHost(id string) string {
	layout, err := state.View[plan.Layout](b.Cache, state.Layout(id))
	if err != nil {
		return ""
	}
	leader := view.Leader(b.Cache, id)
	for _, m := range layout.Value.Members {
		if m.Name == leader {
			return m.Host
		}
	}
	return ""
}

func (b *Backups) alive(host string) bool {
	live, err := state.View[member.Liveness](b.Cache, state.Live(host))
	return err == nil && live.Value.Alive
}

// restorable returns the newest moment that can be restored: as members of the database say, and as
// the newest drill found.
func (b *Backups) restorable(id string) member.Mark {
	newest := b.archivedUntil(id)
	if d, err := state.View[backup.DrillRecord](b.Cache, state.Drill(id)); err == nil {
		if at := d.Value.Latest(b.backups(id, d.Value.Repository), newest.At); !at.Equal(newest.At) {
			return member.Mark{At: at}
		}
	}
	return newest
}

// archivedUntil returns the newest moment of which members of a database say that all WAL until then
// is in the repository.
func (b *Backups) archivedUntil(id string) (newest member.Mark) {
	layout, err := state.View[plan.Layout](b.Cache, state.Layout(id))
	if err != nil {
		return newest
	}
	for _, r := range view.Reports(b.Cache, id, *layout.Value) {
		if r.Archived != nil && r.Archived.Restorable.At.After(newest.At) {
			newest = r.Archived.Restorable
		}
	}
	return newest
}
