// Package load makes the rows of a new database, as streams of COPY's binary format. The same seed
// gives the same rows. It does no I/O.
package load

import (
	"io"
	"slices"
	"sync/atomic"
	"time"

	"howdah/internal/lab/tpcc/draw"
	"howdah/internal/lab/tpcc/form"
)

// Data are what rows are made of.
type Data struct {
	Mode form.Mode
	Seed uint64
	Now  time.Time     // the time of all rows
	Rows *atomic.Int64 // counts rows that were read, and must be there
}

// Part is a table's rows of one warehouse, or of all items.
type Part struct {
	Table     string
	Warehouse int // 0 for all items
	// Rows reads them once.
	Rows io.Reader
}

// Task makes parts that one session loads one after the other. A task can be carried out beside any
// other one.
type Task func() []Part

// Tasks returns all that a database of so many warehouses needs. The large ones come first, so that no
// session is left with one at the end.
func (d Data) Tasks(warehouses int) []Task {
	var large, small []Task
	for w := 1; w <= warehouses; w++ {
		large = append(large,
			func() []Part { return d.orders(w) },
			func() []Part { return d.stock(w) })
		small = append(small, func() []Part { return d.people(w) })
	}
	return slices.Concat(large, small, []Task{d.items})
}

// Streams of the seed, one for each kind of task.
const (
	itemStream = iota
	stockStream
	peopleStream
	orderStream
	streams
)

func (d Data) source(warehouse, stream int) *draw.Source {
	return draw.New(d.Seed, uint64(warehouse*streams+stream))
}

// stream reads rows that next makes.
type stream struct {
	encoder
	// next appends the next row, or returns false after the last one. Then it is not called again.
	next  func(*encoder) bool
	rows  *atomic.Int64
	at    int // what of out was read
	ended bool
}

// textRoom is enough for the longest text.
const textRoom = 512

func (d Data) stream(next func(*encoder) bool) *stream {
	s := &stream{next: next, rows: d.Rows}
	s.out, s.text = append(s.out, header...), make([]byte, 0, textRoom)
	return s
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	if s.at == len(s.out) {
		if s.ended {
			return 0, io.EOF
		}
		s.out, s.at = s.out[:0], 0
	}
	made := int64(0)
	for !s.ended && len(s.out)-s.at < len(p) {
		if s.next(&s.encoder) {
			made++
			continue
		}
		s.out = append(s.out, trailer...)
		s.ended = true
	}
	s.rows.Add(made)
	n := copy(p, s.out[s.at:])
	s.at += n
	return n, nil
}
