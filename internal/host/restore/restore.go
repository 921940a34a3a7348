// Package restore makes a data directory from a repository, or of a server that runs on the same
// host: it has a backup's files copied, and a private PostgreSQL replay WAL up to a target and end
// recovery there. What comes out is a cluster
// that was stopped in good order, and that nothing tells from one which was just made, but for its
// data: with a system identifier of its own, without slots, settings, statistics or logs of the
// source.
//
// Everything runs as the user whom the directory belongs to, in a group of processes of its own. A
// result is there whole, on the disk, or not at all. Whoever is killed in the middle, be it the
// caller, calls Restore again: it goes on with the replay, or begins anew.
package restore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/proc"
	"howdah/internal/host/tree"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/system/owner"
)

// Request says what to restore, and where to. All fields without a comment about zero are required.
type Request struct {
	// Dir is where all is made: a directory that belongs to User, or is made in one that does, and
	// that nobody else uses. The result is DataDir(Dir).
	Dir  string
	User *owner.User // nil: our own
	// Procs and Group run the programs. Nothing else may be in the group.
	Procs *proc.Host
	Group *proc.Group
	// NoSubvolumes: see proc.Command. Limit, if set, is called with each program that was started.
	NoSubvolumes bool
	Limit        func(proc.Process)

	Install postgres.Install
	// Engine copies, and says how WAL is got. Place names the repository with the source's part.
	// DataDir and Dir of it are set here.
	Engine backup.Engine
	Place  backup.Place
	Source backup.Restore
	// Live, if set, is a server that is cloned instead: Engine and the repositories of Place are not
	// used then, and Source only tells one clone from another.
	Live *Live
	// CA has the certificates, as PEM, that sign those of the place's repositories. nil: CAFile is
	// set, or not needed.
	CA []byte
	// SocketDir and Port are where the private server listens, and Superuser whom it lets in. It
	// connects to DBName.
	SocketDir string
	Port      int
	Superuser string
	DBName    string
	// LetUser lets User be Superuser there, too, for programs that Finish runs.
	LetUser bool
	// Settings are given to the private server, such as shared_buffers. nil: none.
	Settings map[string]string
	// Finish, if set, is called with a connection of Superuser's to DBName in the private server,
	// once recovery has ended. It may be called again, and bounds by itself how long it takes.
	Finish func(ctx context.Context, conn *pgx.Conn) error
	// Progress, if set, is called now and then from the goroutine that restores.
	Progress func(member.Restoring)
	Log      *slog.Logger
}

// Result is what was restored.
type Result struct {
	// EndLSN is how far WAL was replayed, and Timeline the one that the server began there.
	EndLSN   lsn.LSN `json:"end_lsn"`
	Timeline int     `json:"timeline"`
	// LastCommit is the time of the newest commit that was replayed. It is zero if none was.
	LastCommit time.Time `json:"last_commit,omitzero"`
	// Bytes is the size of the files that were copied, and Shared how many of these share their blocks
	// with the source. Files and Replay are how long that took, and
	// the rest. Both are of the last try.
	Bytes  int64         `json:"bytes"`
	Shared int64         `json:"shared,omitempty"`
	Files  time.Duration `json:"files"`
	Replay time.Duration `json:"replay"`
}

// Error is why a restore failed.
type Error struct {
	Reason string
	// Final says that another try would fail, too: the repository does not have what was asked for.
	Final bool
	// Backups are the labels of the backups that have files which are damaged or missing in the
	// repository. It is empty if there are none, and if nobody knows which.
	Backups []string
	// Lost is the file of WAL, or of a timeline's history, that is missing in the middle of the archive,
	// or is damaged; "": there is none. All before it on the way that was followed, Past, was there.
	Lost string
	Past []Branch
	// Reaches is the newest moment before Lost that a restore reaches; zero: nobody knows.
	Reaches time.Time
}

// Branch is a timeline that was followed until a position; of the last one it is 0.
type Branch struct {
	Timeline int
	Until    lsn.LSN
}

func (e *Error) Error() string { return e.Reason }

// final returns an error that another try does not mend.
func final(format string, args ...any) error {
	return &Error{Reason: fmt.Sprintf(format, args...), Final: true}
}

// Final reports whether another try would fail with the same error.
func Final(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Final
}

// Names below the directory of a restore.
const (
	partDir   = "part"     // data that are not whole
	wholeDir  = "data"     // and those that are
	engineDir = "engine"   // files of the engine
	confDir   = "conf"     // of the private server
	fetchDir  = "fetched"  // WAL that was only looked at
	stateFile = "restore"  // how far it is
	outFile   = "out.log"  // of the engine
	logFile   = "postgres" // of the private server
	pidFile   = "postmaster.pid"
)

// DataDir returns where the restored data are once they are whole, below the directory of a
// restore. Whoever takes them renames that.
func DataDir(dir string) string { return filepath.Join(dir, wholeDir) }

// work is a restore that goes on.
type work struct {
	Request
	state state
	began time.Time
	told  time.Time // when progress was told last
	// at is called at each step, for tests: with an error the restore ends there as if it were killed.
	at func(step string) error
}

func (w *work) path(name string) string { return filepath.Join(w.Dir, name) }

func (w *work) caFile() string { return filepath.Join(w.path(engineDir), "ca.crt") }

func (w *work) part() string { return w.path(partDir) }

// Restore makes the data, and returns once they are whole. If they are already, it returns at once.
// Two calls for one directory must not overlap. When ctx ends, nothing of it runs any more.
func Restore(ctx context.Context, r Request) (Result, error) {
	return restore(ctx, r, func(string) error { return nil })
}

var errKilled = errors.New("killed")

func restore(ctx context.Context, r Request, at func(step string) error) (Result, error) {
	w := &work{Request: r, began: time.Now(), at: at}
	w.Place.DataDir, w.Place.Dir = w.part(), w.path(engineDir)
	w.Place.SocketDir, w.Place.Port, w.Place.Major, w.Place.BinDir = r.SocketDir, r.Port, r.Install.Major, r.Install.BinDir
	if len(r.CA) > 0 {
		w.Place.Repositories = slices.Clone(r.Place.Repositories)
		for i := range w.Place.Repositories {
			w.Place.Repositories[i].CAFile = w.caFile()
		}
	}
	result, err := w.run(ctx)
	if err != nil && !errors.Is(err, errKilled) {
		// What a killed agent leaves runs on. What fails here does not.
		err = errors.Join(err, w.quiet(context.WithoutCancel(ctx)))
	}
	return result, err
}

func (w *work) run(ctx context.Context) (Result, error) {
	if err := w.quiet(ctx); err != nil {
		return Result{}, err
	}
	if err := w.User.MakeDir(w.Dir); err != nil {
		return Result{}, err
	}
	if err := w.load(); err != nil {
		return Result{}, err
	}
	if tree.Exists(DataDir(w.Dir)) && w.state.Phase == whole {
		return w.state.Result, nil
	}
	if w.state.Phase != ending && w.state.Phase != renewing && w.Live == nil {
		if err := w.equip(); err != nil {
			return Result{}, err
		}
	}
	files := w.copyFiles
	if w.Live != nil {
		files = w.copyLive
	}
	for _, step := range []struct {
		phase phase
		do    func(context.Context) error
	}{{copying, files}, {replaying, w.replay}, {ending, w.bare}, {renewing, w.finish}} {
		if w.state.Phase != step.phase {
			continue
		}
		if err := step.do(ctx); err != nil {
			if ctx.Err() != nil {
				return Result{}, ctx.Err()
			}
			return Result{}, err
		}
	}
	return w.state.Result, nil
}

// quiet ends what an earlier call left running, and frees its memory.
func (w *work) quiet(ctx context.Context) error {
	if _, err := w.Group.Kill(ctx); err != nil {
		return fmt.Errorf("end what an earlier restore left: %w", err)
	}
	if err := postgres.RemoveShared(w.part()); err != nil {
		w.Log.Warn("remove what a killed PostgreSQL left in memory", "error", err)
	}
	return w.User.Do(func() error {
		// It names a process that is dead, but that its parent may not have seen yet, or one that has
		// its number since. PostgreSQL takes either for a server of the same data.
		if err := os.Remove(filepath.Join(w.part(), pidFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove what a killed PostgreSQL left: %w", err)
		}
		return nil
	})
}

// tellEvery is how often progress is told at most.
const tellEvery = 500 * time.Millisecond

// tell tells progress, if it was not told a moment ago.
func (w *work) tell(phase string, done, of int64) {
	if w.Progress == nil || time.Since(w.told) < tellEvery {
		return
	}
	w.told = time.Now()
	w.Progress(member.Restoring{Phase: phase, Done: done, Of: of, Began: w.state.Began})
}

// Discard removes all that was made below the directory of a restore, and ends what runs. A result
// that somebody took is not there any more.
func Discard(ctx context.Context, group *proc.Group, user *owner.User, dir string) error {
	if _, err := group.Kill(ctx); err != nil {
		return fmt.Errorf("end a restore: %w", err)
	}
	if err := group.Remove(); err != nil {
		return err
	}
	if !tree.Exists(dir) {
		return nil
	}
	_ = postgres.RemoveShared(filepath.Join(dir, partDir)) // what it does not know it leaves: that costs memory, and nothing else
	return user.Do(func() error { return os.RemoveAll(dir) })
}
