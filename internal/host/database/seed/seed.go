package seed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/engine/backup"
	"howdah/internal/host/tree"
	"howdah/internal/model/lsn"
	"howdah/internal/system/plainfile"
)

// Patience says how long the repository may take.
type Patience struct {
	// Still is how long the engine may say nothing, and Least how many bytes a second it has to
	// copy, after Grace.
	Still, Grace time.Duration
	Least        int64
	// Gap is how long the WAL may take that the primary does not keep any more.
	Gap time.Duration
}

// DefaultPatience is less than anybody waits for pg_basebackup, which has none.
var DefaultPatience = Patience{Still: 2 * time.Minute, Grace: 10 * time.Minute, Least: 4 << 20, Gap: time.Minute}

var (
	errUsed    = errors.New("data were made of this backup once, and are wanted again")
	errUnknown = errors.New("the repository does not have the backup")
	errOther   = errors.New("the backup is of another server")
	errDamaged = errors.New("the backup has damaged pages")
	errLeft    = errors.New("the backup lies on a branch that was left")
	errOld     = errors.New("too much WAL follows the backup")
	errRoom    = errors.New("there is too little room")
	errMoved   = errors.New("another member was promoted meanwhile")
)

// Maker makes the data of one standby. The fields are required.
type Maker struct {
	Engine   backup.Engine
	Order    Order
	Conninfo string // of the primary, as pg_basebackup gets it
	// Dir is the member's Dir, and To where the data belong: a path with nothing, or with an empty
	// directory.
	Dir, To  string
	Patience Patience
	Log      *slog.Logger
	// at is called at each step, for tests; nil: nothing is.
	at func(step string)
}

func (m *Maker) step(name string) {
	if m.at != nil {
		m.at(name)
	}
}

// Make makes the data. If it fails, nothing is at the place where they belong, and nothing of it
// runs any more. It must not be called twice at a time for one member. The programs that it starts
// end with the thread that calls it.
func (m *Maker) Make(ctx context.Context) error {
	began := time.Now()
	if err := m.begin(); err != nil {
		return err
	}
	p, err := look(ctx, m.Conninfo)
	if err != nil {
		return err
	}
	of, err := m.find(ctx, p)
	if err != nil {
		return err
	}
	if err := p.since(ctx, m.Conninfo, of.Timeline); err != nil {
		return err
	}
	if err := m.files(ctx, of); err != nil {
		return err
	}
	m.step("copied")
	to, err := m.wal(ctx, p, of)
	if err != nil {
		return err
	}
	m.step("fetched")
	if now, err := look(ctx, m.Conninfo); err != nil {
		return err
	} else if now.system != p.system || now.timeline() != p.timeline() {
		return errMoved
	}
	if err := m.end(); err != nil {
		return err
	}
	m.Log.Info("made the data of a standby from the repository", "backup", of.Label, "bytes", of.Size, "wal", to.String(), "took", time.Since(began).String())
	return nil
}

func (m *Maker) data() string { return filepath.Join(m.Dir, dataDir) }

// begin removes what an earlier call left.
func (m *Maker) begin() error {
	if used, err := plainfile.Read(filepath.Join(m.Dir, usedFile)); err == nil && string(used) == m.Order.Label {
		return errUsed
	}
	if err := errors.Join(os.RemoveAll(m.data()), os.Mkdir(m.data(), 0o700)); err != nil {
		return fmt.Errorf("make room for a standby: %w", err)
	}
	return nil
}

// find returns what the repository says of the backup, if a standby of the primary can begin with it.
func (m *Maker) find(ctx context.Context, p primary) (of backup.Info, err error) {
	out, err := m.short(ctx, m.Engine.List(m.Order.Place, m.Order.Repository))
	if err != nil {
		return of, err
	}
	list, err := m.Engine.ParseList(out)
	if err != nil {
		return of, err
	}
	n := slices.IndexFunc(list.Backups, func(b backup.Info) bool { return b.Label == m.Order.Label })
	if n < 0 {
		return of, fmt.Errorf("%w %s", errUnknown, m.Order.Label)
	}
	of = list.Backups[n]
	switch {
	case of.SystemID != p.system || of.Major != m.Order.Place.Major:
		return of, errOther
	case of.Damaged:
		return of, errDamaged
	case of.StartLSN == 0 || of.StopLSN < of.StartLSN || of.StopLSN > p.at || !p.history.Has(of.Timeline, of.StopLSN):
		return of, errLeft
	}
	gap, most := int64(p.at-of.StartLSN), mostWAL(of.Size)
	if gap > most {
		return of, fmt.Errorf("%w: %d MiB, and %d MiB may", errOld, gap>>20, most>>20)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(m.Dir, &disk); err != nil {
		return of, fmt.Errorf("look for room: %w", err)
	}
	if free := int64(disk.Bavail) * disk.Bsize; free < of.Size+gap+leftFree {
		return of, fmt.Errorf("%w: %d MiB are free, and %d MiB are needed", errRoom, free>>20, (of.Size+gap+leftFree)>>20)
	}
	return of, nil
}

const (
	// leastWAL may always follow a backup. A database of which little is written has that much after a few
	// minutes: a file of WAL that is archived before it is full counts as a whole one.
	leastWAL = 256 << 20
	// leftFree is what stays free of a disk.
	leftFree = 128 << 20
)

// mostWAL is how much WAL may follow a backup of some size: as much as a copy has room for, and
// not more than what is replayed sooner than the primary would have sent its files.
func mostWAL(size int64) int64 { return max(leastWAL, size/10) }

// files has the engine copy the files of the backup.
func (m *Maker) files(ctx context.Context, of backup.Info) error {
	within := m.Patience.Grace + time.Duration(of.Size/m.Patience.Least)*time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, within, errSlow)
	defer cancel()
	return m.long(ctx, m.Engine.Restore(m.Order.Place, backup.Restore{Repository: m.Order.Repository, Label: of.Label}))
}

// end puts the data in their place.
func (m *Maker) end() error {
	if err := tree.Sync(m.Dir); err != nil {
		return err
	}
	m.step("synced")
	if err := plainfile.Replace(filepath.Join(m.Dir, usedFile), []byte(m.Order.Label), 0o600); err != nil {
		return fmt.Errorf("note what the standby is made of: %w", err)
	}
	m.step("noted")
	if err := remove(m.To); err != nil {
		return err
	}
	return os.Rename(m.data(), m.To)
}

// wal fetches the WAL that follows the backup, until the primary has the rest. It returns where that
// is.
func (m *Maker) wal(ctx context.Context, p primary, of backup.Info) (lsn.LSN, error) {
	for timeline, text := range p.files {
		path := filepath.Join(m.data(), "pg_wal", fmt.Sprintf("%08X.history", timeline))
		if err := plainfile.Replace(path, []byte(text), 0o600); err != nil {
			return 0, fmt.Errorf("write the history of a timeline: %w", err)
		}
	}
	return m.fetchAll(ctx, p, of)
}

// arguments are those of pg_basebackup that say where to copy to and from.
func arguments(args []string) (to, conninfo string) {
	for _, a := range args {
		if value, ok := strings.CutPrefix(a, "--pgdata="); ok {
			to = value
		}
		if value, ok := strings.CutPrefix(a, "--dbname="); ok {
			conninfo = value
		}
	}
	return to, conninfo
}
