package backup

import (
	"slices"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/restore"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Sight is one look at the backups of all databases. Use Look.
type Sight struct {
	looks *look.Source
	now   time.Time
	works map[string][]*operation.Record // about backups, by database, also those that have ended
}

// Look looks at the state as it is now.
func Look(looks *look.Source) *Sight {
	s := &Sight{looks: looks, now: looks.Now().UTC(), works: map[string][]*operation.Record{}}
	for _, r := range state.ViewAll[operation.Record](looks.Cache, state.OperationRoot) {
		switch r.Value.Kind {
		case backup.Take.Name, backup.Final.Name, backup.Drill.Name:
			s.works[r.Value.About.Database] = append(s.works[r.Value.About.Database], r.Value)
		}
	}
	return s
}

// standing is what is known of the backups of a database that lives.
type standing struct {
	database.Subject
	now        time.Time
	repository string // "": there is none
	automated  *backup.Automated
	all        []backup.Backup // in the repository
	drill      *backup.DrillRecord
	works      []*operation.Record
	held       bool // the home was restored, and the database is not taken over yet
}

func (s *Sight) of(d database.Subject) standing {
	cache := s.looks.Cache
	out := standing{Subject: d, now: s.now, repository: s.looks.RepositoryOf(d.Want.ID), works: s.works[d.Want.ID]}
	if a, ok := s.looks.AutomatedOf(d.Want.ID); ok {
		out.automated = &a
	}
	for _, r := range state.ViewAll[backup.Backup](cache, state.BackupPrefix(d.Want.ID)) {
		if r.Value.Repository == out.repository {
			out.all = append(out.all, *r.Value)
		}
	}
	if r, err := state.View[backup.DrillRecord](cache, state.Drill(d.Want.ID)); err == nil {
		out.drill = r.Value
	}
	_, _, out.held = cache.Raw(state.Hold(d.Want.ID))
	return out
}

// archived returns what the host of the primary says of the archive, or nil.
func (s standing) archived() *member.Archived {
	primary, serving := s.Primary()
	if !serving {
		return nil
	}
	return s.Reports[member.ID(s.Want.ID, primary.Name)].Archived
}

// window returns the oldest and the newest moment that can be restored, or zero times. Both stand on
// what was seen: see backup.Promise.
func (s standing) window() (earliest, latest time.Time) {
	latest = restore.Latest(s.Facts)
	if s.drill != nil && s.drill.Repository == s.repository {
		latest = s.drill.Latest(s.all, latest)
	}
	if s.held || latest.IsZero() {
		return time.Time{}, time.Time{}
	}
	return backup.Promise(s.all, s.Common.BackupRetention, latest, s.now)
}

// working returns the operation of one of these kinds that is under way, or nil.
func (s standing) working(kinds ...operation.Kind) *operation.Record {
	for _, o := range s.works {
		if !o.State.Ended() && slices.ContainsFunc(kinds, func(k operation.Kind) bool { return k.Name == o.Kind }) {
			return o
		}
	}
	return nil
}

func (s standing) short() admin.DatabaseBackups {
	out := admin.DatabaseBackups{Retention: s.Common.BackupRetention, Count: len(s.all)}
	out.Earliest, out.Restorable = s.window()
	if s.drill != nil {
		out.Proved, out.Failed = s.drill.Worked, s.drill.Failed
	}
	return out
}

// Short returns in short what the backups of a database are good for. It returns nil if it has none,
// and shall have none.
func (s *Sight) Short(d database.Subject) *admin.DatabaseBackups {
	of := s.of(d)
	out := of.short()
	if out.Retention == 0 && out.Count == 0 || d.Follows() {
		return nil
	}
	return &out
}

// status returns all that is known of the backups of a database.
func (s standing) status(names names, users map[key][]string) admin.BackupStatus {
	out := admin.BackupStatus{
		Short: s.short(), Database: s.Common.Name, ResourceID: s.Want.ID, Account: s.Common.Account, Region: s.Common.Region,
		Time: s.now, Repository: s.repository, Archive: admin.ArchiveUnknown, Problems: []admin.Problem{},
	}
	for _, b := range s.all {
		out.Stored += b.Stored
	}
	if a := s.archived(); a != nil {
		out.Archive, out.Failing, out.Since, out.Broken, out.Waiting = archiveState(*a), operation.Reason(a.Failing), a.Since, a.Broken, a.Waiting
	}
	if b, ok := backup.Newest(s.all); ok {
		newest := shown(b, s.all, names, users)
		out.Newest = &newest
	}
	if opened, _ := spec.BackupWindow(s.Common.BackupWindow, s.now); !opened.IsZero() && out.Short.Retention > 0 {
		out.Window = opened.Add(backup.Day)
	}
	if o := s.working(backup.Take, backup.Final); o != nil {
		out.Making = o.ID
	}
	if o := s.working(backup.Drill); o != nil {
		out.Drilling = o.ID
	}
	if s.drill != nil {
		d := drillShown(*s.drill, s.Common.Name)
		out.Drill = &d
	}
	out.Problems = append(out.Problems, s.problems()...)
	return out
}

func archiveState(a member.Archived) string {
	switch {
	case a.Broken != "":
		return admin.ArchiveBroken
	case a.Failing != "":
		return admin.ArchiveFails
	}
	return admin.ArchiveWorks
}
