package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"howdah/internal/model/lsn"
)

var (
	errControl = errors.New("pg_controldata did not say where recovery begins")
	errWAL     = errors.New("pg_waldump did not say where the WAL ends")

	redoForm     = regexp.MustCompile(`Latest checkpoint's REDO location:\s+([0-9A-F]+/[0-9A-F]+)`)
	timelineForm = regexp.MustCompile(`Latest checkpoint's TimeLineID:\s+([0-9]+)`)
	endForm      = regexp.MustCompile(`at ([0-9A-F]+/[0-9A-F]+)`)
)

// WALEnd is where the WAL of a cluster ends on which no server runs, on the timeline
// of its last checkpoint. It reads all WAL since then, as pg_waldump does.
func WALEnd(ctx context.Context, install Install, user *User, dataDir string) (end lsn.LSN, timeline int, err error) {
	out, err := run(ctx, user, nil, install.Program("pg_controldata"), dataDir)
	if err != nil {
		return 0, 0, err
	}
	redo, onTimeline := redoForm.FindStringSubmatch(out), timelineForm.FindStringSubmatch(out)
	if redo == nil || onTimeline == nil {
		return 0, 0, errControl
	}
	if timeline, err = strconv.Atoi(onTimeline[1]); err != nil {
		return 0, 0, errControl
	}
	end, err = walEnd(ctx, install, user, dataDir, timeline, redo[1])
	return end, timeline, err
}

func walEnd(ctx context.Context, install Install, user *User, dataDir string, timeline int, start string) (lsn.LSN, error) {
	// It always ends with an error: at the first place that holds no record.
	out, err := run(ctx, user, nil, install.Program("pg_waldump"), "--quiet",
		"--path="+filepath.Join(dataDir, "pg_wal"), "--timeline="+strconv.Itoa(timeline), "--start="+start)
	if ctx.Err() != nil {
		return 0, fmt.Errorf("read WAL: %w", ctx.Err())
	}
	if err == nil {
		return 0, errWAL
	}
	// It names the last record that it could read, and then where the next one is not.
	places := endForm.FindAllStringSubmatch(out, -1)
	if len(places) == 0 {
		return 0, fmt.Errorf("%w: %s", errWAL, tail(out))
	}
	return lsn.Parse(places[len(places)-1][1])
}

// NewestEnd is where the WAL of a cluster ends on which no server runs, on the newest
// timeline of which it has any: one that was promoted, or followed a new primary, may
// have ended before a checkpoint said so.
func NewestEnd(ctx context.Context, install Install, user *User, dataDir string) (end lsn.LSN, timeline int, err error) {
	end, timeline, err = WALEnd(ctx, install, user, dataDir)
	if err != nil {
		return 0, 0, err
	}
	newest, first, err := NewestWAL(dataDir)
	if err != nil || newest <= timeline {
		return end, timeline, err
	}
	end, err = walEnd(ctx, install, user, dataDir, newest, first)
	return end, newest, err
}

var segmentForm = regexp.MustCompile(`^([0-9A-F]{8})([0-9A-F]{8})([0-9A-F]{8})$`)

// NewestWAL is the newest timeline of which a cluster has WAL, and where the first file
// of that begins.
func NewestWAL(dataDir string) (timeline int, first string, err error) {
	owner, err := ownerOf(dataDir)
	var entries []os.DirEntry
	if err == nil {
		err = owner.Do(func() error {
			entries, err = os.ReadDir(filepath.Join(dataDir, "pg_wal")) // sorted by name
			return err
		})
	}
	if err != nil {
		return 0, "", fmt.Errorf("look for WAL: %w", err)
	}
	for _, e := range entries {
		parts := segmentForm.FindStringSubmatch(e.Name())
		if parts == nil {
			continue
		}
		var number [3]uint64
		for i := range number {
			if number[i], err = strconv.ParseUint(parts[i+1], 16, 32); err != nil {
				return 0, "", fmt.Errorf("look for WAL: %w", err)
			}
		}
		if int(number[0]) > timeline {
			timeline, first = int(number[0]), fmt.Sprintf("%X/%X", number[1], number[2]*segmentSize)
		}
	}
	return timeline, first, nil
}

// segmentSize is that of our clusters' WAL files.
const segmentSize = 16 << 20
