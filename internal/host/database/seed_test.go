package database

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/host/database/seed"
	backupmodel "howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// another is the assignment of one more member, which may begin with a backup.
func (a *archived) another(name, label string) member.Assignment {
	a.Helper()
	next := a.Assignment
	next.Name, next.ID, next.Port, next.RESTPort = name, "db-1."+name, hosttest.FreePort(a.T), hosttest.FreePort(a.T)
	next.Copy = &member.Copy{Repository: "main", Label: label}
	return next
}

// streams waits until a standby does.
func (a *archived) streams(id string) {
	a.Helper()
	a.Awaits(id, 2*time.Minute, func(r member.Report) error {
		if !r.Ready || !r.Streaming {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
}

// copies is how often members have sent all their files, as their logs say.
func (a *archived) copies(h *Host) (n int) {
	a.Helper()
	logs, err := filepath.Glob(filepath.Join(filepath.Dir(h.MemberDir(a.ID)), "*", patroni.LogDir, "*"))
	a.Must(err)
	for _, path := range logs {
		text, err := os.ReadFile(path)
		a.Must(err)
		n += strings.Count(string(text), "received replication command: BASE_BACKUP")
	}
	return n
}

// TestAStandbyIsMadeOfABackup, by the real Patroni: the primary sends none of its files. So it is
// after a failover, with a backup from before, and the files are copied where the backup is gone.
func TestAStandbyIsMadeOfABackup(t *testing.T) {
	t.Parallel()
	a := newArchived(t, "")
	program, err := os.Executable()
	a.Must(err)
	a.program = program
	a.Cluster.Sync = patroni.SyncSingle
	a.Cluster.Parameters["log_replication_commands"] = "on"
	h, stop := a.run(func(h *Host) { h.spares.Keep = 1 })
	defer stop()
	a.Assign(a.Assignment)
	a.ready(1)
	conn := a.admin(h)
	a.exec(conn, "CREATE TABLE said (n int, at timestamptz DEFAULT clock_timestamp(), noise text)")
	a.backup(h, backupmodel.Full)
	place, err := h.repositories.Place(a.ID)
	a.Must(err)
	listing, err := h.listBackups(t.Context(), h.UserOf(a.ID), place, "main")
	a.Must(err)
	label := listing.Backups[0].Label
	a.fillWAL(conn, 2)
	first := a.Assignment

	second := a.another("m2", label)
	a.Assign(second)
	a.streams(second.ID)
	if n := a.copies(h); n != 0 {
		t.Errorf("the primary has sent its files %d times", n)
	}
	if used, err := os.ReadFile(filepath.Join(h.MemberDir(second.ID), seed.Dir, "used")); err != nil || string(used) != label {
		t.Errorf("it was made of %q, %v", used, err)
	}

	testkit.Eventually(t, time.Minute, func() error {
		if text, _ := a.Get(patroni.SyncKey(a.Scope)); !strings.Contains(text, "m2") {
			return fmt.Errorf("in sync is %q", text)
		}
		return nil
	})
	a.exec(conn, "INSERT INTO said VALUES (1)")
	first.Generation, first.Want = 2, member.Stopped
	a.Assign(first)
	a.Assignment = second
	a.ready(2)
	conn = a.admin(h)
	a.fillWAL(conn, 2)
	third := a.another("m3", label)
	a.Assign(third)
	a.streams(third.ID)
	if n := a.copies(h); n != 0 {
		t.Errorf("the new primary has sent its files %d times", n)
	}

	fourth := a.another("m4", "20200101-000000F")
	a.Assign(fourth)
	a.streams(fourth.ID)
	if n := a.copies(h); n != 1 {
		t.Errorf("the primary has sent its files %d times, though the backup is not there", n)
	}
}
