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
	"howdah/internal/system/owner"
)

var (
	errControl = errors.New("pg_controldata did not say where recovery begins")
	errWAL     = errors.New("pg_waldump did not say where the WAL ends")

	redoForm     = regexp.MustCompile(`Latest checkpoint's REDO location:\s+([0-9A-F]+/[0-9A-F]+)`)
	timelineForm = regexp.MustCompile(`Latest checkpoint's TimeLineID:\s+([0-9]+)`)
	endForm      = regexp.MustCompile(`at ([0-9A-F]+/[0-9A-F]+)`)
)

// WALEnd returns where the WAL of a cluster ends, on the timeline of its last checkpoint. No server
// may run on the cluster. It reads all WAL since the checkpoint, as pg_waldump does.
func WALEnd(ctx context.Context, install Install, user *owner.User, dataDir string) (end lsn.LSN, timeline int, err error) {
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

// walEnd reads the files of a timeline from the one that holds start. It names that file, and the
// last one: without names pg_waldump asks any file for the size of all, also one that the server has
// made ahead of its use, which says nothing.
func walEnd(ctx context.Context, install Install, user *owner.User, dataDir string, timeline int, start string) (lsn.LSN, error) {
	began, err := lsn.Parse(start)
	if err != nil {
		return 0, err
	}
	names, err := walFiles(dataDir)
	if err != nil {
		return 0, err
	}
	first := WALName(began, timeline)
	last := first
	for _, name := range names {
		if name[:8] == first[:8] && name > last {
			last = name
		}
	}
	out, err := run(ctx, user, nil, install.Program("pg_waldump"), "--quiet",
		"--path="+filepath.Join(dataDir, "pg_wal"), "--start="+start, first, last)
	if ctx.Err() != nil {
		return 0, fmt.Errorf("read WAL: %w", ctx.Err())
	}
	if err == nil { // it read to the end of the last file, for which it was asked
		end, _, err := position(last)
		return end + SegmentSize, err
	}
	// The error names the last record that could be read, and then the place where the next one is
	// missing.
	places := endForm.FindAllStringSubmatch(out, -1)
	if len(places) == 0 {
		return 0, fmt.Errorf("%w: %s", errWAL, tail(out))
	}
	return lsn.Parse(places[len(places)-1][1])
}

// NewestEnd returns where the WAL of a cluster ends on the newest timeline of which it has any. No
// server may run on the cluster. A member that was promoted, or that followed a new primary, may
// have ended before a checkpoint recorded the new timeline.
func NewestEnd(ctx context.Context, install Install, user *owner.User, dataDir string) (end lsn.LSN, timeline int, err error) {
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

// walFiles returns the names of all whole files of WAL of a cluster, sorted.
func walFiles(dataDir string) (names []string, err error) {
	owner, err := owner.Of(dataDir)
	var entries []os.DirEntry
	if err == nil {
		err = owner.Do(func() error {
			entries, err = os.ReadDir(filepath.Join(dataDir, "pg_wal")) // sorted by name
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("look for WAL: %w", err)
	}
	for _, e := range entries {
		if segmentForm.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// position returns where a file of WAL begins, and its timeline.
func position(name string) (first lsn.LSN, timeline int, err error) {
	var number [3]uint64
	for i, part := range segmentForm.FindStringSubmatch(name)[1:] {
		if number[i], err = strconv.ParseUint(part, 16, 32); err != nil {
			return 0, 0, fmt.Errorf("look for WAL: %w", err)
		}
	}
	return lsn.LSN(number[1]<<32 + number[2]*SegmentSize), int(number[0]), nil
}

// WALName returns the name of the file of WAL that holds a position of a timeline.
func WALName(at lsn.LSN, timeline int) string {
	return fmt.Sprintf("%08X%08X%08X", timeline, uint64(at)>>32, uint64(at)&(1<<32-1)/SegmentSize)
}

// NewestWAL returns the newest timeline of which a cluster has WAL, and the position at which the
// first file of that timeline begins, as in "16/B3000000". timeline is 0 if there is no WAL.
func NewestWAL(dataDir string) (timeline int, first string, err error) {
	names, err := walFiles(dataDir)
	if err != nil {
		return 0, "", err
	}
	for _, name := range names {
		at, of, err := position(name)
		if err != nil {
			return 0, "", err
		}
		if of > timeline {
			timeline, first = of, at.String()
		}
	}
	return timeline, first, nil
}

// SegmentSize is the size of the WAL files of our clusters, in bytes.
const SegmentSize = 16 << 20
