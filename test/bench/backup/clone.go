package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const cloneRow = "clone with reflinks to available"

// clones measures clones on a file system of its own that shares the blocks of files.
func (b *bench) clones(ctx context.Context) (err error) {
	dir, unmount, err := b.sharing(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unmount()) }()
	s, end, err := b.begin(ctx, dir, true)
	if err != nil {
		return err
	}
	defer func() { err = end(err) }()
	if err := s.create(ctx, nil); err != nil {
		return err
	}
	if err := s.fill(ctx, b.size); err != nil {
		return err
	}
	b.did(ctx, "the data are loaded", 60+b.size*20)
	for n := range b.rounds {
		if err := s.settle(ctx); err != nil {
			return err
		}
		took, err := s.clone(ctx, fmt.Sprintf("clone-%d", n+1))
		if err != nil {
			return fmt.Errorf("round %d: %w", n+1, err)
		}
		b.add(cloneRow, b.size, most(3), "s", took.Seconds())
		b.did(ctx, fmt.Sprintf("round %d of %d of clones", n+1, b.rounds), 10)
	}
	return nil
}

// clone makes a clone, returns how long it took to be available, and deletes it.
func (s *site) clone(ctx context.Context, name string) (time.Duration, error) {
	began := time.Now()
	if err := s.howdah(ctx, "db", "clone", source, name); err != nil {
		return 0, err
	}
	if err := s.available(ctx, name); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return took, s.drop(ctx, name)
}

// sharing makes a file system whose files share blocks, in a file.
func (b *bench) sharing(ctx context.Context) (dir string, unmount func() error, err error) {
	within, err := os.MkdirTemp(b.tmp, "bench-backup-xfs-")
	if err != nil {
		return "", nil, err
	}
	image, dir := filepath.Join(within, "image"), filepath.Join(within, "disk")
	remove := func() error { return os.RemoveAll(within) }
	size := strconv.FormatInt(int64(3*b.size*gb)+spare, 10)
	for _, command := range [][]string{
		{"chmod", "755", within}, {"mkdir", dir}, {"truncate", "-s", size, image}, {"mkfs.xfs", "-q", "-m", "reflink=1", image}, {"mount", "-o", "loop", image, dir},
	} {
		if err := run(ctx, command[0], command[1:]...); err != nil {
			return "", nil, errors.Join(err, remove())
		}
	}
	return dir, func() error {
		// What was killed a moment ago may still have files open there.
		if err := until(context.WithoutCancel(ctx), 10*time.Second, func() error { return run(context.WithoutCancel(ctx), "umount", dir) }); err != nil {
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
		return remove()
	}, nil
}
