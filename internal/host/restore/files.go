package restore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/host/tree"
	"howdah/internal/system/plainfile"
)

// copyFiles has the engine copy the files of the backup. It begins with nothing.
func (w *work) copyFiles(ctx context.Context) error {
	began := time.Now()
	list := w.listing(ctx)
	size := list.Size
	failure, last, err := w.copyOnce(ctx, size)
	if err == nil && failure.Suspect {
		// What was garbled on its way is not damaged.
		if err := w.doubt(ctx, list, failure); err != nil {
			return err
		}
		failure, last, err = w.copyOnce(ctx, size)
		failure.Final = failure.Final || failure.Suspect
	}
	if err != nil {
		return err
	}
	if failure.Reason != "" {
		return &Error{Reason: failure.Reason, Final: failure.Final}
	}
	if err := w.at("copied"); err != nil {
		return err
	}
	if err := w.settle(); err != nil {
		return err
	}
	w.state.Result = Result{Bytes: max(size, last.Of, last.Done), Files: time.Since(began)}
	return w.enter(replaying)
}

// copyOnce copies the files. A failure without a reason is none.
func (w *work) copyOnce(ctx context.Context, size int64) (failure backup.Failure, last backup.Progress, err error) {
	if err := w.prepare(); err != nil {
		return failure, last, err
	}
	command := w.Engine.Restore(w.Place, w.Source)
	p, err := w.start(ctx, w.path(outFile), command.Path, command.Args, command.Env)
	if err != nil {
		return failure, last, err
	}
	defer p.close()
	if err := w.at("copying"); err != nil {
		return failure, last, err
	}
	exit, err := p.await(ctx, func(line string) error {
		if now, ok := w.Engine.Progress(line); ok {
			last = scaled(now, size)
			w.tell("files", last.Done, last.Of)
		}
		return nil
	})
	if err == nil && (!exit.Known || exit.Code != 0) {
		failure = w.Engine.Failed(p.out.all.Bytes(), exit.Code)
	}
	return failure, last, err
}

// doubt has the engine read all files of a backup that could not be copied, since one of them may be
// damaged. It returns an error if that is so, or if nobody can tell now, and nil if all are whole.
func (w *work) doubt(ctx context.Context, of backup.Info, failure backup.Failure) error {
	w.Log.Warn("look for damage in a backup", "label", w.Source.Label, "why", failure.Reason)
	command := w.Engine.Verify(w.Place, w.Source.Repository, w.Source.Label)
	out, exit, err := w.short(ctx, command.Path, command.Args, command.Env)
	if err != nil {
		return err
	}
	faults, err := w.Engine.Verified([]byte(out), exit.Code)
	if err != nil || !exit.Known || exit.Signal != 0 {
		return &Error{Reason: fmt.Sprintf("%s, and nobody could look whether it is damaged: %v", failure.Reason, err)}
	}
	// An engine may have looked at other backups, and at WAL.
	faults = slices.DeleteFunc(faults, func(f backup.Fault) bool {
		return f.WAL != "" || f.Backup != "" && f.Backup != w.Source.Label && !slices.Contains(of.Needs, f.Backup)
	})
	if len(faults) == 0 {
		return nil
	}
	return damaged(w.Source.Label, faults)
}

// mostNamed is how many files are named.
const mostNamed = 3

// damaged is the end of a restore of a backup that has damaged files.
func damaged(label string, faults []backup.Fault) error {
	e := &Error{Final: true}
	var names []string
	for n, f := range faults {
		if n < mostNamed {
			names = append(names, f.String())
		}
		if f.Backup != "" && !slices.Contains(e.Backups, f.Backup) {
			e.Backups = append(e.Backups, f.Backup)
		}
	}
	e.Reason = fmt.Sprintf("the backup %s is damaged in the repository: %s", label, strings.Join(names, "; "))
	if more := len(faults) - len(names); more > 0 {
		e.Reason += fmt.Sprintf("; and %d more", more)
	}
	return e
}

// settle ends the copying: the files are of the version that runs them, have nothing of the source's
// own, and are on the disk.
func (w *work) settle() error {
	if err := w.checkVersion(); err != nil {
		return err
	}
	if err := w.User.Do(w.scrub); err != nil {
		return fmt.Errorf("remove what is the source's own: %w", err)
	}
	if err := tree.Sync(w.Dir); err != nil {
		return err
	}
	return w.at("scrubbed")
}

// listing asks the repository what it knows of the backup; zero: nobody knows. If the backup is not
// there, the engine says so when it is to restore it. It notes the archive's newest timeline.
func (w *work) listing(ctx context.Context) backup.Info {
	command := w.Engine.List(w.Place, w.Source.Repository)
	out, exit, err := w.short(ctx, command.Path, command.Args, command.Env)
	var list backup.Listing
	if err == nil && exit.Code == 0 {
		list, err = w.Engine.ParseList([]byte(out))
	}
	if err != nil {
		w.Log.Warn("ask how large a backup is", "label", w.Source.Label, "error", err)
	}
	w.state.Archived = timelineOf(list.LastWAL)
	for _, b := range list.Backups {
		if b.Label == w.Source.Label {
			return b
		}
	}
	return backup.Info{}
}

// timelineOf is the timeline of a file of WAL; 0: it is none.
func timelineOf(name string) int {
	if len(name) != 24 {
		return 0
	}
	n, err := strconv.ParseUint(name[:8], 16, 31)
	if err != nil {
		return 0
	}
	return int(n)
}

// scaled is progress in bytes, where an engine knows parts of the whole only.
func scaled(p backup.Progress, size int64) backup.Progress {
	if size <= 0 || p.Of <= 0 {
		return p
	}
	return backup.Progress{Done: int64(float64(size) * float64(p.Done) / float64(p.Of)), Of: size}
}

// prepare makes empty directories.
func (w *work) prepare() error {
	err := w.User.Do(func() error {
		for _, dir := range []string{w.part(), w.path(fetchDir), w.path(confDir)} {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("make room for a restore: %w", err)
	}
	return nil
}

// equip writes the engine's files. What opens the repository may be another thing than before.
func (w *work) equip() error {
	if err := w.User.MakeDir(w.Place.Dir); err != nil {
		return err
	}
	files := w.Engine.Files(w.Place)
	if len(w.CA) > 0 {
		files = append(files, backup.File{Path: w.caFile(), Data: w.CA, Mode: 0o600})
	}
	for _, file := range files {
		if err := w.User.ReplaceFile(file.Path, file.Data, file.Mode); err != nil {
			return err
		}
	}
	return nil
}

// checkVersion refuses data of another major version.
func (w *work) checkVersion() error {
	text, err := w.User.ReadFile(filepath.Join(w.part(), "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return final("the backup %s has no data of PostgreSQL", w.Source.Label)
	}
	if err != nil {
		return err
	}
	if is := strings.TrimSpace(string(text)); is != strconv.Itoa(w.Install.Major) {
		return final("the backup %s is of PostgreSQL %s, and the database is to be of PostgreSQL %d: restore it with its own version", w.Source.Label, is, w.Install.Major)
	}
	return nil
}

// kept are the names in a data directory that are PostgreSQL's own data. All else is of the
// source's configuration, or was left there by somebody.
var kept = []string{
	"PG_VERSION", "base", "global", "pg_commit_ts", "pg_dynshmem", "pg_logical", "pg_multixact", "pg_notify", "pg_replslot", "pg_serial",
	"pg_snapshots", "pg_stat", "pg_stat_tmp", "pg_subtrans", "pg_tblspc", "pg_twophase", "pg_wal", "pg_xact",
	"backup_label", "tablespace_map", baseConf,
}

// emptied are directories of which only the directory is kept.
var emptied = []string{"pg_dynshmem", "pg_notify", "pg_replslot", "pg_serial", "pg_snapshots", "pg_stat", "pg_stat_tmp", "pg_subtrans", "pg_wal/summaries"}

// Files of PostgreSQL's configuration. Patroni keeps what initdb made under the first name.
const (
	baseConf  = "postgresql.base.conf"
	mainConf  = "postgresql.conf"
	autoConf  = "postgresql.auto.conf"
	hbaConf   = "pg_hba.conf"
	identConf = "pg_ident.conf"
)

// scrub removes what is the source's own, and not its data: settings, slots, statistics, logs, and
// the records of its Patroni. It is called with the rights of the data's owner, and may be called
// again.
func (w *work) scrub() error {
	entries, err := os.ReadDir(w.part())
	if err != nil {
		return err
	}
	if err := errors.Join(w.keepConf(), os.Chmod(w.part(), 0o700)); err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(kept, e.Name()) {
			if err := os.RemoveAll(filepath.Join(w.part(), e.Name())); err != nil {
				return err
			}
		}
	}
	for _, dir := range emptied {
		if err := empty(filepath.Join(w.part(), dir)); err != nil {
			return err
		}
	}
	for _, dir := range []string{"pg_wal", "pg_wal/archive_status"} { // archives may lack them
		if err := os.MkdirAll(filepath.Join(w.part(), dir), 0o700); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{autoConf: "", hbaConf: "", identConf: ""} {
		if err := plainfile.Replace(filepath.Join(w.part(), name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// keepConf keeps the configuration that initdb made, if it is there, and an empty one otherwise.
func (w *work) keepConf() error {
	base := filepath.Join(w.part(), baseConf)
	if info, err := os.Lstat(base); err == nil && info.Mode().IsRegular() {
		return nil
	}
	if err := os.RemoveAll(base); err != nil {
		return err
	}
	return plainfile.Replace(base, nil, 0o600)
}

func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
