package backup

import (
	"fmt"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/database"
	"howdah/internal/aws/rds/restore"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
)

// mostBehind is how old the newest moment that can be restored may be. A database that does nothing
// is marked every few minutes.
const mostBehind = 10 * time.Minute

// Problems returns what is wrong with the backups of a database, and nobody else says.
func (s *Sight) Problems(d database.Subject) []admin.Problem { return s.of(d).problems() }

func (s standing) problems() []admin.Problem {
	if s.held || s.Follows() || s.Common.Deleting || s.Common.Final != "" || s.Common.Hidden() {
		return nil
	}
	var all []admin.Problem
	add := func(code, command, text string) {
		if text != "" {
			all = append(all, admin.Problem{Code: code, Subject: s.Title(), ResourceID: s.Common.ResourceID, Text: text, Command: command})
		}
	}
	show := "howdah backup show " + s.Common.Name
	add(admin.ProblemDrill, show, s.drillFailed())
	if s.Want.State != member.Running || !s.Layout.Created {
		return all
	}
	add(admin.ProblemBackupLate, "howdah operations list "+s.Common.Name, s.late())
	if s.repository != "" && s.Common.BackupRetention > 0 {
		add(admin.ProblemNotRestorable, show, s.notRestorable())
	}
	return all
}

// drillFailed says what is wrong with the newest drill, or "". A drill that could not be made leaves
// no record, but an operation that failed.
func (s standing) drillFailed() string {
	var ended time.Time
	if s.drill != nil {
		ended = s.drill.Ended
	}
	if o := s.last(backup.Drill); o != nil && o.State == operation.Failed && o.Ended.After(ended) {
		return fmt.Sprintf("its backups could not be tried at %s: %s", clock(o.Ended), operation.Reason(o.Reason))
	}
	if s.drill == nil || s.drill.Failed == "" {
		return ""
	}
	text := fmt.Sprintf("the newest drill of its backups, at %s, failed: %s", clock(ended), operation.Reason(s.drill.Failed))
	if s.drill.Worked.IsZero() {
		return text + "; none ever worked"
	}
	return text + "; the last that worked was at " + clock(s.drill.Worked)
}

// last returns the operation of a kind that ended last, or nil.
func (s standing) last(kind operation.Kind) (last *operation.Record) {
	for _, o := range s.works {
		if o.Kind == kind.Name && o.State.Ended() && (last == nil || o.Ended.After(last.Ended)) {
			last = o
		}
	}
	return last
}

// late says that the newest automated backup is too old, or "".
func (s standing) late() string {
	switch a := s.automated; {
	case a == nil || !a.Late(s.now):
		return ""
	case a.Made.IsZero():
		return "its first automated backup is not made yet: no moment of it can be restored"
	default:
		return "its newest automated backup is of " + clock(a.Made) + ", and the next one is not made"
	}
}

// notRestorable says that what was committed lately could not be restored, or "". It says nothing of
// what archive-fails and archive-broken say, nor of a database that is new or is being changed.
func (s standing) notRestorable() string {
	archived := s.archived()
	if _, serving := s.Primary(); !serving || len(s.Layout.Steps) > 0 || s.now.Sub(s.Common.Created) < mostBehind || s.archiveTold(archived) {
		return ""
	}
	_, latest := s.window()
	if !latest.IsZero() {
		if behind := s.now.Sub(latest); behind > mostBehind {
			return fmt.Sprintf("the newest moment that can be restored is %s, %s ago", clock(latest), behind.Round(time.Second))
		}
		return ""
	}
	if _, whole := backup.Newest(s.all); !whole {
		if s.working(backup.Take, backup.Final) != nil {
			return "" // the first one
		}
		return "no moment can be restored: there is no backup of it yet"
	}
	if restore.Latest(s.Facts).IsZero() {
		return "no moment can be restored for sure: its host did not see yet that its WAL gets into the repository"
	}
	return "no moment can be restored: no backup that is sound has the WAL that follows it"
}

// archiveTold reports whether archive-fails or archive-broken says already what is wrong.
func (s standing) archiveTold(a *member.Archived) bool {
	if a != nil && (a.Failing != "" || a.Broken != "") {
		return true
	}
	for _, m := range s.Layout.Members {
		switch s.Reports[member.ID(s.Want.ID, m.Name)].Problem {
		case member.ArchiveFails, member.ArchiveBroken:
			return true
		default:
		}
	}
	return false
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
