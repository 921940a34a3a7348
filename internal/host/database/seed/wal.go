package seed

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/host/database/mark"
	"howdah/internal/host/pace"
	"howdah/internal/model/lsn"
)

// askEvery is the pause between looks at what the primary keeps.
const askEvery = time.Second

var errGap = errors.New("the primary does not keep the WAL that follows what is archived")

// fetchAll fetches one file of WAL after the other, from the beginning of the backup on, until the
// next one is kept by the primary.
func (m *Maker) fetchAll(ctx context.Context, p primary, of backup.Info) (lsn.LSN, error) {
	next := uint64(of.StartLSN) / mark.SegmentSize
	since := time.Now()
	for {
		found, err := m.fetch(ctx, p.history.File(next))
		if err != nil {
			return 0, err
		}
		if found {
			next++
			since = time.Now()
			continue
		}
		// What is not archived the primary has, and what its slot has it keeps.
		from, err := keeps(ctx, m.Conninfo, m.Order.Slot)
		at := lsn.LSN(next * mark.SegmentSize)
		if err == nil && from > 0 && uint64(from)/mark.SegmentSize <= next {
			return at, nil
		}
		if time.Since(since) > m.Patience.Gap {
			return 0, errors.Join(fmt.Errorf("%w: WAL is archived until %s, and slot %s has it from %s", errGap, at, m.Order.Slot, from), err)
		}
		if !pace.Sleep(ctx, askEvery) {
			return 0, context.Cause(ctx)
		}
	}
}

// fetch gets a file from the archive. found is false only if it is not there.
func (m *Maker) fetch(ctx context.Context, file mark.Segment) (found bool, err error) {
	restore := backup.Restore{Repository: m.Order.Repository, Label: m.Order.Label, Timeline: file.Timeline, Target: backup.Target{Newest: true}}
	command := m.Engine.Recovery(m.Order.Place, restore).Settings["restore_command"]
	to := filepath.Join(m.data(), "pg_wal", file.String())
	command = strings.NewReplacer("%f", file.String(), "%p", to, "%%", "%", "%r", "").Replace(command)
	ctx, cancel := context.WithTimeoutCause(ctx, m.Patience.Still, errSlow)
	defer cancel()
	out, err := m.short(ctx, backup.Command{Path: "/bin/sh", Args: []string{"-c", "cd " + quoted(m.data()) + " && " + command}})
	var failed *exitError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &failed) && failed.code == 1:
		return false, nil
	default:
		return false, fmt.Errorf("fetch %s: %w: %.400s", file, err, out)
	}
}

// quoted returns a word as a shell takes it.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
