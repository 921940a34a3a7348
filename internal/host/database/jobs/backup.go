package jobs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/host/database/mark"
	"howdah/internal/host/job"
	"howdah/internal/host/pace"
	model "howdah/internal/model/backup"
	"howdah/internal/system/plainfile"
)

// programBackup is the name of the program that makes a backup.
const programBackup = "backup"

var (
	errNotThere = errors.New("the engine says that the backup is made, and does not list it")
	errLeft     = errors.New("another member was promoted while the backup was made")
)

// backUp makes a backup, unless the repository has one of the same operation.
func (h *Host) backUp(ctx context.Context, call job.Call) (any, error) {
	var args model.BackupJob
	if err := call.Decode(&args); err != nil {
		return nil, err
	}
	r, err := h.memberPlace(ctx, call, id(args))
	if err != nil {
		return nil, err
	}
	take := backup.Take{Repository: args.Repository, Kind: model.Incremental, Operation: args.Operation}
	if args.Full {
		take.Kind = model.Full
	}
	command, err := r.taking(args, take)
	if err != nil {
		return nil, err
	}
	over := never
	if args.Primary != nil {
		over = r.copies.Load // of a standby only its files are needed then
		defer r.hasten(ctx, id(args))()
	}
	if call.Resume {
		// Its end says nothing: whether it made the backup, the repository says.
		if err := r.adopt(ctx, over, r.program(programBackup, command, r.tell)); err != nil {
			return nil, err
		}
	}
	ctx, end, err := r.living(ctx, over)
	if err != nil {
		return nil, err
	}
	defer end()
	if args.Primary == nil { // what a standby has comes after what its primary prepared
		if err := r.create(ctx); err != nil {
			return nil, err
		}
	}
	if made, err := r.made(ctx, args); err != nil {
		return nil, err
	} else if made != nil && r.follows(*made) {
		h.Backed(args.Database)
		return made, nil
	}
	_, err = r.do(ctx, programBackup, command)
	if errors.Is(err, errSuspect) && take.Kind != model.Full {
		// What it would build upon cannot be read.
		h.Log.Warn("make a full backup in place of an incremental one", "database", args.Database, "error", err)
		take.Kind = model.Full
		if command, err = r.taking(args, take); err == nil {
			_, err = r.do(ctx, programBackup, command)
		}
	}
	if err != nil {
		return nil, err
	}
	made, err := r.made(ctx, args)
	switch {
	case err == nil && made == nil:
		err = errNotThere
	case err == nil && !r.follows(*made):
		err = errLeft
	}
	if err != nil {
		return nil, err
	}
	h.Backed(args.Database)
	return made, nil
}

// adopt waits for a program that an earlier agent began.
func (r *run) adopt(ctx context.Context, over func() bool, p job.Program) error {
	ctx, end, err := r.livedOn(ctx, over)
	if err != nil {
		return err
	}
	defer end()
	_, _, err = r.call.Adopt(ctx, p)
	return err
}

// taking is the command that makes a backup, of the primary or of a standby.
func (r *run) taking(args model.BackupJob, take backup.Take) (backup.Command, error) {
	if args.Primary != nil {
		return r.standby(id(args), *args.Primary, take)
	}
	return r.Engine.Backup(r.place, take), nil
}

// The engine refuses to prepare a repository while a file is archived there, which takes a moment.
const (
	createTries = 10
	createAgain = time.Second
)

// create prepares the repositories for the database, which does nothing where that is done.
func (r *run) create(ctx context.Context) error {
	for n, c := range r.Engine.Create(r.place) {
		for tries := 1; ; tries++ {
			_, err := r.do(ctx, fmt.Sprintf("create-%d", n), c)
			if err == nil {
				break
			}
			if job.IsFinal(err) || tries == createTries || !pace.Sleep(ctx, createAgain) {
				return fmt.Errorf("prepare the repository: %w", err)
			}
		}
	}
	return nil
}

// made returns the newest backup of the operation, or nil if there is none.
func (r *run) made(ctx context.Context, args model.BackupJob) (*model.Backup, error) {
	listing, err := r.listing(ctx, args.Repository)
	if err != nil {
		return nil, err
	}
	for _, info := range slices.Backward(listing.Backups) {
		if info.Operation == args.Operation {
			b := record(args, info)
			return &b, nil
		}
	}
	return nil, nil
}

// follows reports whether the member goes back to a backup of the operation. A primary that was cut
// off and replaced may have ended one on the branch that it was left on: nothing later can be
// restored from that. A standby that followed the new primary before all was copied has files of both
// branches: the old primary ended the backup after that, so beyond where the branches part.
func (r *run) follows(b model.Backup) bool {
	var history mark.History
	err := r.user.Do(func() (err error) {
		history, err = newestHistory(r.place.DataDir)
		return err
	})
	return err == nil && (history == nil || history.Has(b.Timeline, b.StopLSN))
}

// newestHistory returns the history of the newest timeline that a data directory knows; nil: it has
// none. What only bars a number is no history (package gate).
func newestHistory(dataDir string) (mark.History, error) {
	names, err := filepath.Glob(filepath.Join(dataDir, "pg_wal", "????????.history"))
	for _, name := range slices.Backward(names) { // in order
		timeline, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(name), ".history"), 16, 31)
		if err != nil {
			return nil, fmt.Errorf("read the timeline of %s: %w", name, err)
		}
		text, err := plainfile.Read(name)
		if err != nil {
			return nil, err
		}
		if history, err := mark.ParseHistory(int(timeline), string(text)); err != nil || len(history) > 1 {
			return history, err
		}
	}
	return nil, err
}

// record is what is known of a backup in the words of the model.
func record(args model.BackupJob, info backup.Info) model.Backup {
	b := model.Backup{
		Database: args.Database, Repository: args.Repository, Label: info.Label, Kind: info.Kind, Needs: info.Needs, Operation: info.Operation,
		Major: info.Major, Start: info.Start, Stop: info.Stop, Timeline: info.Timeline, StartLSN: info.StartLSN, StopLSN: info.StopLSN,
		Size: info.Size, Stored: info.Stored, Member: args.Member, Standby: args.Primary != nil,
	}
	if info.Damaged {
		b.Damaged = "pages with wrong checksums were found while the backup was made"
	}
	return b
}
