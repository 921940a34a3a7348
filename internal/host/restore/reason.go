package restore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"howdah/internal/host/proc"
)

// What the server's log says when recovery cannot end at its target.
var (
	notReached = "recovery ended before configured recovery target was reached"
	notWhole   = regexp.MustCompile(`^(WAL ends before|could not locate required checkpoint|could not find redo location|could not open WAL|invalid checkpoint record)`)
	tooEarly   = "requested recovery stop point is before consistent recovery point"
	notChild   = regexp.MustCompile(`^requested timeline [0-9]+ (is not a child|does not contain minimum recovery point)`)
	serverForm = regexp.MustCompile(`^(LOG|DEBUG[1-5]?|INFO|NOTICE|WARNING|ERROR|FATAL|PANIC|DETAIL|HINT|CONTEXT|STATEMENT|QUERY|LOCATION):  `)
	noPrepared = "maximum number of prepared transactions reached"
)

// byKill is what a server's log says if somebody, such as the kernel without memory, killed one of its
// processes.
const byKill = "was terminated by signal 9: Killed"

var errByKill = errors.New("its PostgreSQL was killed while it replayed WAL")

// failed says why the server ended before it took writes. It may have the replay tried once more.
func (w *work) failed(ctx context.Context, seen replayLog, out string, exit proc.Exit) (reached, error) {
	if !seen.commit.IsZero() {
		w.state.Result.LastCommit = seen.commit
	}
	if w.Live != nil {
		return reached{}, w.anew(strings.Join(seen.fatal, "; "))
	}
	if exit.Signal == syscall.SIGKILL || strings.Contains(out, byKill) {
		return reached{}, errByKill // what was printed before is no reason
	}
	if failure := w.Engine.Failed([]byte(ofEngine(out)), exit.Code); failure.Lost != "" {
		return reached{}, w.lost(ctx, failure.Lost, failure.Reason)
	}
	for _, fatal := range seen.fatal {
		if ends(fatal) && !w.exact(seen) {
			// WAL that is not what was archived looks like its end.
			if err := w.checkWAL(ctx, seen.files); err != nil {
				return reached{}, err
			}
		}
		switch {
		case strings.HasPrefix(fatal, notReached) && w.exact(seen):
			// Nothing was committed later, and all until then is there.
			w.state.Exhaust = true
			if err := w.enter(replaying); err != nil {
				return reached{}, err
			}
			return w.recover(ctx)
		case strings.HasPrefix(fatal, notReached):
			if missing, after, err := w.gap(ctx, seen.last); err != nil || after != "" {
				return reached{}, errors.Join(err, w.missing(ctx, missing, after))
			}
			return reached{}, w.unreached(seen)
		case strings.HasPrefix(fatal, tooEarly):
			return reached{}, final("what was asked for is from before the end of the backup %s: choose an earlier backup, or ask for a later moment", w.Source.Label)
		case notWhole.MatchString(fatal):
			return reached{}, final("WAL that makes the backup %s consistent is missing in the archive (%s): choose another backup", w.Source.Label, fatal)
		case notChild.MatchString(fatal):
			return reached{}, final("the backup %s ended on a branch that was abandoned (%s): choose another backup", w.Source.Label, fatal)
		case strings.HasPrefix(fatal, noPrepared):
			return reached{}, final("there were more than %d prepared transactions at once", prepared)
		}
	}
	failure := w.Engine.Failed([]byte(ofEngine(out)), exit.Code)
	reason := failure.Reason
	if !failure.Final && len(seen.fatal) > 0 {
		reason = seen.fatal[len(seen.fatal)-1]
	}
	return reached{}, &Error{Reason: "the WAL of the archive cannot be replayed: " + reason, Final: failure.Final}
}

// ends reports whether the server found the end of WAL too early.
func ends(fatal string) bool {
	return strings.HasPrefix(fatal, notReached) || notWhole.MatchString(fatal)
}

// checkWAL looks whether the files that were replayed last are what was archived. A record may begin
// in one file, and be damaged there, while the next one was fetched.
func (w *work) checkWAL(ctx context.Context, files []string) error {
	for _, name := range files {
		command := w.Engine.CheckWAL(w.Place, w.Source, name, w.path(filepath.Join(fetchDir, name)))
		out, exit, err := w.short(ctx, command.Path, command.Args, command.Env)
		if err != nil {
			return err
		}
		if exit.Known && exit.Code == 0 {
			continue
		}
		failure := w.Engine.Failed([]byte(out), exit.Code)
		if failure.Lost != "" {
			return w.lost(ctx, failure.Lost, failure.Reason)
		}
		return fmt.Errorf("%w for %s: %s", errUnasked, name, failure.Reason)
	}
	return nil
}

// ofEngine returns what was not printed by the server: the engine's words, when it fetched WAL.
func ofEngine(log string) string {
	var own strings.Builder
	for line := range strings.Lines(log) {
		if !serverForm.MatchString(line) {
			own.WriteString(line)
		}
	}
	return own.String()
}

// mostGap is how many files may be missing in a row, before it is believed that there are no more.
const mostGap = 4

// gap finds out whether the archive goes on after the file that was missing: the one that follows
// the last file that was replayed. It returns both names; after is "" if there are no more.
func (w *work) gap(ctx context.Context, last string) (missing, after string, err error) {
	if len(last) != 24 {
		return "", "", nil
	}
	at := last
	for range mostGap {
		if at, err = nextFile(at); err != nil {
			return "", "", err
		}
		if missing == "" {
			missing = at
			continue
		}
		found, err := w.fetch(ctx, at)
		if err != nil && !errors.Is(err, errUnasked) {
			return "", "", err
		}
		if found {
			return missing, at, nil
		}
	}
	return missing, "", nil
}

// nextFile returns the name of the file of WAL that follows another one on its timeline.
func nextFile(name string) (string, error) {
	var number [3]uint64
	for i := range number {
		var err error
		if number[i], err = strconv.ParseUint(name[8*i:8*i+8], 16, 32); err != nil {
			return "", fmt.Errorf("find the next file of WAL: %w", err)
		}
	}
	number[2]++
	if number[2] >= 1<<32/segmentSize {
		number[1], number[2] = number[1]+1, 0
	}
	return fmt.Sprintf("%08X%08X%08X", number[0], number[1], number[2]), nil
}

func (w *work) missing(ctx context.Context, name, after string) error {
	if after == "" {
		return nil
	}
	return w.lost(ctx, name, fmt.Sprintf("WAL file %s is missing in the archive, which goes on with %s: ask for a moment before the gap, or for a backup after it", name, after))
}

// exact reports whether the newest commit of the archive is just that of the moment that was asked
// for. The server wants to see a later one.
func (w *work) exact(seen replayLog) bool {
	until := w.Source.Target.Until
	return !until.IsZero() && !w.state.Exhaust && seen.commit.Equal(until)
}

// unreached says where the archive ends, and what was asked for.
func (w *work) unreached(seen replayLog) error {
	ends := "the archive ends at " + seen.end.String()
	if !seen.commit.IsZero() {
		ends = fmt.Sprintf("the archive ends at %s (%s)", clock(seen.commit), seen.end)
	}
	t := w.Source.Target
	switch {
	case !t.Until.IsZero() && !seen.commit.IsZero():
		return final("%s, before the moment that was asked for, %s: ask for one until then", ends, clock(t.Until))
	case !t.Until.IsZero():
		return final("%s, and nothing was committed since the backup: the moment that was asked for, %s, cannot be told from it", ends, clock(t.Until))
	case t.LSN > 0:
		return final("%s, before the position that was asked for, %s: ask for one until then", ends, t.LSN)
	case t.Before != "":
		return final("%s, and has no transaction %s: it was before the backup, or did not end", ends, t.Before)
	}
	return final("%s, before the end of the backup", ends)
}
