package mark

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/repository/store"
)

const (
	// recentMarks is how many of the newest marks are all kept: a primary may have published some that
	// its successor does not have on its history.
	recentMarks = 40
	// Of older ones one is kept for each hour of a day, and then one for each quarter of a day, as long
	// as the longest retention period: WAL may turn out to be lost that was archived long ago.
	hourly    = time.Hour
	quarterly = 6 * time.Hour
	longest   = 36 * 24 * time.Hour
)

// mostBook is more than a book has, in bytes.
const mostBook = 64 << 10

// book is the marks of a database as they are kept in its part of a repository, the oldest first.
type book struct {
	Marks []member.Mark `json:"marks"`
}

// Key returns where a database's marks are in a repository.
func Key(database string) string { return database + "/howdah/marks.json" }

func readBook(ctx context.Context, in store.Objects, database string) (book, error) {
	body, _, err := in.Get(ctx, Key(database), 0, mostBook)
	if errors.Is(err, store.ErrNotFound) {
		return book{}, nil
	}
	if err != nil {
		return book{}, fmt.Errorf("read the marks of %s: %w", database, err)
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return book{}, fmt.Errorf("read the marks of %s: %w", database, err)
	}
	var b book
	if err := json.Unmarshal(text, &b); err != nil {
		return book{}, nil // what cannot be read promises nothing, and is written anew
	}
	return b, nil
}

// write keeps the book, with one more mark.
func (b book) write(ctx context.Context, in store.Objects, database string, m member.Mark) (book, error) {
	next := book{Marks: sparse(append(slices.Clone(b.Marks), m))}
	text, err := json.Marshal(next)
	if err != nil {
		return b, err
	}
	if _, err := in.Put(ctx, Key(database), bytes.NewReader(text)); err != nil {
		return b, fmt.Errorf("keep the marks of %s: %w", database, err)
	}
	return next, nil
}

// sparse leaves out what is not kept of marks, the oldest first.
func sparse(all []member.Mark) []member.Mark {
	old := max(0, len(all)-recentMarks)
	newest := all[len(all)-1].At
	var kept []member.Mark
	var last time.Time
	for _, m := range all[:old] {
		every := hourly
		switch age := newest.Sub(m.At); {
		case age > longest:
			continue
		case age > 24*time.Hour:
			every = quarterly
		}
		// The first of each slot stays where it is, so that it is not the next one's turn each time.
		if slot := m.At.Truncate(every); kept == nil || !slot.Equal(last.Truncate(every)) {
			kept, last = append(kept, m), m.At
		}
	}
	return append(kept, all[old:]...)
}

// newest returns the last mark that lies on a history; zero: none does.
func (b book) newest(h History) member.Mark { return b.before(h, math.MaxUint64) }

// before returns the last mark that lies on a history and not behind a position; zero: none does. It
// is the last one in WAL: the clock of an earlier one may have been ahead.
func (b book) before(h History, end lsn.LSN) (newest member.Mark) {
	for _, m := range b.Marks {
		if m.LSN <= end && h.Has(m.Timeline, m.LSN) && (newest.At.IsZero() || m.LSN >= newest.LSN) {
			newest = m
		}
	}
	return newest
}

// Before returns the newest mark of a database in a repository that lies on a history, and not behind a
// position; zero: there is none.
func Before(ctx context.Context, in store.Objects, database string, h History, end lsn.LSN) (member.Mark, error) {
	b, err := readBook(ctx, in, database)
	return b.before(h, end), err
}
