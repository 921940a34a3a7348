package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/host/database/archive"
	"howdah/internal/host/database/mark"
	"howdah/internal/host/job"
	"howdah/internal/host/pace"
	"howdah/internal/identity/repository"
	model "howdah/internal/model/backup"
	"howdah/internal/repository/store"
	"howdah/internal/repository/transfer"
)

const (
	// mostObjects is how many objects a copy has at most.
	mostObjects = 1_000_000
	// mostHead is how large a head of a part is at most, in bytes: it lists backups.
	mostHead = 64 << 20
	// storeWithin is how long a repository that we were let into may take to open.
	storeWithin = 30 * time.Second
)

var (
	errNoCopier = errors.New("the program that backs databases up cannot copy backups")
	errNoSource = errors.New("it is not in the repository any more")
	errNoWAL    = errors.New("the WAL that makes it consistent is not in the repository")
	errNotSame  = errors.New("what was copied is not the backup that was asked for")
)

// copying is a copy under way.
type copying struct {
	*run   // in the part of the copy
	engine backup.Copier
	args   model.CopyJob
	// from has the place of the source, which belongs to nobody here.
	from           backup.Place
	source, target store.Store
	// Of both parts.
	opens, seals string
}

// copy copies a backup into another repository, object by object. Then the engine, as a user that has
// nothing else, reads all of it with the key of its own repository.
//
// Whoever owns the database may have written anything into the source. What we do with root's rights
// takes objects as they are, below prefixes that the source does not choose, and bounds them.
func (h *Host) copy(ctx context.Context, call job.Call) (any, error) {
	var args model.CopyJob
	if err := call.Decode(&args); err != nil {
		return nil, err
	}
	engine, ok := h.Engine.(backup.Copier)
	if !ok {
		return nil, job.Final(errNoCopier)
	}
	r, end, err := h.aside(ctx, call, archive.Part{Database: args.Database, Repository: args.Repository})
	if err != nil {
		return nil, err
	}
	defer end()
	holder := "job/" + call.Name + "/source"
	accesses, err := h.Admit(ctx, holder, archive.Part{Database: args.Source.Database, Repository: args.Source.Repository, ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("open repository %s: %w", args.Source.Repository, err)
	}
	defer func() { _ = h.Dismiss(holder) }()
	c := &copying{
		run: r, engine: engine, args: args, from: backup.Place{Database: args.Source.Database},
		opens: accesses[0].Passphrase, seals: r.place.Repositories[0].Passphrase,
	}
	if c.source, err = h.opened(ctx, args.Source.Repository); err != nil {
		return nil, err
	}
	if c.target, err = h.opened(ctx, args.Repository); err != nil {
		return nil, err
	}
	return c.do(ctx)
}

// opened waits until a repository is open that we were let into.
func (h *Host) opened(ctx context.Context, repository string) (store.Store, error) {
	until := time.Now().Add(storeWithin)
	for {
		s, err := h.Store(repository)
		if err == nil || !errors.Is(err, archive.ErrAwaited) || time.Now().After(until) || !pace.Sleep(ctx, time.Second/5) {
			if err != nil {
				err = fmt.Errorf("open repository %s: %w", repository, err)
			}
			return s, err
		}
	}
}

func (c *copying) do(ctx context.Context) (any, error) {
	size, err := c.objects(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.heads(ctx); err != nil {
		return nil, err
	}
	if _, err := c.run.do(ctx, "settle", c.engine.Settle(c.place, c.args.Repository)); err != nil {
		return nil, fmt.Errorf("list what was copied: %w", err)
	}
	if err := c.same(ctx); err != nil {
		return nil, err
	}
	if err := c.verify(ctx); err != nil {
		return nil, err
	}
	return model.Copied{Stored: size.Bytes}, c.note(ctx, size.Bytes)
}

// verify has the engine read all of the copy.
func (c *copying) verify(ctx context.Context) error {
	out, err := c.run.do(ctx, "verify", c.Engine.Verify(c.place, c.args.Repository, ""))
	if err != nil {
		return fmt.Errorf("read the copy: %w", err)
	}
	faults, err := c.Engine.Verified(out, 0)
	if err != nil {
		return fmt.Errorf("read the copy: %w", err)
	}
	if len(faults) > 0 {
		// Each object was stored as it was read.
		return job.Final(fmt.Errorf("the backup %s is damaged in the repository %s: %s", c.args.Backup.Label, c.args.Source.Repository, faults[0])) //nolint:err113 // nobody tells it apart
	}
	return nil
}

// labels are those of all backups to copy.
func (c *copying) labels() []string {
	return append(slices.Clone(c.args.Backup.Needs), c.args.Backup.Label)
}

// objects copies the files of the backups, and WAL.
func (c *copying) objects(ctx context.Context) (transfer.Size, error) {
	from, to := c.from.Database+"/", c.place.Database+"/"
	wal := newNeeded(c.args.Backup)
	archived := c.Engine.ArchivePrefix(c.from)
	ways := []transfer.Way{{
		From: from + archived, To: to + c.Engine.ArchivePrefix(c.place),
		Want: func(rest string) bool {
			name, ok := c.Engine.WALOf(archived + rest)
			return ok && wal.wants(name)
		},
	}}
	for _, label := range c.labels() {
		ways = append(ways, transfer.Way{From: from + c.engine.BackupPrefix(c.from, label), To: to + c.engine.BackupPrefix(c.place, label)})
	}
	size, err := transfer.Copy{
		Source: c.source, Target: c.target, Ways: ways, MaxObjects: mostObjects, MaxBytes: c.args.MaxBytes,
		Progress: func(done, of int64) { c.call.Progress(done, of, "bytes") },
	}.Run(ctx)
	switch {
	case errors.Is(err, transfer.ErrTooMuch), errors.Is(err, transfer.ErrList):
		return size, job.Final(fmt.Errorf("copy the backup %s from the repository %s: %w", c.args.Backup.Label, c.args.Source.Repository, err))
	case err != nil:
		return size, fmt.Errorf("copy the backup %s from the repository %s: %w", c.args.Backup.Label, c.args.Source.Repository, err)
	}
	if missing, ok := wal.missing(); ok {
		return size, job.Final(fmt.Errorf("copy the backup %s: %w %s: segment %d is missing", c.args.Backup.Label, errNoWAL, c.args.Source.Repository, missing))
	}
	return size, nil
}

// needed is the WAL without which a backup is not consistent, and the histories of its timelines.
type needed struct {
	timeline    int
	first, last uint64 // numbers of segments
	end         uint64 // of the last one that must be there: the backup may end where one begins
	found       map[uint64]bool
}

func newNeeded(b model.Backup) *needed {
	return &needed{
		timeline: b.Timeline, first: uint64(b.StartLSN) / mark.SegmentSize, last: uint64(b.StopLSN) / mark.SegmentSize,
		end: (max(uint64(b.StopLSN), 1) - 1) / mark.SegmentSize, found: map[uint64]bool{},
	}
}

// wants reports whether a file of WAL, or a history, is to be copied.
func (n *needed) wants(name string) bool {
	if segment, ok := mark.ParseSegment(name); ok {
		if segment.Timeline > n.timeline || segment.Number < n.first || segment.Number > n.last {
			return false
		}
		n.found[segment.Number] = true
		return true
	}
	return mark.Names(name) && name <= fmt.Sprintf("%08X.history", n.timeline)
}

// missing returns a segment that was not found.
func (n *needed) missing() (uint64, bool) {
	for segment := n.first; segment <= n.end; segment++ {
		if !n.found[segment] {
			return segment, true
		}
	}
	return 0, false
}

// heads writes what opens all that was copied. It is written last, so that a part without heads is one
// without backups.
func (c *copying) heads(ctx context.Context) error {
	to := c.engine.Heads(c.place)
	for n, head := range c.engine.Heads(c.from) {
		text, err := read(ctx, c.source, c.from.Database+"/"+head, mostHead)
		if errors.Is(err, store.ErrNotFound) {
			return job.Final(fmt.Errorf("copy the backup %s from the repository %s: %w", c.args.Backup.Label, c.args.Source.Repository, errNoSource))
		}
		if err != nil {
			return err
		}
		sealed, err := c.engine.Reseal(text, c.opens, c.seals)
		if err != nil {
			return job.Final(fmt.Errorf("open %s of the repository %s: %w", head, c.args.Source.Repository, err))
		}
		if _, err := c.target.Put(ctx, c.place.Database+"/"+to[n], bytes.NewReader(sealed)); err != nil {
			return fmt.Errorf("write to the repository %s: %w", c.args.Repository, err)
		}
	}
	return nil
}

var errTooLong = errors.New("it is longer than it can be")

// read reads a small object.
func read(ctx context.Context, s store.Store, key string, most int64) ([]byte, error) {
	body, _, err := s.Get(ctx, key, 0, most+1)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, most+1))
	if err == nil && int64(len(text)) > most {
		err = job.Final(errTooLong)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return text, nil
}

// same fails unless the copy lists the backup that was asked for, with all that it needs.
func (c *copying) same(ctx context.Context) error {
	listing, err := c.listing(ctx, c.args.Repository)
	if err != nil {
		return err
	}
	want := c.args.Backup
	for _, info := range listing.Backups {
		if info.Label == want.Label && info.StopLSN == want.StopLSN && info.Timeline == want.Timeline && len(info.Needs) == len(want.Needs) {
			return nil
		}
	}
	return job.Final(fmt.Errorf("copy the backup %s from the repository %s: %w", want.Label, c.args.Source.Repository, errNotSame))
}

// note keeps beside the copy what it is a copy of.
func (c *copying) note(ctx context.Context, stored int64) error {
	note := c.args.Note
	note.Backup.Stored, note.Snapshot.Stored = stored, stored
	text, err := json.Marshal(note)
	if err != nil {
		return job.Final(err)
	}
	sealed, err := repository.SealNote(c.seals, c.args.Database, text)
	if err != nil {
		return job.Final(err)
	}
	if _, err := c.target.Put(ctx, c.args.Database+"/"+model.NoteKey, bytes.NewReader(sealed)); err != nil {
		return fmt.Errorf("write to the repository %s: %w", c.args.Repository, err)
	}
	return nil
}
