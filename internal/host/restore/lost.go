package restore

import (
	"context"
	"slices"
	"strconv"
	"time"

	"howdah/internal/model/lsn"
)

// lost is the end of a restore that needs a file which the archive does not have any more.
func (w *work) lost(ctx context.Context, name, reason string) error {
	e := &Error{Reason: reason, Final: true, Lost: name}
	for _, f := range slices.Backward(w.state.Forks) {
		e.Past = append(e.Past, Branch{f.Timeline, f.At})
	}
	e.Past = append(e.Past, Branch{Timeline: w.state.Timeline})
	at, err := w.reaches(ctx, e.Past, name)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		w.Log.Warn("look what was committed before a file that is lost", "file", name, "error", err)
	}
	e.Reaches = at
	return e
}

// mostBack is how many files before a lost one are looked at.
const mostBack = 16

// reaches returns the newest moment that a restore reaches which ends before a file: just before the
// last commit that is there. PostgreSQL ends at the first commit after a moment.
func (w *work) reaches(ctx context.Context, past []Branch, name string) (time.Time, error) {
	at, ok := segmentNumber(name)
	from, err := lsn.Parse(w.state.Start)
	if !ok || err != nil {
		return time.Time{}, err
	}
	for n := lsn.LSN(1); n <= mostBack && n <= at && at-n >= from/segmentSize; n++ {
		before := walName(timelineAt(past, at-n), at-n)
		found, err := w.fetch(ctx, before)
		if err != nil || !found {
			return time.Time{}, err
		}
		out, _, err := w.short(ctx, w.Install.Program("pg_waldump"), []string{
			"--path=" + w.path(fetchDir), "--rmgr=Transaction", before,
		}, nil)
		if err != nil {
			return time.Time{}, err
		}
		if commits := commitRecord.FindAllStringSubmatch(out, -1); len(commits) > 0 {
			last, err := time.Parse("2006-01-02 15:04:05.999999", commits[len(commits)-1][1])
			return last.Add(-time.Microsecond), err
		}
	}
	return time.Time{}, nil
}

// segmentNumber is the number of a file of WAL; ok is false if it is none.
func segmentNumber(name string) (at lsn.LSN, ok bool) {
	if !walForm.MatchString(name) {
		return 0, false
	}
	log, err := strconv.ParseUint(name[8:16], 16, 32)
	if err != nil {
		return 0, false
	}
	number, err := strconv.ParseUint(name[16:], 16, 32)
	return lsn.LSN(log)*(lsn.LSN(1<<32)/segmentSize) + lsn.LSN(number), err == nil
}

// timelineAt is the timeline of which a file is replayed on a way. That in which a timeline was left is
// of the next one.
func timelineAt(past []Branch, segment lsn.LSN) int {
	for _, b := range past {
		if b.Until == 0 || segment < b.Until/segmentSize {
			return b.Timeline
		}
	}
	return past[len(past)-1].Timeline
}
