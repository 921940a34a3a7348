package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/model/backup"
	"howdah/internal/state"
	"howdah/internal/testkit/depth"
)

// longest are the stories of which each run has one.
var longest = []string{
	"TestDamageInTheRepositoryIsFoundAndHealed", "TestStandbysAreMadeOfBackups", "TestAnInstanceGoesBackInItsPlace", "TestAWarmStandbyWithoutTheLibrary",
}

// A bit flips in the repository. The drill finds it, names the file, and the backup is marked. A full
// backup begins by itself at once, and the next drill proves it. Restores go on to work.
//
// Then a file of WAL is gone from the middle of the archive. The drill finds that, too:
// LatestRestorableTime stops before it, and a full backup heals it.
func TestDamageInTheRepositoryIsFoundAndHealed(t *testing.T) {
	depth.One(t, longest...)
	s := begin(t, nil)
	s.repository()
	s.must(s.rig.AskWith(s.Context(), "orders", func(in *rds.CreateDBInstanceMessage) { in.BackupRetentionPeriod = new(int32(7)) }), "ask for orders")
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", 2*time.Minute), "orders")
	id, err := s.rig.Database(s.Context(), "orders")
	s.must(err, "find orders")
	s.must(s.exec("orders", "CREATE TABLE entries (writer bigint, seq bigint)"), "make a table")
	s.eventually(2*time.Minute, func() error { return s.restorable("orders", time.Now().Add(-time.Hour)) })
	first := s.newestBackup(id)

	bundle := filepath.Join(first.Label, "bundle", "1")
	s.spoil(filepath.Join(s.rig.Dir, "repository", id, "backup", id, bundle))
	out, err := s.howdah("backup", "drill", "orders")
	if err == nil || !strings.Contains(out, bundle) {
		s.Errorf("the drill of a damaged backup: %v\n%s", err, out)
	}
	if b := s.backupOf(id, first.Label); !strings.Contains(b.Damaged, bundle) || !b.Located {
		s.Errorf("the backup: %+v", b)
	}
	s.statusSays("orders", bundle)
	s.must(s.hasEvent("orders", bundle), "look at the events")
	healed := s.healed(id, first)
	s.proved(id, healed)
	s.statusSaysNot(bundle)
	s.must(s.exec("orders", "INSERT INTO entries VALUES (1, 1)"), "write")
	moment := time.Now()
	s.archived("orders", moment)
	s.restoresTo("again", moment, "1")

	// WAL in the middle.
	const file, next = "SELECT pg_walfile_name(pg_current_wal_lsn() + 1)", "SELECT pg_switch_wal()"
	s.must(s.asPlatform(s.leader(id), next), "end a file of WAL")
	lost, err := s.query("orders", file)
	s.must(err, "look which file of WAL is written to")
	s.must(s.exec("orders", "INSERT INTO entries VALUES (2, 2)"), "write more")
	before := time.Now()
	s.must(s.asPlatform(s.leader(id), next), "end another file of WAL")
	s.archived("orders", before)
	s.remove(id, lost)
	out, err = s.howdah("backup", "drill", "orders")
	if err == nil || !strings.Contains(out, lost) {
		s.Errorf("the drill of WAL with a gap: %v\n%s", err, out)
	}
	if b := s.backupOf(id, healed.Label); b.Damaged != "" {
		s.Errorf("the backup before the gap: %+v", b)
	}
	again := s.healed(id, healed)
	if !again.Heals || again.Gap.IsZero() || again.Gap.After(before) {
		s.Errorf("healed by %+v, written at %s", again, before)
	}
	s.restoresTo("before-gap", again.Gap, "1")
	in := &rds.RestoreDBInstanceToPointInTimeMessage{SourceDBInstanceIdentifier: new("orders"), TargetDBInstanceIdentifier: new("in-gap"), RestoreTime: &before}
	if err := s.rig.Call(s.Context(), "RestoreDBInstanceToPointInTime", in, &rds.RestoreDBInstanceToPointInTimeResult{}); err == nil {
		s.Error("a moment in the gap is restored")
	}
	s.proved(id, again)
	s.must(s.exec("orders", "INSERT INTO entries VALUES (3, 3)"), "write at the end")
	moment = time.Now()
	s.archived("orders", moment)
	s.restoresTo("behind-gap", moment, "3")
}

// newestBackup returns the record of the newest backup of a database.
func (s *story) newestBackup(id string) backup.Backup {
	s.Helper()
	var all []backup.Backup
	records, err := state.List[backup.Backup](s.Context(), s.rig.Store, state.BackupPrefix(id))
	s.must(err, "list backups")
	for _, r := range records {
		all = append(all, r.Value)
	}
	newest, ok := backup.Newest(all)
	if !ok {
		s.Fatal("there is no backup")
	}
	return newest
}

func (s *story) backupOf(id, label string) backup.Backup {
	s.Helper()
	r, err := state.Get[backup.Backup](s.Context(), s.rig.Store, state.Backup(id, "main", label))
	s.must(err, "look at the backup "+label)
	return r.Value
}

// healed waits until a full backup was made by itself after another one.
func (s *story) healed(id string, after backup.Backup) (by backup.Backup) {
	s.Helper()
	s.eventually(2*time.Minute, func() error {
		by = s.newestBackup(id)
		if by.Label == after.Label || by.Kind != backup.Full || by.Damaged != "" {
			return fmt.Errorf("the newest backup is %+v", by)
		}
		return nil
	})
	return by
}

// proved waits until a drill has proved a backup.
func (s *story) proved(id string, b backup.Backup) {
	s.Helper()
	s.eventually(2*time.Minute, func() error {
		r, err := state.Get[backup.DrillRecord](s.Context(), s.rig.Store, state.Drill(id))
		if err == nil && (r.Value.Label != b.Label || r.Value.Failed != "") {
			err = fmt.Errorf("the newest drill is %+v", r.Value)
		}
		return err
	})
	if s.backupOf(id, b.Label).Proved.IsZero() {
		s.Errorf("the backup %s is not proved", b.Label)
	}
}

// spoil changes one bit in the middle of a file.
func (s *story) spoil(path string) {
	s.Helper()
	text, err := os.ReadFile(path)
	s.must(err, "read a file of the repository")
	text[len(text)/2] ^= 1
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	s.must(err, "open a file of the repository")
	_, err = file.Write(text)
	s.must(errors.Join(err, file.Close()), "change a file of the repository")
}

// remove removes a file of WAL from the repository, once it is there.
func (s *story) remove(id, wal string) {
	s.Helper()
	s.eventually(time.Minute, func() error {
		var found []string
		err := filepath.WalkDir(filepath.Join(s.rig.Dir, "repository", id, "archive"), func(path string, e fs.DirEntry, err error) error {
			if err == nil && strings.HasPrefix(e.Name(), wal+"-") {
				found = append(found, path)
			}
			return err
		})
		if err != nil || len(found) != 1 {
			return fmt.Errorf("%s is in the repository as %q: %w", wal, found, err)
		}
		return os.Remove(found[0])
	})
}

// statusSays waits until the status of the home has a line about a subject with these words.
func (s *story) statusSays(subject, words string) {
	s.Helper()
	s.eventually(30*time.Second, func() error {
		out, _ := s.howdah("status") // its exit code says that there is a problem
		if !slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
			return strings.Contains(line, subject) && strings.Contains(line, words)
		}) {
			return fmt.Errorf("status says:\n%s", out)
		}
		return nil
	})
}

func (s *story) statusSaysNot(words string) {
	s.Helper()
	s.eventually(30*time.Second, func() error {
		if out, _ := s.howdah("status"); strings.Contains(out, words) {
			return fmt.Errorf("status says:\n%s", out)
		}
		return nil
	})
}

// restoresTo restores orders to a moment, and counts the rows that are there then.
func (s *story) restoresTo(target string, at time.Time, want string) {
	s.Helper()
	in := &rds.RestoreDBInstanceToPointInTimeMessage{
		SourceDBInstanceIdentifier: new("orders"), TargetDBInstanceIdentifier: &target, RestoreTime: &at, BackupRetentionPeriod: new(int32(0)),
	}
	s.must(s.rig.Call(s.Context(), "RestoreDBInstanceToPointInTime", in, &rds.RestoreDBInstanceToPointInTimeResult{}), "restore "+target)
	s.must(s.rig.WaitStatus(s.Context(), target, "available", 2*time.Minute), target)
	if n, err := s.query(target, "SELECT count(*)::text FROM entries"); err != nil || n != want {
		s.Errorf("%s has %s rows, want %s: %v", target, n, want, err)
	}
	s.drop(target)
}
