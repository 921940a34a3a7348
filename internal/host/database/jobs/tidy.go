package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/host/database/archive"
	"howdah/internal/host/job"
	model "howdah/internal/model/backup"
	"howdah/internal/repository/store"
)

// list lists the backups of a database in a repository.
func (h *Host) list(ctx context.Context, call job.Call) (any, error) {
	var args model.ListJob
	if err := call.Decode(&args); err != nil {
		return nil, err
	}
	r, end, err := h.aside(ctx, call, archive.Part{Database: args.Database, Repository: args.Repository, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer end()
	listing, err := r.listing(ctx, args.Repository)
	if err != nil {
		return nil, err
	}
	return listed(args, listing), nil
}

// mostListed is how many bytes the backups of a Listed have, so that it fits into a result.
const mostListed = 6 << 10

// listed returns the backups that are not known yet, as many as fit.
func listed(args model.ListJob, listing backup.Listing) (l model.Listed) {
	l.Backups = []model.Backup{}
	size := 0
	for _, info := range listing.Backups {
		if slices.Contains(args.Known, info.Label) {
			continue
		}
		b := record(model.BackupJob{Database: args.Database, Repository: args.Repository}, info)
		text, err := json.Marshal(b)
		if size += len(text); err != nil || size > mostListed {
			l.More = true
			return l
		}
		l.Backups = append(l.Backups, b)
	}
	return l
}

// tidy removes what nobody needs.
func (h *Host) tidy(ctx context.Context, call job.Call) (any, error) {
	var args model.TidyJob
	if err := call.Decode(&args); err != nil {
		return nil, err
	}
	r, end, err := h.aside(ctx, call, archive.Part{Database: args.Database, Repository: args.Repository})
	if err != nil {
		return nil, err
	}
	defer end()
	listing, err := r.listing(ctx, args.Repository)
	if err != nil && !args.Gone {
		return nil, err
	}
	if err := lost(listing, args.Keep); err != nil {
		return nil, err
	}
	removed := unneeded(listing, args.Keep)
	done := model.Tidied{Removed: removed[:min(len(removed), mostTold)]}
	if args.Gone {
		return done, r.removeAll(ctx, args)
	}
	if len(listing.Backups) == 0 {
		return done, r.removeWAL(ctx, args, time.Now().Add(-keepWAL))
	}
	expire := backup.Expire{Repository: args.Repository, Labels: removed, Archive: withWAL(listing, removed, args.Keep, args.Archive)}
	for n, c := range r.Engine.Expire(r.place, expire) {
		if _, err := r.do(ctx, fmt.Sprintf("expire-%d", n), c); err != nil {
			return nil, fmt.Errorf("remove what is not needed: %w", err)
		}
	}
	return done, nil
}

// unneeded lists the backups that none of those which are to be kept needs. The engine cannot be
// without the newest full one.
func unneeded(listing backup.Listing, keep []string) []string {
	needed := map[string]bool{}
	for n, b := range slices.Backward(listing.Backups) {
		last := b.Kind == model.Full && !slices.ContainsFunc(listing.Backups[n+1:], func(o backup.Info) bool { return o.Kind == model.Full })
		if !slices.Contains(keep, b.Label) && !last {
			continue
		}
		needed[b.Label] = true
		for _, label := range b.Needs {
			needed[label] = true
		}
	}
	var labels []string
	for _, b := range listing.Backups {
		if !needed[b.Label] {
			labels = append(labels, b.Label)
		}
	}
	return labels
}

// mostTold bounds what a result tells: it has room for a few KiB.
const mostTold = 100

// errLost says that nothing is removed, because what is to stay is not there.
var errLost = errors.New("the repository lists no backup of the database, although there are some that must stay: " +
	"nothing is removed; look whether its files were moved or removed")

// lost fails if a repository lists none of what is to stay. Its WAL is worth keeping: the backups may
// come back, as when a file with the list of them was lost.
func lost(listing backup.Listing, keep []string) error {
	if len(keep) > 0 && !slices.ContainsFunc(listing.Backups, func(b backup.Info) bool { return slices.Contains(keep, b.Label) }) {
		return errLost
	}
	return nil
}

// withWAL returns from how many backups back on the engine has to keep all WAL, so that it is kept
// from the most-th newest of keep on. The engine also counts backups that stay and are not in keep.
func withWAL(listing backup.Listing, removed, keep []string, most int) (n int) {
	for _, b := range slices.Backward(listing.Backups) {
		if slices.Contains(removed, b.Label) {
			continue
		}
		n++
		if slices.Contains(keep, b.Label) {
			if most--; most <= 0 {
				return n
			}
		}
	}
	return n
}

// keepWAL is how long WAL is kept that no backup needs: a backup that has begun may need it.
const keepWAL = time.Hour

// removeWAL removes the WAL of a database that has no backup in the repository.
func (r *run) removeWAL(ctx context.Context, args model.TidyJob, before time.Time) error {
	return r.remove(ctx, args, args.Database+"/"+r.Engine.ArchivePrefix(r.place), func(o store.Object) bool {
		_, ok := r.Engine.WALOf(strings.TrimPrefix(o.Key, args.Database+"/"))
		return ok && o.Modified.Before(before)
	})
}

// removeAll removes all that a database has in the repository.
func (r *run) removeAll(ctx context.Context, args model.TidyJob) error {
	return r.remove(ctx, args, args.Database+"/", func(store.Object) bool { return true })
}

func (r *run) remove(ctx context.Context, args model.TidyJob, prefix string, gone func(store.Object) bool) error {
	s, err := r.Store(args.Repository)
	if err != nil {
		return err
	}
	removed := int64(0)
	for query := (store.Query{Prefix: prefix, Max: store.MaxList}); ; {
		page, err := s.List(ctx, query)
		if err != nil {
			return fmt.Errorf("list what is in repository %s: %w", args.Repository, err)
		}
		var keys []string
		for _, o := range page.Objects {
			if gone(o) {
				keys = append(keys, o.Key)
			}
		}
		if len(keys) > 0 {
			if err := s.Delete(ctx, keys...); err != nil {
				return fmt.Errorf("remove from repository %s: %w", args.Repository, err)
			}
			removed += int64(len(keys))
			r.call.Progress(removed, 0, "files")
		}
		if page.Next == "" {
			return nil
		}
		query.After = page.Next
	}
}
