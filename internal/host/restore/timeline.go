package restore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/postgres"
	"howdah/internal/model/lsn"
)

// A promotion begins a new timeline, and leaves a history file in the archive: which timelines it
// goes back to, and where each of them was left. WAL of a timeline beyond the place where it was
// left is a branch that was abandoned.

// fork is where a timeline was left for the next one.
type fork struct {
	Timeline int     `json:"timeline"`
	At       lsn.LSN `json:"at"`
}

// missesInARow is how many timelines may have left no history, before it is believed that there are
// no more: a primary may have been lost before it archived anything, and nobody takes its number. There
// may be more where files of WAL tell of a newer timeline, but no more than mostMisses.
const (
	missesInARow = 6
	mostMisses   = 256
)

var (
	labelStart    = regexp.MustCompile(`(?m)^START WAL LOCATION: ([0-9A-F]+/[0-9A-F]+) `)
	labelTimeline = regexp.MustCompile(`(?m)^START TIMELINE: ([0-9]+)$`)
	errLabel      = errors.New("backup_label does not say where the backup began")
)

// chooseTimeline finds the newest timeline that goes back to the backup, unless one was asked for. The
// end of the backup is on the backup's own, whatever became of that.
func (w *work) chooseTimeline(ctx context.Context) error {
	text, err := w.User.ReadFile(filepath.Join(w.part(), "backup_label"))
	if errors.Is(err, fs.ErrNotExist) {
		return final("the backup %s has no backup_label: it is not whole", w.Source.Label)
	}
	if err != nil {
		return err
	}
	start, timeline := labelStart.FindSubmatch(text), labelTimeline.FindSubmatch(text)
	if start == nil || timeline == nil {
		return errLabel
	}
	w.state.Start = string(start[1])
	from, err := lsn.Parse(w.state.Start)
	if err != nil {
		return err
	}
	first, err := strconv.Atoi(string(timeline[1]))
	if err != nil {
		return errLabel
	}
	if w.state.Timeline, w.state.Forks, err = w.newest(ctx, first, from); err != nil {
		return err
	}
	return errors.Join(w.enter(replaying), w.at("timeline chosen"))
}

// newest returns the newest timeline that has this position of a timeline in its past, and the forks
// on the way there, the newest first. If a timeline was asked for, it is that one.
func (w *work) newest(ctx context.Context, first int, from lsn.LSN) (newest int, forks []fork, err error) {
	if w.Source.Timeline == 0 && w.Source.Target == (backup.Target{}) {
		return first, nil, nil
	}
	if asked := w.Source.Timeline; asked > 0 {
		forks, err = w.wayTo(ctx, asked, first, from)
		return asked, forks, err
	}
	newest = first
	for n, misses := first+1, 0; misses < missesInARow || n <= w.state.Archived && misses < mostMisses; n++ {
		text, found, err := w.history(ctx, n)
		if err != nil {
			return 0, nil, err
		}
		misses++
		if found {
			misses = 0
		}
		if way, goesBack := wayBack(text, first, from); goesBack {
			newest, forks = n, way
		}
	}
	return newest, forks, nil
}

// wayTo returns the forks of a timeline that was asked for.
func (w *work) wayTo(ctx context.Context, asked, first int, from lsn.LSN) ([]fork, error) {
	if asked == first {
		return nil, nil
	}
	text, found, err := w.history(ctx, asked)
	if err != nil {
		return nil, err
	}
	way, goesBack := wayBack(text, first, from)
	switch {
	case asked > first && !found:
		return nil, final("the archive knows no timeline %d", asked)
	case !goesBack:
		return nil, final("timeline %d does not go back to the backup %s: choose another backup, or another timeline", asked, w.Source.Label)
	}
	return way, nil
}

// wayBack reads a history file, whose lines are "TIMELINE LSN reason", the oldest first. It returns
// the forks from its timeline back to the first one, the newest first.
func wayBack(text string, first int, from lsn.LSN) (way []fork, goesBack bool) {
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 || strings.HasPrefix(words[0], "#") {
			continue
		}
		timeline, err := strconv.Atoi(words[0])
		at, errAt := lsn.Parse(words[1])
		if err != nil || errAt != nil || timeline < first {
			continue
		}
		if timeline == first && at < from {
			return nil, false // it was left before the backup
		}
		goesBack = goesBack || timeline == first
		way = append([]fork{{timeline, at}}, way...)
	}
	return way, goesBack
}

func (w *work) history(ctx context.Context, timeline int) (text string, found bool, err error) {
	name := fmt.Sprintf("%08X.history", timeline)
	if found, err = w.fetch(ctx, name); err != nil || !found {
		return "", false, err
	}
	all, err := w.User.ReadFile(w.path(filepath.Join(fetchDir, name)))
	return string(all), err == nil, err
}

// fetch gets a file of the archive as the server would. found is false only if it is not there.
func (w *work) fetch(ctx context.Context, name string) (found bool, err error) {
	source := w.Source
	source.Timeline = w.state.Timeline
	command := w.Engine.Recovery(w.Place, source).Settings["restore_command"]
	to := w.path(filepath.Join(fetchDir, name))
	command = strings.NewReplacer("%f", name, "%p", to, "%%", "%", "%r", "").Replace(command)
	out, exit, err := w.short(ctx, "/bin/sh", []string{"-c", "cd " + quoted(w.part()) + " && " + command}, nil)
	if err != nil {
		return false, err
	}
	switch exit.Code {
	case 0:
		return true, nil
	case 1:
		w.Log.Debug("not in the archive", "file", name, "output", out)
		return false, nil
	default:
		if failure := w.Engine.Failed([]byte(out), exit.Code); failure.Lost != "" {
			return false, w.lost(ctx, failure.Lost, failure.Reason)
		}
		return false, fmt.Errorf("%w for %s: %s: %.400s", errUnasked, name, exit.String(), out)
	}
}

// errUnasked says that it is not known whether a file is in the archive. A timeline that is not seen
// for that reason must not be left out: what is restored would be an abandoned branch.
var errUnasked = errors.New("the archive cannot be asked")

// quoted returns a word as a shell takes it.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// mostForks is how many forks are looked at.
const mostForks = 8

// mostSkew is how far the clocks of two hosts may be apart.
const mostSkew = time.Second

// checkBranch refuses a moment at which another branch was in use than the one that was followed. It
// looks for the first commit that a timeline has beyond the place where it was left: if that is not
// after the moment, and nothing was committed on the branch that was followed since, then the moment
// lies on the abandoned one.
//
// What was committed there after the next timeline began does not count: a primary that was cut off
// goes on with heartbeats and with writes that nobody confirms, until it ends. The two times are of
// two hosts' clocks, so it counts while they are closer than clocks may be apart.
func (w *work) checkBranch(ctx context.Context, at reached) error {
	until := w.Source.Target.Until
	if until.IsZero() || w.Source.Timeline > 0 {
		return nil
	}
	for _, i := range followed(w.state.Forks, at.end) {
		f := w.state.Forks[i]
		abandoned, err := w.firstCommit(ctx, f)
		if err != nil {
			return err
		}
		if abandoned.IsZero() || abandoned.After(until) || at.commit.After(abandoned) {
			continue
		}
		next := w.state.Timeline
		if i > 0 {
			next = w.state.Forks[i-1].Timeline
		}
		began, err := w.begin(ctx, next, f.At)
		if err != nil {
			return err
		}
		if !began.IsZero() && abandoned.Sub(began) > mostSkew {
			continue
		}
		return final("the moment %s lies on a branch that was abandoned at %s: what was committed between the two was given up later. "+
			"Ask for %s or earlier, or for timeline %d", clock(until), clock(at.commit), clock(at.commit), f.Timeline)
	}
	return nil
}

// followed returns which of the forks were passed by who replayed WAL up to a position: the newest of
// them first, and no more than are looked at.
func followed(forks []fork, end lsn.LSN) (all []int) {
	for i, f := range forks {
		if f.At <= end && len(all) < mostForks {
			all = append(all, i)
		}
	}
	return all
}

// clock shows a moment with all that PostgreSQL knows of it.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999Z") }

const segmentSize = 16 << 20

var beginRecord = regexp.MustCompile(`(?m)desc: END_OF_RECOVERY .*time ([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:.]+) UTC`)

// begin returns when the promotion of a standby began a timeline at a position; zero: that is not
// known, or it began in another way.
func (w *work) begin(ctx context.Context, timeline int, at lsn.LSN) (time.Time, error) {
	name := walName(timeline, at/segmentSize)
	if found, err := w.fetch(ctx, name); err != nil || !found {
		return time.Time{}, err
	}
	out, _, err := w.short(ctx, w.Install.Program("pg_waldump"), []string{
		"--path=" + w.path(fetchDir), "--timeline=" + strconv.Itoa(timeline), "--rmgr=XLOG", "--limit=10", "--start=" + at.String(), name,
	}, nil)
	if err != nil {
		return time.Time{}, err
	}
	return begun(out)
}

// begun reads what pg_waldump prints of the beginning of a timeline.
func begun(out string) (time.Time, error) {
	found := beginRecord.FindStringSubmatch(out)
	if found == nil {
		return time.Time{}, nil
	}
	return time.Parse("2006-01-02 15:04:05.999999", found[1])
}

// walName is the name of a file of WAL by its number.
func walName(timeline int, segment lsn.LSN) string {
	return postgres.WALName(segment*segmentSize, timeline)
}

var commitRecord = regexp.MustCompile(`(?m)desc: COMMIT (?:PREPARED )?.*?([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:.]+) UTC`)

// firstCommit returns the time of the first commit that a timeline has beyond a fork; zero: the
// archive has none.
func (w *work) firstCommit(ctx context.Context, f fork) (time.Time, error) {
	name := func(segment lsn.LSN) string { return walName(f.Timeline, segment) }
	for segment := f.At / segmentSize; segment <= f.At/segmentSize+1; segment++ {
		found, err := w.fetch(ctx, name(segment))
		if err != nil {
			return time.Time{}, err
		}
		if !found {
			break
		}
		out, _, err := w.short(ctx, w.Install.Program("pg_waldump"), []string{
			"--path=" + w.path(fetchDir), "--timeline=" + strconv.Itoa(f.Timeline), "--rmgr=Transaction", "--limit=1000",
			"--start=" + max(f.At, segment*segmentSize).String(), name(segment),
		}, nil)
		if err != nil {
			return time.Time{}, err
		}
		if at := commitRecord.FindStringSubmatch(out); at != nil {
			return time.Parse("2006-01-02 15:04:05.999999", at[1])
		}
	}
	return time.Time{}, nil
}
