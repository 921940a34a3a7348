package mark

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"howdah/internal/model/member"
	"howdah/internal/repository/store"
)

// mostMarks is how many marks are kept: a primary may have published some that its successor does
// not have on its history.
const mostMarks = 60

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
	next := book{Marks: slices.Concat(b.Marks[max(0, len(b.Marks)+1-mostMarks):], []member.Mark{m})}
	text, err := json.Marshal(next)
	if err != nil {
		return b, err
	}
	if _, err := in.Put(ctx, Key(database), bytes.NewReader(text)); err != nil {
		return b, fmt.Errorf("keep the marks of %s: %w", database, err)
	}
	return next, nil
}

// newest returns the newest mark that lies on a history; zero: none does.
func (b book) newest(h History) (newest member.Mark) {
	for _, m := range b.Marks {
		if h.Has(m.Timeline, m.LSN) && m.At.After(newest.At) {
			newest = m
		}
	}
	return newest
}
