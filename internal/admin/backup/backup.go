// Package backup has the admin API's verbs on backups of databases: which there are, what they are
// good for, what drills found, and to make or to try one now.
//
// Invariants: nothing is called restorable unless the host of the database's primary saw its WAL in
// the repository, and a sound backup from before that moment is recorded. The package carries
// nothing out: it begins operations, and only with the id that its caller chose.
package backup

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/database"
	"howdah/internal/admin/snapshot"
	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/model/backup"
	"howdah/internal/state"
)

// Config is what the verbs need. All fields are required.
type Config struct {
	State     *state.Client
	Looks     *look.Source
	Databases *database.Source
	Log       *slog.Logger
}

// service has the handlers.
type service struct {
	*state.Client
	Config
}

// Verbs returns the verbs on backups.
func Verbs(cfg Config) verb.Table {
	s := &service{cfg.State, cfg}
	return verb.Table{
		admin.VerbBackups:     verb.On(verb.OfHome, s.list),
		admin.VerbBackupShow:  verb.On(verb.OfHome, s.show),
		admin.VerbBackupNow:   verb.On(verb.OfHome, s.makeNow),
		admin.VerbBackupDrill: verb.On(verb.OfHome, s.drillNow),
		admin.VerbDrills:      verb.On(verb.OfHome, s.drills),
		admin.VerbSnapshots:   verb.On(verb.OfHome, s.snapshots),
	}
}

// list returns the backups of one database, or of all.
func (s *service) list(ctx context.Context, c front.Call, in admin.BackupsRequest) (admin.BackupsAnswer, error) {
	out := admin.BackupsAnswer{Backups: []admin.Backup{}}
	wanted, err := s.wanted(ctx, c, in.Name)
	if err != nil {
		return out, err
	}
	names, users := s.names(), users(s.Cache)
	all := map[key][]backup.Backup{} // by database and repository
	for _, r := range state.ViewAll[backup.Backup](s.Cache, state.BackupRoot) {
		if part := (key{r.Value.Database, r.Value.Repository, ""}); wanted(part.database) {
			all[part] = append(all[part], *r.Value)
		}
	}
	for _, part := range all {
		for _, b := range part {
			out.Backups = append(out.Backups, shown(b, part, names, users))
		}
	}
	slices.SortStableFunc(out.Backups, func(a, b admin.Backup) int {
		return cmp.Or(strings.Compare(a.Database, b.Database), strings.Compare(a.ResourceID, b.ResourceID), b.Taken.Compare(a.Taken), strings.Compare(a.Repository, b.Repository))
	})
	return out, nil
}

// drills returns the newest drill of one database, or of each.
func (s *service) drills(ctx context.Context, c front.Call, in admin.BackupsRequest) (admin.DrillsAnswer, error) {
	out := admin.DrillsAnswer{Drills: []admin.Drill{}}
	wanted, err := s.wanted(ctx, c, in.Name)
	if err != nil {
		return out, err
	}
	names := s.names()
	for _, r := range state.ViewAll[backup.DrillRecord](s.Cache, state.DrillRoot) {
		if wanted(r.Value.Database) {
			out.Drills = append(out.Drills, drillShown(*r.Value, names.of(r.Value.Database).Name))
		}
	}
	slices.SortFunc(out.Drills, func(a, b admin.Drill) int {
		return cmp.Or(strings.Compare(a.Database, b.Database), strings.Compare(a.ResourceID, b.ResourceID))
	})
	return out, nil
}

// snapshots returns the snapshots of one database, or all.
func (s *service) snapshots(ctx context.Context, c front.Call, in admin.BackupsRequest) (admin.SnapshotsAnswer, error) {
	out := admin.SnapshotsAnswer{Snapshots: []admin.Snapshot{}}
	wanted, err := s.wanted(ctx, c, in.Name)
	if err != nil {
		return out, err
	}
	for _, r := range allSnapshots(s.Cache) {
		if wanted(r.Value.Database) {
			out.Snapshots = append(out.Snapshots, s.snapshotShown(*r.Value))
		}
	}
	slices.SortStableFunc(out.Snapshots, func(a, b admin.Snapshot) int {
		return cmp.Or(strings.Compare(a.Database, b.Database), strings.Compare(a.ResourceID, b.ResourceID), b.Asked.Compare(a.Asked))
	})
	return out, nil
}

func allSnapshots(cache *state.Cache) []state.Record[*backup.Snapshot] {
	return append(state.ViewAll[backup.Snapshot](cache, state.SnapshotRoot), state.ViewAll[backup.Snapshot](cache, state.ClusterSnapshotRoot)...)
}

func (s *service) snapshotShown(r backup.Snapshot) admin.Snapshot {
	out := snapshot.Shown(r)
	if b, err := state.View[backup.Backup](s.Cache, state.Backup(r.Holder(), r.Repository, r.Label)); err == nil && r.Label != "" {
		out.Proved, out.Damaged = b.Value.Proved, b.Value.Damaged
	}
	return out
}

// key names a backup.
type key struct{ database, repository, label string }

// users returns the names of the snapshots that need each backup.
func users(cache *state.Cache) map[key][]string {
	needs := map[key][]string{}
	for _, r := range state.ViewAll[backup.Backup](cache, state.BackupRoot) {
		needs[key{r.Value.Database, r.Value.Repository, r.Value.Label}] = r.Value.Needs
	}
	all := map[key][]string{}
	for _, r := range allSnapshots(cache) {
		own := key{r.Value.Holder(), r.Value.Repository, r.Value.Label}
		if own.label == "" {
			continue
		}
		for _, label := range append([]string{own.label}, needs[own]...) {
			k := key{own.database, own.repository, label}
			all[k] = append(all[k], r.Value.Name)
		}
	}
	for k := range all {
		slices.Sort(all[k])
	}
	return all
}

// shown returns what to show of a backup. all are those of its database in its repository.
func shown(b backup.Backup, all []backup.Backup, names names, users map[key][]string) admin.Backup {
	n := names.of(b.Database)
	out := admin.Backup{
		Database: n.Name, ResourceID: b.Database, Deleted: n.deleted, Account: n.Account, Region: n.Region,
		Repository: b.Repository, Label: b.Label, Kind: string(b.Kind), Taken: b.Stop, Size: b.Size, Stored: b.Stored, Automated: b.Automated,
		Snapshots: users[key{b.Database, b.Repository, b.Label}], Only: b.Alone, Proved: b.Proved, Damaged: b.Damaged, Operation: b.Operation,
		Doubt: backup.InDoubt(all, b), Member: b.Member, Standby: b.Standby,
	}
	if out.Snapshots == nil {
		out.Snapshots = []string{}
	}
	return out
}

func drillShown(d backup.DrillRecord, name string) admin.Drill {
	out := admin.Drill{
		Database: name, ResourceID: d.Database, Repository: d.Repository, Operation: d.Operation, Host: d.Host, Label: d.Label,
		Began: d.Began, Ended: d.Ended, Failed: d.Failed, Restored: d.Unrestorable == "",
		Files: d.Files.Seconds(), Replay: d.Replay.Seconds(), Check: d.Check.Seconds(), Newest: d.Newest, Promised: d.Promised,
		Bytes: d.Bytes, Databases: d.Databases, Tables: d.Tables, Indexes: d.Indexes, Damaged: d.Damaged, Faults: d.Faults, Unlimited: d.Unlimited, Worked: d.Worked,
	}
	if out.Restored {
		out.RTO = d.RTO().Seconds()
	}
	if lost, known := d.RPO(); known && out.Restored {
		seconds := lost.Round(time.Millisecond).Seconds()
		out.RPO = &seconds
	}
	return out
}
