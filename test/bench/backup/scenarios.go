package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// scenarios has all rows of the table, in their order. The names of rows that share a database are
// joined by a comma.
var scenarios = []scenario{
	{
		name:   "snapshot,restore,drill",
		weight: func(b *bench) float64 { return filesWeight(b.size, b.rounds) },
		room:   func(b *bench) int64 { return filesRoom(b.size) },
		run:    func(ctx context.Context, b *bench) error { return b.files(ctx, b.size, b.rounds) },
	},
	{
		name:   "clone",
		weight: func(b *bench) float64 { return 60 + b.size*20 + float64(b.rounds)*10 },
		room:   func(b *bench) int64 { return int64(3*b.size*gb) + spare },
		run:    func(ctx context.Context, b *bench) error { return b.clones(ctx) },
	},
	{
		name:   "during",
		weight: func(b *bench) float64 { return 90 + 20*b.busySize() + float64(b.rounds)*80 },
		room:   func(b *bench) int64 { return int64(5*b.busySize()*gb) + spare },
		run:    func(ctx context.Context, b *bench) error { return b.during(ctx) },
	},
	{
		name:   "archiving",
		weight: func(b *bench) float64 { return 120 + float64(b.rounds)*2*archivingRun.Seconds() },
		room:   func(*bench) int64 { return spare },
		run:    func(ctx context.Context, b *bench) error { return b.archiving(ctx) },
	},
	{
		name:   "lag",
		weight: func(b *bench) float64 { return 90 + b.lag.Seconds() },
		room:   func(*bench) int64 { return 2 * spare },
		run:    func(ctx context.Context, b *bench) error { return b.behind(ctx) },
	},
	{
		name: "growth",
		weight: func(b *bench) float64 {
			sum := 0.0
			for _, size := range b.growthSizes() {
				sum += filesWeight(size, 1)
			}
			return sum
		},
		room: func(*bench) int64 { return 0 }, // each size asks by itself
		run:  func(ctx context.Context, b *bench) error { return b.grows(ctx) },
	},
}

// names has the names of all rows.
func names() []string {
	var all []string
	for _, s := range scenarios {
		all = append(all, strings.Split(s.name, ",")...)
	}
	return all
}

// chosen reports whether one of the rows, which are joined by commas, is wanted.
func (b *bench) chosen(rows string) bool {
	return slices.ContainsFunc(strings.Split(rows, ","), b.only.MatchString)
}

const (
	gb = 1_000_000_000
	// spare is what a scenario needs beside its data: WAL, and what hosts prepare.
	spare = 4 * gb
)

// filesRoom is what the rows about files need: the database, its repository with the WAL of the load,
// and twice its size for what is restored, as a drill wants it.
func filesRoom(size float64) int64 { return int64(4*size*gb) + spare }

// filesWeight is how long the rows about files are expected to take, in seconds.
func filesWeight(size float64, rounds int) float64 {
	return 30 + 25*size + float64(rounds)*(60+25*size)
}

// room is how much is free where everything is made.
func (b *bench) room() (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(b.tmp, &s); err != nil {
		return 0, fmt.Errorf("ask for the room in %s: %w", b.tmp, err)
	}
	return int64(s.Bavail) * s.Bsize, nil
}

// fits refuses what there is no room for.
func (b *bench) fits(need int64) error {
	free, err := b.room()
	if err == nil && free < need {
		err = fmt.Errorf("it needs %.0f GB in %s, and %.0f are free: choose a lower -size, or another -dir", float64(need)/gb, b.tmp, float64(free)/gb)
	}
	return err
}

// growthSizes returns the sizes of which the costs are measured once. The largest one is made as
// large as there is room for.
func (b *bench) growthSizes() []float64 {
	free, err := b.room()
	if err != nil {
		return nil
	}
	return fitting(b.growth, free, b.size)
}

// fitting returns those sizes for which there is room. Instead of those that do not fit it has the
// largest that does, if that is more than all others.
func fitting(sizes []float64, free int64, known float64) []float64 {
	var all []float64
	greatest, cut := known, false
	for _, size := range sizes {
		if filesRoom(size) > free {
			cut = true
			continue
		}
		if size != known {
			all = append(all, size)
		}
		greatest = max(greatest, size)
	}
	if largest := float64(int64(float64(free-spare) / (4 * gb))); cut && largest > greatest {
		all = append(all, largest)
	}
	return all
}

// grows measures the rows about files once with each size.
func (b *bench) grows(ctx context.Context) error {
	for _, size := range b.growthSizes() {
		if err := b.fits(filesRoom(size)); err != nil {
			return err
		}
		if err := b.files(ctx, size, 1); err != nil {
			return fmt.Errorf("%g GB: %w", size, err)
		}
	}
	return nil
}
