package restore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/pace"
	"howdah/internal/host/tree"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/system/owner"
)

// Live is a running server of this host, whose data are copied while it goes on. The copy is that of
// a base backup: between pg_backup_start and pg_backup_stop, the control file last, and then the WAL
// that makes it whole, which a slot has kept. Slot and backup belong to the connection: they end with
// it, so a caller that is killed leaves nothing in the source.
type Live struct {
	// Name is that of the server, for errors.
	Name    string
	DataDir string
	User    *owner.User // its data belong to; nil: us
	// Connect connects to it as a superuser. Its connection must not time out.
	Connect func(ctx context.Context) (*pgx.Conn, error)
	// Reach returns up to where the copy has to have WAL. It is called first, with that connection. The
	// server may be a standby that has not received so much yet, or that still follows a primary that
	// was replaced.
	Reach func(ctx context.Context, conn *pgx.Conn) (Point, error)
}

// Point is a position in the WAL of a timeline.
type Point struct {
	At       lsn.LSN
	Timeline int
}

const (
	// largestFile is how large a file of PostgreSQL's data may be: relations are cut into files of a
	// gigabyte.
	largestFile = 1<<30 + 64<<10
	// nearWithin is how long a standby may take to receive what the copy has to have.
	nearWithin = 30 * time.Second
	// nearEvery is how often it is asked.
	nearEvery = 20 * time.Millisecond
	// backupWithin is how long the source may take for its checkpoint.
	backupWithin = 10 * time.Minute
	// askLive is how long anything else may take that it is asked.
	askLive = 30 * time.Second
	// roomEvery is how many bytes are copied before it is looked again what room there is.
	roomEvery = 64 << 20
	// walTries is how often a file of WAL is tried that has two names: the server is renaming it.
	walTries = 50
)

// ErrNoRoom says that a copy that shares no blocks with its source does not fit.
var ErrNoRoom = errors.New("there is no room for the copy")

// base is a base backup under way.
type base struct {
	conn     *pgx.Conn
	reach    lsn.LSN
	branch   int // the timeline of reach
	thin     bool
	start    lsn.LSN
	stop     lsn.LSN
	label    string
	timeline int
}

// copyLive copies the data of a server that runs.
func (w *work) copyLive(ctx context.Context) error {
	began := time.Now()
	if err := w.prepare(); err != nil {
		return err
	}
	conn, err := w.Live.Connect(ctx)
	if err != nil {
		return fmt.Errorf("ask the source %s: %w", w.Live.Name, err)
	}
	// It ends the backup, too, and drops the slot.
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	b := &base{conn: conn}
	for _, step := range []struct {
		name string
		do   func(context.Context, *base) error
	}{{"near", w.near}, {"begun", w.beginBackup}, {"copied", w.copyData}, {"ended", w.endBackup}, {"copied wal", w.copyWAL}} {
		if err := step.do(ctx, b); err != nil {
			return err
		}
		if err := w.at(step.name); err != nil {
			return err
		}
	}
	if err := w.User.ReplaceFile(filepath.Join(w.part(), "backup_label"), []byte(b.label), 0o600); err != nil {
		return err
	}
	if err := w.settle(); err != nil {
		return err
	}
	copied := w.state.Result
	w.state.Result = Result{Bytes: copied.Bytes, Shared: copied.Shared, Files: time.Since(began)}
	w.state.Timeline, w.state.Start, w.state.Reach = b.timeline, b.start.String(), b.reach
	return w.enter(replaying)
}

// ask runs a query in the source that takes a moment.
func (b *base) ask(ctx context.Context, sql string, to ...any) error {
	ctx, cancel := context.WithTimeout(ctx, askLive)
	defer cancel()
	return b.conn.QueryRow(ctx, sql).Scan(to...)
}

// near waits until the source has all that the copy has to have.
func (w *work) near(ctx context.Context, b *base) error {
	to, err := w.Live.Reach(ctx, b.conn)
	if err != nil {
		return fmt.Errorf("find out what the source %s has to have: %w", w.Live.Name, err)
	}
	b.reach, b.branch = to.At, to.Timeline
	for end := time.Now().Add(nearWithin); ; {
		lacks, err := b.lacks(ctx)
		if err != nil {
			return fmt.Errorf("ask the source %s how far it is: %w", w.Live.Name, err)
		}
		if lacks == "" {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the source %s %s: it is tried again", w.Live.Name, lacks) //nolint:err113 // nobody tells it apart
		}
		if !pace.Sleep(ctx, nearEvery) {
			return ctx.Err()
		}
	}
}

// timelineSQL is the timeline that a server writes, or that a standby follows.
const timelineSQL = `CASE WHEN pg_is_in_recovery()
	THEN greatest((SELECT received_tli FROM pg_stat_wal_receiver), (SELECT timeline_id FROM pg_control_checkpoint()), (SELECT min_recovery_end_timeline FROM pg_control_recovery()))
	ELSE ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int END`

// lacks says what the source has not got yet of what the copy has to have, or "". A position alone says
// little: behind the place where a timeline ended, who still follows it has what nobody acknowledged.
func (b *base) lacks(ctx context.Context) (string, error) {
	// A standby has what it received, and what it replayed from elsewhere.
	const sql = `SELECT ` + timelineSQL + `, CASE WHEN pg_is_in_recovery()
		THEN greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) ELSE pg_current_wal_flush_lsn() END::text`
	var timeline int
	var has string
	if err := b.ask(ctx, sql, &timeline, &has); err != nil {
		return "", err
	}
	at, err := lsn.Parse(has)
	switch {
	case err != nil:
		return "", err
	case timeline < b.branch:
		return fmt.Sprintf("follows timeline %d, and %d is the one where writes are acknowledged", timeline, b.branch), nil
	case at < b.reach:
		return fmt.Sprintf("is at %s, and does not get to %s, which was acknowledged before", at, b.reach), nil
	}
	return "", nil
}

// noSlotLeft is the code of the error that all slots are in use.
const noSlotLeft = "53400"

// beginBackup begins a base backup, and has all WAL kept from now on.
func (w *work) beginBackup(ctx context.Context, b *base) error {
	if err := w.measure(ctx, b); err != nil {
		return err
	}
	var name string
	err := b.ask(ctx, `SELECT slot_name FROM pg_create_physical_replication_slot('howdah_clone_' || pg_backend_pid(), true, true)`, &name)
	if e, ok := errors.AsType[*pgconn.PgError](err); err != nil && (!ok || e.Code != noSlotLeft) {
		return fmt.Errorf("keep the WAL of the source %s: %w", w.Live.Name, err)
	}
	if err != nil {
		w.Log.Warn("copy without a slot that keeps WAL", "source", w.Live.Name, "error", err)
	}
	w.tell("files", 0, w.state.Result.Bytes)
	ctx, cancel := context.WithTimeout(ctx, backupWithin)
	defer cancel()
	var start string
	if err := b.conn.QueryRow(ctx, `SELECT pg_backup_start('howdah clone', true)::text`).Scan(&start); err != nil {
		return fmt.Errorf("begin a backup of the source %s: %w", w.Live.Name, err)
	}
	b.start, err = lsn.Parse(start)
	return err
}

// measure finds out whether blocks can be shared, and whether there is room otherwise.
func (w *work) measure(ctx context.Context, b *base) (err error) {
	if b.thin, err = tree.Shares(w.Live.DataDir, "PG_VERSION", w.Live.User, w.part(), w.User); err != nil {
		return w.odd(err)
	}
	var size int64
	if err := b.ask(ctx, `SELECT sum(pg_database_size(oid))::bigint FROM pg_database`, &size); err != nil {
		return fmt.Errorf("ask how large the source %s is: %w", w.Live.Name, err)
	}
	w.state.Result.Bytes = size
	if b.thin {
		return nil
	}
	return w.room(size)
}

// room reports an error if so many bytes do not fit.
func (w *work) room(bytes int64) error {
	var disk syscall.Statfs_t
	if err := w.User.Do(func() error { return syscall.Statfs(w.Dir, &disk) }); err != nil {
		return err
	}
	size, free := int64(disk.Blocks)*disk.Bsize, int64(disk.Bavail)*disk.Bsize
	if bytes < free && !member.NearlyFull(size, free-bytes) {
		return nil
	}
	return fmt.Errorf("%w: it needs %d MiB, and the disk has %d MiB free: make room on this host, it is tried again: %w", ErrNoRoom, bytes>>20, free>>20, syscall.ENOSPC)
}

// copyData copies all but the WAL.
func (w *work) copyData(ctx context.Context, b *base) error {
	w.state.Result.Shared = 0
	if err := w.User.Do(func() error { return os.Remove(w.part()) }); err != nil { // prepare has made it
		return err
	}
	looked := int64(0)
	done, err := tree.CopyLive(ctx, tree.Live{
		From: w.Live.DataDir, By: w.Live.User, To: w.part(), As: w.User, Skip: skipped, Largest: largestFile,
		Progress: func(c tree.Copied) error {
			w.tell("files", c.Shared+c.Written, max(w.state.Result.Bytes, c.Shared+c.Written))
			if c.Written-looked < roomEvery {
				return nil
			}
			looked = c.Written
			return w.room(0)
		},
	})
	if err != nil {
		return w.odd(err)
	}
	w.state.Result.Bytes, w.state.Result.Shared = done.Shared+done.Written, done.Shared
	if err := w.at("copied data"); err != nil {
		return err
	}
	// Of a standby it says up to where WAL has to be replayed, of all that was copied before.
	if _, _, err = tree.CopyFile(w.Live.DataDir, controlFile, w.Live.User, filepath.Join(w.part(), controlFile), w.User, segmentSize); err != nil {
		return w.odd(err)
	}
	return nil
}

// odd tells what can never be copied from what may be at the next try.
func (w *work) odd(err error) error {
	if tree.Odd(err) {
		return final("the data of the source %s cannot be cloned: %v: remove it there, and clone again", w.Live.Name, err)
	}
	return fmt.Errorf("copy the data of the source %s: %w", w.Live.Name, err)
}

const controlFile = "global/pg_control"

var (
	relationForm = regexp.MustCompile(`^[0-9]+(_(fsm|vm))?(\.[0-9]+)?$`)
	tempForm     = regexp.MustCompile(`^t[0-9]+_[0-9]+(_(fsm|vm|init))?(\.[0-9]+)?$`)
	leadingName  = regexp.MustCompile(`^[0-9]+`)
)

// skipped says what of a data directory is not copied, as base backups leave it out: what is not
// data, what a server begins anew, and relations that a recovery empties.
func skipped(from *os.Root, path string) bool {
	dir, name := filepath.Split(path)
	top, below, nested := strings.Cut(path, "/")
	switch {
	case path == ".":
		return false
	case !slices.Contains(kept, top), path == "pg_wal", path == "backup_label", path == "tablespace_map", path == controlFile:
		return true
	case nested && slices.Contains(emptied, top):
		return true
	case strings.HasPrefix(name, "pgsql_tmp"), name == "pg_internal.init" || strings.HasPrefix(name, "pg_internal.init."), tempForm.MatchString(name):
		return true
	case (top == "base" || top == "pg_tblspc") && strings.Contains(below, "/") && relationForm.MatchString(name):
		// A relation with an initial fork is not logged: a recovery begins it with that.
		_, err := from.Lstat(filepath.Join(dir, leadingName.FindString(name)+"_init"))
		return err == nil
	}
	return false
}

// endBackup ends the backup. The copy needs WAL up to where the source is then.
func (w *work) endBackup(ctx context.Context, b *base) error {
	var stop, tablespaces string
	if err := b.ask(ctx, `SELECT lsn::text, labelfile, spcmapfile FROM pg_backup_stop(false)`, &stop, &b.label, &tablespaces); err != nil {
		return fmt.Errorf("end the backup of the source %s: %w", w.Live.Name, err)
	}
	if strings.TrimSpace(tablespaces) != "" {
		return final("the source %s has tablespaces outside of its data directory: it cannot be cloned", w.Live.Name)
	}
	at, err := lsn.Parse(stop)
	if err != nil {
		return err
	}
	b.stop = at
	if err := b.ask(ctx, `SELECT `+timelineSQL, &b.timeline); err != nil {
		return fmt.Errorf("ask the source %s for its timeline: %w", w.Live.Name, err)
	}
	return nil
}

var (
	walForm     = regexp.MustCompile(`^[0-9A-F]{24}$`)
	historyForm = regexp.MustCompile(`^[0-9A-F]{8}\.history$`)
)

// segmentOf is the number of the file of WAL that has a position, as the names of files end.
func segmentOf(at lsn.LSN) string {
	return postgres.WALName(at, 0)[8:]
}

// copyWAL copies the WAL that the copy needs to be whole, of all timelines.
func (w *work) copyWAL(ctx context.Context, b *base) error {
	from := filepath.Join(w.Live.DataDir, "pg_wal")
	var names []string
	err := w.Live.User.Do(func() error {
		entries, err := os.ReadDir(from)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return err
	})
	if err == nil {
		err = w.User.MakeDir(filepath.Join(w.part(), "pg_wal"))
	}
	if err != nil {
		return fmt.Errorf("copy the WAL of the source %s: %w", w.Live.Name, err)
	}
	first, last := segmentOf(b.start), segmentOf(max(b.stop, b.reach)-1)
	have := map[string]bool{}
	for _, name := range names {
		wal := walForm.MatchString(name)
		if wal && (name[8:] < first || name[8:] > last) || !wal && !historyForm.MatchString(name) || b.beyond(name) {
			continue
		}
		if err := w.copyOneWAL(ctx, from, name); err != nil {
			return err
		}
		if wal {
			have[name[8:]] = true
		}
	}
	for at := b.start / segmentSize * segmentSize; at < max(b.stop, b.reach); at += segmentSize {
		if !have[segmentOf(at)] {
			return fmt.Errorf("the source %s has removed WAL of %s meanwhile: it is tried again", w.Live.Name, at) //nolint:err113 // nobody tells it apart
		}
	}
	return nil
}

// beyond reports whether a file is of a later timeline than the source's.
func (b *base) beyond(name string) bool {
	timeline, err := strconv.ParseInt(name[:8], 16, 64)
	return err != nil || int(timeline) > b.timeline
}

func (w *work) copyOneWAL(ctx context.Context, from, name string) error {
	for try := 1; ; try++ {
		_, _, err := tree.CopyFile(from, name, w.Live.User, filepath.Join(w.part(), "pg_wal", name), w.User, segmentSize)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, os.ErrNotExist):
			return nil // it is seen below whether it is needed
		case !errors.Is(err, tree.ErrHardLink):
			return w.odd(err)
		case try >= walTries:
			return fmt.Errorf("copy the WAL of the source %s: %w", w.Live.Name, err)
		}
		if !pace.Sleep(ctx, nearEvery) {
			return ctx.Err()
		}
	}
}

// recovery says how WAL is got, and up to where it is replayed.
func (w *work) recovery() backup.Recovery {
	source := w.Source
	source.Timeline = w.state.Timeline
	if w.state.Exhaust {
		source.Target.Until, source.Target.Newest = time.Time{}, true
	}
	if w.Live == nil {
		recovery := w.Engine.Recovery(w.Place, source)
		if len(w.state.Forks) == 0 {
			// A timeline that a restore began has no history in the archive, and PostgreSQL would miss it.
			recovery.Settings["recovery_target_timeline"] = "current"
		}
		return recovery
	}
	// All WAL is there.
	settings := map[string]string{"restore_command": "/bin/false", "recovery_target_timeline": "current"}
	if tree.Exists(filepath.Join(w.part(), "pg_wal", fmt.Sprintf("%08X.history", w.state.Timeline))) {
		settings["recovery_target_timeline"] = strconv.Itoa(w.state.Timeline)
	}
	return backup.Recovery{Signal: "recovery.signal", Settings: settings}
}

// reachedAll checks that a clone has all that it has to have. If it has not, it is copied anew.
func (w *work) reachedAll(at reached) error {
	if w.Live == nil {
		return nil
	}
	// It ended recovery where its new timeline begins.
	text, err := w.User.ReadFile(filepath.Join(w.part(), "pg_wal", fmt.Sprintf("%08X.history", at.timeline)))
	if err != nil {
		return fmt.Errorf("read where the clone of %s begins: %w", w.Live.Name, err)
	}
	var end lsn.LSN
	if way, _ := wayBack(string(text), 1, 0); len(way) > 0 {
		end = way[0].At
	}
	if end >= w.state.Reach {
		return nil
	}
	return w.anew(fmt.Sprintf("it ends at %s, and has to go to %s", end, w.state.Reach))
}

// anew has a clone that is of no use copied anew.
func (w *work) anew(reason string) error {
	return errors.Join(&Error{Reason: "the copy of " + w.Live.Name + " cannot be used, and is made anew: " + reason}, w.enter(copying))
}
