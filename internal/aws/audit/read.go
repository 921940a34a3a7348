package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Read calls each with every record from a moment on, the oldest first, and ends at the newest. It
// leaves out a line that is no record, because a crash may cut a line short.
func Read(dir string, from time.Time, each func(Record) error) error {
	var sources []*source
	for _, class := range classes {
		next, stop := iter.Pull2(records(dir, class, from))
		defer stop()
		s := &source{next: next}
		if err := s.advance(); err != nil {
			return err
		}
		sources = append(sources, s)
	}
	for {
		var first *source
		for _, s := range sources {
			if s.left && (first == nil || s.record.Time.Before(first.record.Time)) {
				first = s
			}
		}
		if first == nil {
			return nil
		}
		if err := each(first.record); err != nil {
			return err
		}
		if err := first.advance(); err != nil {
			return err
		}
	}
}

// source is where the records of a class come from.
type source struct {
	next   func() (Record, error, bool)
	record Record
	left   bool
}

func (s *source) advance() (err error) {
	s.record, err, s.left = s.next()
	return err
}

var errEnough = errors.New("enough was read")

// records returns the records of a class, the oldest first.
func records(dir string, class Class, from time.Time) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		files, err := older(dir, string(class))
		for _, path := range append(files, filepath.Join(dir, string(class))) {
			if err == nil {
				err = readFile(path, from, func(r Record) error {
					if !yield(r, nil) {
						return errEnough
					}
					return nil
				})
			}
			switch {
			case errors.Is(err, errEnough):
				return
			case errors.Is(err, os.ErrNotExist): // rotated away, or none yet
				err = nil
			case err != nil:
				yield(Record{}, err)
				return
			}
		}
	}
}

func readFile(path string, from time.Time, each func(Record) error) error {
	if info, err := os.Stat(path); err == nil && info.ModTime().Before(from) {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	defer f.Close()
	return give(bufio.NewReader(f), from, each)
}

func give(lines *bufio.Reader, from time.Time, each func(Record) error) error {
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
		if err := one(line, from, each); err != nil {
			return err
		}
	}
}

func one(line []byte, from time.Time, each func(Record) error) error {
	var r Record
	whole := json.Unmarshal(line, &r) == nil
	if !whole || r.Time.Before(from) {
		return nil
	}
	return each(r)
}

// Follow calls each with every record that is written from now on, also over rotations, until ctx
// ends. It looks again after each pause.
func Follow(ctx context.Context, dir string, every time.Duration, each func(Record) error) error {
	var tails []*tail
	for _, class := range classes {
		t := &tail{path: filepath.Join(dir, string(class))}
		defer t.close()
		t.open()
		if t.file != nil {
			if _, err := t.file.Seek(0, io.SeekEnd); err != nil {
				return fmt.Errorf("follow audit log: %w", err)
			}
		}
		tails = append(tails, t)
	}
	for {
		var seen []Record
		for _, t := range tails {
			if err := t.look(func(r Record) error { seen = append(seen, r); return nil }); err != nil {
				return err
			}
		}
		slices.SortStableFunc(seen, func(a, b Record) int { return a.Time.Compare(b.Time) })
		for _, r := range seen {
			if err := each(r); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// tail is a file that grows and is replaced.
type tail struct {
	path string
	file *os.File
	rest []byte // of a line without its end
}

func (t *tail) open() {
	f, err := os.Open(t.path)
	if err == nil {
		t.file, t.rest = f, nil
	}
}

func (t *tail) close() {
	if t.file != nil {
		t.file.Close()
		t.file = nil
	}
}

// look calls each with what is new. A file that was put aside is read to its end before the next
// one is opened.
func (t *tail) look(each func(Record) error) error {
	for {
		replaced := t.replaced()
		if err := t.drain(each); err != nil || !replaced {
			return err
		}
		t.close()
		if t.open(); t.file == nil {
			return nil
		}
	}
}

func (t *tail) replaced() bool {
	now, err := os.Stat(t.path)
	if err != nil {
		return false
	}
	if t.file == nil {
		return true
	}
	then, err := t.file.Stat()
	return err == nil && !os.SameFile(now, then)
}

func (t *tail) drain(each func(Record) error) error {
	if t.file == nil {
		return nil
	}
	text, err := io.ReadAll(t.file)
	if err != nil {
		return fmt.Errorf("follow audit log: %w", err)
	}
	t.rest = append(t.rest, text...)
	for {
		line, rest, whole := bytes.Cut(t.rest, []byte{'\n'})
		if !whole {
			return nil
		}
		t.rest = rest
		if err := one(line, time.Time{}, each); err != nil {
			return err
		}
	}
}
