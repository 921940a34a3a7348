package postgres

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"

	"howdah/internal/engine/postgres/lsn"
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
	// It always ends with an error: at the first place that holds no record.
	out, err = run(ctx, user, nil, install.Program("pg_waldump"), "--quiet",
		"--path="+filepath.Join(dataDir, "pg_wal"), "--timeline="+onTimeline[1], "--start="+redo[1])
	if ctx.Err() != nil {
		return 0, 0, fmt.Errorf("read WAL: %w", ctx.Err())
	}
	if err == nil {
		return 0, 0, errWAL
	}
	// It names the last record that it could read, and then where the next one is not.
	places := endForm.FindAllStringSubmatch(out, -1)
	if len(places) == 0 {
		return 0, 0, fmt.Errorf("%w: %s", errWAL, tail(out))
	}
	end, err = lsn.Parse(places[len(places)-1][1])
	return end, timeline, err
}
