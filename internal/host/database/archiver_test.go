package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/patroni/program"
	"howdah/internal/engine/pgbackrest"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/dial"
	"howdah/internal/host/database/mark"
	backupmodel "howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/hosttest"
	"howdah/internal/testkit/loopdisk"
)

// archived is a database with the real Patroni, PostgreSQL and engine, whose WAL goes to a directory.
type archived struct {
	*world
	member.Assignment
	dir string // of the repository
}

func newArchived(t *testing.T, dir string) *archived {
	t.Helper()
	a := archiving(t, newWorld(t, ""))
	a.dir = cmp.Or(dir, filepath.Join(a.Home.Dir, "repository"))
	a.Repository("main", a.dir)
	return a
}

// archiving is such a database, whose repository "main" is still to be made.
func archiving(t *testing.T, w *world) *archived {
	t.Helper()
	if _, err := program.Find(); err != nil {
		testkit.Missing(t, err.Error())
	}
	if _, err := pgbackrest.Find(); err != nil {
		testkit.Missing(t, err.Error())
	}
	a := &archived{world: w, Assignment: w.Assignment("db-1", 1)}
	a.Archive = &member.Archive{Repositories: []string{"main"}, Cap: 1 << 30}
	a.Cluster.Parameters = map[string]string{
		"archive_mode": "always", "archive_command": "/bin/true", "archive_timeout": "0", "wal_level": "replica", "max_wal_size": "2GB",
		"log_min_messages": "log", "fsync": "off",
	}
	return a
}

func (a *archived) admin(h *Host) *pgx.Conn {
	a.Helper()
	var conn *pgx.Conn
	testkit.Eventually(a.T, time.Minute, func() (err error) {
		conn, err = dial.Admin(a.Context(), h.Agent, a.Assignment)
		return err
	})
	a.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// backup makes a backup, by the engine alone.
func (a *archived) backup(h *Host, kind backupmodel.Kind) {
	a.Helper()
	var place backup.Place
	testkit.Eventually(a.T, time.Minute, func() (err error) {
		place, err = h.repositories.Place(a.ID)
		return err
	})
	var commands []backup.Command
	commands = append(commands, h.engine.Create(place)...)
	commands = append(commands, h.engine.Backup(place, backup.Take{Repository: "main", Kind: kind, Operation: "op-1"}))
	for _, c := range commands {
		// The host prepares and archives beside it, and each keeps the other waiting.
		testkit.Eventually(a.T, time.Minute, func() error {
			out, exit, err := runAs(a.Context(), h.UserOf(a.ID), c)
			if err != nil || exit != 0 {
				return fmt.Errorf("%v: exit %d, %w\n%s", c.Args, exit, err, out)
			}
			return nil
		})
	}
	h.repositories.Backed("db-1")
}

// restorable waits until a moment can be restored that is not before another one.
func (a *archived) restorable(within time.Duration, since time.Time) member.Mark {
	a.Helper()
	return a.Awaits(a.ID, within, func(r member.Report) error {
		if r.Archived == nil || r.Archived.Restorable.At.Before(since) {
			return fmt.Errorf("archived %+v, problem %s %s", r.Archived, r.Problem, r.Detail)
		}
		return nil
	}).Archived.Restorable
}

// restore restores the database as it was at a moment, and answers what a query says of it.
func (a *archived) restore(h *Host, at time.Time, query string) string {
	a.Helper()
	place, err := h.repositories.Place(a.ID)
	a.Must(err)
	user := h.UserOf(a.ID)
	dir := filepath.Join(h.MemberDir(a.ID), "restored-"+strconv.FormatInt(at.UnixNano(), 36))
	a.Must(user.MakeDir(dir))
	listing, err := h.listBackups(a.Context(), user, place, "main")
	a.Must(err)
	at = at.Truncate(time.Microsecond)
	r := backup.Restore{Repository: "main", Target: backup.Target{Until: at}}
	for _, b := range listing.Backups {
		if b.Stop.Before(at) {
			r.Label = b.Label
		}
	}
	place.DataDir = filepath.Join(dir, "data")
	a.Must(user.MakeDir(place.DataDir))
	place.Dir = filepath.Join(dir, "backup")
	a.Must(user.MakeDir(place.Dir))
	for _, f := range h.engine.Files(place) {
		a.Must(user.ReplaceFile(f.Path, f.Data, f.Mode))
	}
	out, exit, err := runAs(a.Context(), user, h.engine.Restore(place, r))
	if err != nil || exit != 0 {
		a.Fatalf("restore: exit %d, %v\n%s", exit, err, out)
	}
	// The path of a socket is short.
	sockets, err := os.MkdirTemp("/tmp", "howdah-")
	a.Must(err)
	defer os.RemoveAll(sockets)
	if user != nil {
		a.Must(os.Chown(sockets, user.UID, user.GID))
	}
	recovery := h.engine.Recovery(place, r)
	a.Must(user.ReplaceFile(filepath.Join(place.DataDir, recovery.Signal), nil, 0o600))
	install, err := postgres.Find(a.Major)
	a.Must(err)
	port := hosttest.FreePort(a.T)
	args := []string{
		"-D", place.DataDir, "-p", strconv.Itoa(port), "-k", sockets, "-c", "listen_addresses=", "-c", "archive_mode=off", "-c", "hot_standby=off",
		"-c", "ssl=off", "-c", "logging_collector=off", "-c", "shared_preload_libraries=", "-c", "primary_conninfo=", "-c", "primary_slot_name=",
		"-c", "hba_file=" + filepath.Join(place.DataDir, "pg_hba.conf"), "-c", "ident_file=" + filepath.Join(place.DataDir, "pg_ident.conf"), "-c", "cluster_name=restored", "-c", "synchronous_standby_names=",
	}
	for name, value := range recovery.Settings {
		args = append(args, "-c", name+"="+value)
	}
	cmd := exec.Command(install.Program("postgres"), args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = os.Stderr, os.Stderr, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if user != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(user.UID), Gid: uint32(user.GID)}
	}
	testkit.Start(a.T, cmd)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		<-ended
	}()
	var answer string
	testkit.Eventually(a.T, time.Minute, func() error {
		select {
		case err := <-ended:
			ended <- err
			a.Fatalf("the restored server ended: %v", err)
		default:
		}
		config, err := dial.Config(sockets, port, "rdsadmin", nil)
		if err != nil {
			return err
		}
		conn, err := pgx.ConnectConfig(a.Context(), config)
		if err != nil {
			return err
		}
		defer conn.Close(context.Background())
		var recovers bool
		if err := conn.QueryRow(a.Context(), "SELECT pg_is_in_recovery()").Scan(&recovers); err != nil || recovers {
			return errors.Join(err, fmt.Errorf("in recovery: %v", recovers))
		}
		return conn.QueryRow(a.Context(), query).Scan(&answer)
	})
	return answer
}

// ready waits until the member serves on a timeline.
func (a *archived) ready(timeline int) {
	a.Helper()
	a.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if !r.Ready || r.InRecovery || r.Timeline != timeline {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
}

// serves runs a host on which the database serves, with a table to write into.
func (a *archived) serves() (h *Host, stop func(), conn *pgx.Conn) {
	a.Helper()
	h, stop = a.run(func(h *Host) { h.spares.Keep = 1 })
	a.Assign(a.Assignment)
	a.ready(1)
	conn = a.admin(h)
	a.exec(conn, "CREATE TABLE said (n int, at timestamptz DEFAULT clock_timestamp(), noise text)")
	return h, stop, conn
}

// says waits for what is said of the archive.
func (a *archived) says(check func(member.Report, member.Archived) bool) (said member.Archived) {
	a.Helper()
	a.Awaits(a.ID, 3*time.Minute, func(r member.Report) error {
		if said = (member.Archived{}); r.Archived != nil {
			said = *r.Archived
		}
		if !check(r, said) {
			return fmt.Errorf("archived %+v, problem %s %s", said, r.Problem, r.Detail)
		}
		return nil
	})
	return said
}

// TestWhatIsPromisedIsRestored, while the agent is killed and everybody writes.
func TestWhatIsPromisedIsRestored(t *testing.T) {
	t.Parallel()
	a := newArchived(t, "")
	h, stop, conn := a.serves()
	a.backup(h, backupmodel.Full)
	a.exec(conn, "INSERT INTO said VALUES (1)")
	var wrote time.Time
	a.Must(conn.QueryRow(a.Context(), "SELECT clock_timestamp()").Scan(&wrote))
	m := a.restorable(90*time.Second, wrote.Add(time.Second)) // the backup ends with a whole second
	if m.Timeline != 1 || m.LSN == 0 {
		t.Errorf("%+v", m)
	}
	a.exec(conn, "INSERT INTO said VALUES (2)")
	if got := a.restore(h, m.At, "SELECT string_agg(n::text, ' ' ORDER BY n) FROM said"); got != "1" {
		t.Errorf("restored %q", got)
	}
	stop()
	kill := a.runProcess()
	a.exec(conn, "INSERT INTO said VALUES (3)")
	kill()
	a.Must(conn.QueryRow(a.Context(), "SELECT clock_timestamp()").Scan(&wrote))
	h, stop = a.run(nil)
	m = a.restorable(2*time.Minute, wrote)
	if got := a.restore(h, m.At, "SELECT string_agg(n::text, ' ' ORDER BY n) FROM said"); got != "1 2 3" {
		t.Errorf("restored %q", got)
	}
	files, err := filepath.Glob(filepath.Join(a.dir, "db-1", "archive", "db-1", "*", "*", "*"))
	if err != nil || len(files) == 0 {
		t.Errorf("no WAL in the repository: %v", err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", strings.TrimPrefix(f, a.dir), info, err)
		}
	}
	stop()
}

// fillWAL writes files of WAL one after the other.
func (a *archived) fillWAL(conn *pgx.Conn, files int) {
	a.Helper()
	for range files {
		// It does not get small when it is compressed.
		a.exec(conn, "INSERT INTO said SELECT 0, clock_timestamp(), md5(random()::text) FROM generate_series(1, 8000)")
		a.exec(conn, "SELECT pg_switch_wal()")
	}
}

// onDisk is a database that archives to a file system of its own. Six files of WAL may wait.
func onDisk(t *testing.T) (a *archived, h *Host, conn *pgx.Conn, disk loopdisk.Disk) {
	t.Helper()
	disk = loopdisk.New(t, "96")
	a = newArchived(t, filepath.Join(disk.Dir, "repository"))
	a.Archive.Cap = mayWait * mark.SegmentSize
	h, stop, conn := a.serves()
	t.Cleanup(stop)
	a.backup(h, backupmodel.Full)
	return a, h, conn, disk
}

const mayWait = 6 // files

// whole waits until all that waited is archived, and nothing was given up.
func (a *archived) whole(conn *pgx.Conn) {
	a.Helper()
	a.fillWAL(conn, 1) // PostgreSQL tries again at once
	a.says(func(r member.Report, s member.Archived) bool {
		return r.Archived != nil && s.Restorable.Timeline == r.Timeline && s.Failing == "" && s.Waiting == 0 && s.Broken == ""
	})
}

// TestARepositoryThatIsAwayStopsNoPrimary: it cannot be written to, or is not mounted. Once it is
// back, nothing is missing.
func TestARepositoryThatIsAwayStopsNoPrimary(t *testing.T) {
	depth.Deep(t)
	t.Parallel()
	a, h, conn, disk := onDisk(t)
	a.Must(exec.Command("mount", "-o", "remount,ro", disk.Dir).Run())
	a.fillWAL(conn, 2)
	a.says(func(_ member.Report, s member.Archived) bool {
		return strings.Contains(s.Failing, "cannot be written to") && s.Waiting > 0 && !s.Since.IsZero()
	})
	a.Must(exec.Command("mount", "-o", "remount,rw", disk.Dir).Run())
	a.whole(conn)

	disk.Unmount()
	a.fillWAL(conn, 2)
	a.says(func(_ member.Report, s member.Archived) bool {
		return strings.Contains(s.Failing, "mount it on this host") && strings.Contains(s.Failing, a.dir)
	})
	if _, err := os.Stat(a.dir); err == nil {
		t.Error("something was written to what is no repository")
	}
	disk.Mount(t)
	a.whole(conn)

	// It is stopped while the repository is away. What it left is archived when it is started again.
	disk.Unmount()
	a.exec(conn, "INSERT INTO said VALUES (7)")
	a.fillWAL(conn, 1)
	stopped := a.Assignment
	stopped.Generation, stopped.Want = 2, member.Stopped
	a.Assign(stopped)
	a.stopped(stopped, "WAL waits to be archived")
	disk.Mount(t)
	again := a.Assignment
	again.Generation = 3
	a.Assign(again)
	a.ready(2)
	conn = a.admin(h)
	a.whole(conn)
	a.exec(conn, "INSERT INTO said VALUES (8)")
	var wrote time.Time
	a.Must(conn.QueryRow(a.Context(), "SELECT clock_timestamp()").Scan(&wrote))
	m := a.restorable(2*time.Minute, wrote)
	if got := a.restore(h, m.At, "SELECT string_agg(DISTINCT n::text, ' ') FROM said"); got != "0 7 8" {
		t.Errorf("restored %q", got)
	}

	// Stopped in good order it has archived everything.
	stopped.Generation = 4
	a.Assign(stopped)
	a.stopped(stopped, "")
}

// stopped waits until a member has stopped, and says this of WAL that its archive may lack.
func (a *archived) stopped(as member.Assignment, unarchived string) {
	a.Helper()
	a.Awaits(as.ID, time.Minute, func(r member.Report) error {
		if r.Generation != as.Generation || r.Postgres || r.Patroni || !strings.Contains(r.Unarchived, unarchived) || unarchived == "" && r.Unarchived != "" {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
}

// TestAFullRepositoryStopsNoPrimary: more waits than may. What was given up is told, until a backup
// heals it, and until then nothing is promised that lies behind it.
func TestAFullRepositoryStopsNoPrimary(t *testing.T) {
	t.Parallel()
	a, h, conn, disk := onDisk(t)
	filler := filepath.Join(disk.Dir, "filler")
	for _, step := range []string{"64k", "1k"} { // until it is full
		_ = exec.Command("dd", "if=/dev/zero", "of="+filler, "bs="+step, "oflag=append", "conv=notrunc").Run()
	}
	a.fillWAL(conn, 3*mayWait)
	broken := a.says(func(_ member.Report, s member.Archived) bool {
		return strings.Contains(s.Failing, "full") && s.Broken != "" && s.Waiting <= (mayWait+1)*mark.SegmentSize
	})
	a.exec(conn, "INSERT INTO said VALUES (1)")
	a.Must(os.Remove(filler))
	a.fillWAL(conn, 1)
	after := a.says(func(r member.Report, s member.Archived) bool {
		return s.Failing == "" && s.Waiting == 0 && s.Broken == broken.Broken && r.Problem == member.ArchiveBroken
	})
	a.exec(conn, "INSERT INTO said VALUES (2)")
	a.backup(h, backupmodel.Full)
	var wrote time.Time
	a.Must(conn.QueryRow(a.Context(), "SELECT clock_timestamp() + interval '1 s'").Scan(&wrote))
	healed := a.says(func(_ member.Report, s member.Archived) bool { return s.Broken == "" && s.Restorable.At.After(wrote) })
	if after.Restorable.At != broken.Restorable.At {
		t.Errorf("%s could be restored, and then %s, while WAL was missing", broken.Restorable.At, after.Restorable.At)
	}
	if got := a.restore(h, healed.Restorable.At, "SELECT string_agg(DISTINCT n::text, ' ') FROM said"); got != "0 1 2" {
		t.Errorf("restored %q", got)
	}
}

// TestAFailoverLeavesNoGap: what the old primary had not archived is archived by the new one.
func TestAFailoverLeavesNoGap(t *testing.T) {
	t.Parallel()
	a := newArchived(t, "")
	a.Cluster.Sync = patroni.SyncSingle
	h, stop := a.run(func(h *Host) { h.spares.Keep = 1 })
	defer stop()
	a.Assign(a.Assignment)
	a.ready(1)
	second := a.Assignment
	second.Name, second.ID, second.Port, second.RESTPort = "m2", "db-1.m2", hosttest.FreePort(t), hosttest.FreePort(t)
	a.Assign(second)
	a.Awaits(second.ID, 2*time.Minute, func(r member.Report) error {
		if !r.Ready || !r.Streaming {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	conn := a.admin(h)
	a.exec(conn, "CREATE TABLE said (n int, at timestamptz DEFAULT clock_timestamp(), noise text)")
	a.backup(h, backupmodel.Full)
	before := a.restorable(2*time.Minute, time.Time{}.Add(1))

	a.Must(os.Rename(a.dir, a.dir+".away"))
	a.fillWAL(conn, 5)
	a.exec(conn, "INSERT INTO said VALUES (1)")
	a.says(func(_ member.Report, s member.Archived) bool { return s.Waiting >= 5*mark.SegmentSize })
	var wrote time.Time
	a.Must(conn.QueryRow(a.Context(), "SELECT clock_timestamp()").Scan(&wrote))
	first := a.Assignment
	first.Generation, first.Want = 2, member.Stopped
	a.Assign(first)
	a.stopped(first, "WAL waits to be archived, from 0000")
	a.Assignment = second
	a.ready(2)
	a.Must(os.Rename(a.dir+".away", a.dir))
	conn = a.admin(h)
	a.exec(conn, "INSERT INTO said VALUES (2)")
	m := a.restorable(2*time.Minute, wrote)
	if m.Timeline != 2 || m.At.Before(before.At) {
		t.Errorf("%+v after %+v", m, before)
	}
	a.says(func(_ member.Report, s member.Archived) bool {
		return s.Broken == "" && s.Failing == "" && s.Waiting == 0
	})
	if got := a.restore(h, m.At, "SELECT string_agg(DISTINCT n::text, ' ') FROM said WHERE at < '"+wrote.Format(time.RFC3339Nano)+"'"); got != "0 1" {
		t.Errorf("restored %q", got)
	}
}
