package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"howdah/internal/identity/repository"
	"howdah/internal/model/backup"
	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	repositoryplace "howdah/internal/repository/place"
	"howdah/internal/repository/store"
	"howdah/internal/state"
)

// allCopies is the name of the part that stands for those of all copies in a repository. Its record
// says since which restoration of the home copies were looked for.
const allCopies = "copies"

const (
	// findWithin is how long one look for copies in a repository takes at most.
	findWithin = 10 * time.Minute
	mostNote   = 1 << 20
	// A part without a note is half a copy. It is left alone as long as somebody may be at it.
	halfFor = backup.Day
)

// foundCopy is a part of a repository that has a copy. Note is nil if the copy is not whole.
type foundCopy struct {
	part string
	note *backup.CopyNote
	// young says that something was written into a part without a note not long ago.
	young bool
}

// finder looks for copies, each repository apart: one that is away keeps nobody waiting.
type finder struct {
	mu      sync.Mutex
	running map[string]bool
	found   map[string][]foundCopy
	failed  map[string]error
}

// take returns what a look has found that has ended, and begins one if none is under way.
func (f *finder) take(ctx context.Context, name string, look func(context.Context) ([]foundCopy, error)) (all []foundCopy, ended bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running[name] {
		return nil, false, nil
	}
	if err := f.failed[name]; err != nil {
		delete(f.failed, name) // the next round begins again
		return nil, false, err
	}
	if all, ended = f.found[name]; ended {
		delete(f.found, name)
		return all, true, nil
	}
	f.running[name] = true
	go func() { // it ends with ctx, or with an answer of the repository that comes late
		ctx, cancel := context.WithTimeout(ctx, findWithin)
		defer cancel()
		all, err := look(ctx)
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.running, name)
		if f.failed[name] = err; err == nil {
			delete(f.failed, name)
			f.found[name] = all
		}
	}()
	return nil, false, nil
}

// findCopies records the copies of a repository that nobody knows since the home was restored. Their
// snapshots are there again, as they were when the copies were made.
func (k *keeper) findCopies(ctx context.Context, name string) error {
	if k.Repository == nil || !k.unlisted(backup.CopyPart, name) {
		return nil
	}
	all, ended, err := k.finder.take(ctx, name, func(ctx context.Context) ([]foundCopy, error) { return k.lookForCopies(ctx, name) })
	if err != nil || !ended {
		return err
	}
	half := false
	for _, c := range all {
		ops, wait := k.adoptCopy(c, name)
		half = half || wait
		if len(ops) == 0 {
			continue
		}
		if err := k.commit(ctx, ops...); err != nil {
			return fmt.Errorf("record the copy %s: %w", c.part, err)
		}
	}
	if half {
		return nil // it is looked at again
	}
	key, home := state.BackupPart(allCopies, name), k.restored()
	var revision int64
	if r, err := state.View[backup.Part](k.Cache, key); err == nil {
		revision = r.Revision
	}
	return k.commit(ctx, state.Swap(key, revision, backup.Part{Repository: name, Listed: home.ID, About: operation.About{Database: allCopies}}))
}

// forgetCopies removes what is noted of a repository that is no more.
func (k *keeper) forgetCopies(ctx context.Context, key, name string) error {
	_, revision, there := k.Cache.Raw(key)
	if _, _, known := k.Cache.Raw(state.Repository(name)); known || !there {
		return nil
	}
	return k.commit(ctx, state.Remove(key, revision))
}

// adoptCopy returns the changes that record a copy. wait says that it has to be looked at again.
func (k *keeper) adoptCopy(c foundCopy, name string) (ops []state.Op, wait bool) {
	key := state.BackupPart(c.part, name)
	_, _, known := k.Cache.Raw(key)
	if c.note == nil {
		if known || c.young {
			return nil, !known
		}
		// Nobody wants it: the record has Tidy remove it.
		return []state.Op{state.Swap(key, 0, backup.Part{Repository: name, About: operation.About{Type: event.Instance, Name: c.part, Database: c.part}})}, false
	}
	b, s := c.note.Backup, c.note.Snapshot
	held := state.Backup(b.Database, b.Repository, b.Label)
	if _, _, there := k.Cache.Raw(held); there {
		return nil, false
	}
	ops = append(ops, state.Swap(held, 0, b))
	if !known {
		kind := event.Instance
		if s.Cluster != nil {
			kind = event.Cluster
		}
		about := operation.About{Scope: s.Scope, Type: kind, Name: s.Common().Name, Database: c.part}
		ops = append(ops, state.Swap(key, 0, backup.Part{Repository: name, About: about}))
	}
	at := snapshotKey(s)
	if old, err := state.View[backup.Snapshot](k.Cache, at); err == nil && old.Value.Part == c.part {
		return append(ops, state.Swap(at, old.Revision, s)), false
	} else if err == nil {
		s.Name += "-" + strings.TrimPrefix(c.part, backup.CopyPart)
		at = snapshotKey(s)
	}
	return append(ops, state.Swap(at, 0, s)), false
}

// lookForCopies lists the parts of a repository that have copies, and reads their notes.
func (b *Backups) lookForCopies(ctx context.Context, name string) ([]foundCopy, error) {
	access, err := b.Repository(ctx, name, "")
	if err != nil {
		return nil, fmt.Errorf("open repository %s: %w", name, err)
	}
	s, err := repositoryplace.Open(access)
	if err == nil {
		err = store.CheckMarker(ctx, s, access.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("open repository %s: %w", name, err)
	}
	var all []foundCopy
	for query := (store.Query{Prefix: backup.CopyPart, Fold: true, Max: store.MaxList}); ; {
		page, err := s.List(ctx, query)
		if err != nil {
			return nil, fmt.Errorf("list what is in repository %s: %w", name, err)
		}
		for _, prefix := range page.Prefixes {
			part := strings.TrimSuffix(prefix, "/")
			if !labelForm.MatchString(part) || !backup.IsCopy(part) {
				continue // we make none that is called so
			}
			c := foundCopy{part: part}
			if c.note, err = b.copyNote(ctx, s, name, part); err == nil && c.note == nil {
				c.young, err = young(ctx, s, prefix)
			}
			if err != nil {
				return nil, err
			}
			all = append(all, c)
		}
		if page.Next == "" || page.Next <= query.After {
			return all, nil
		}
		query.After = page.Next
	}
}

// copyNote reads the note of a copy. It is nil if there is none, or none that fits.
func (b *Backups) copyNote(ctx context.Context, s store.Store, name, part string) (*backup.CopyNote, error) {
	body, _, err := s.Get(ctx, part+"/"+backup.NoteKey, 0, mostNote)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("read the note of %s: %w", part, err)
	}
	defer body.Close()
	sealed, err := io.ReadAll(body)
	if err != nil {
		return nil, fmt.Errorf("read the note of %s: %w", part, err)
	}
	access, err := b.Repository(ctx, name, part)
	if err != nil {
		return nil, fmt.Errorf("open repository %s: %w", name, err)
	}
	text, err := repository.OpenNote(access.Passphrase, part, sealed)
	if err != nil {
		return nil, err
	}
	var note backup.CopyNote
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&note); err != nil {
		return nil, fmt.Errorf("read the note of %s: %w", part, err)
	}
	of, shot := note.Backup, note.Snapshot
	if of.Database != part || shot.Part != part || of.Label != shot.Label || (shot.Instance == nil) == (shot.Cluster == nil) {
		return nil, fmt.Errorf("%w: that of %s is of %s", repository.ErrNote, part, of.Database)
	}
	// It may have had another name then.
	note.Backup.Repository, note.Snapshot.Repository = name, name
	return &note, nil
}

// young reports whether something was written below a prefix not long ago.
func young(ctx context.Context, s store.Store, prefix string) (bool, error) {
	page, err := s.List(ctx, store.Query{Prefix: prefix, Max: store.MaxList})
	if err != nil {
		return false, fmt.Errorf("list %s: %w", prefix, err)
	}
	for _, o := range page.Objects {
		if time.Since(o.Modified) < halfFor {
			return true, nil
		}
	}
	return false, nil
}
