package user

import (
	"errors"
	"fmt"
	"strconv"
)

// params are the parameters of a prepared statement, as texts.
type params struct {
	room []byte
	list [][]byte
}

func (p *params) reset() *params {
	p.room, p.list = p.room[:0], p.list[:0]
	return p
}

// add takes what append adds to the room as the next parameter. Those before stay where they are if
// the room moves.
func (p *params) add(grow func([]byte) []byte) *params {
	begin := len(p.room)
	p.room = grow(p.room)
	p.list = append(p.list, p.room[begin:len(p.room):len(p.room)])
	return p
}

func (p *params) ints(all ...int) *params {
	for _, n := range all {
		begin := len(p.room)
		p.room = strconv.AppendInt(p.room, int64(n), 10)
		p.list = append(p.list, p.room[begin:len(p.room):len(p.room)])
	}
	return p
}

func (p *params) text(s []byte) *params {
	return p.add(func(to []byte) []byte { return append(to, s...) })
}

func (p *params) cents(n int) *params {
	return p.add(func(to []byte) []byte { return appendCents(to, n) })
}

func (p *params) now() *params { return p.add(appendNow) }

// answer are the rows that a statement returned, until the next one.
type answer struct {
	room  []byte
	cells [][]byte
	width int
}

func (a *answer) reset() { a.room, a.cells, a.width = a.room[:0], a.cells[:0], 0 }

// keep copies a row. Null stays nil.
func (a *answer) keep(values [][]byte) error {
	a.width = len(values)
	for _, v := range values {
		if v == nil {
			a.cells = append(a.cells, nil)
			continue
		}
		begin := len(a.room)
		a.room = append(a.room, v...)
		a.cells = append(a.cells, a.room[begin:len(a.room):len(a.room)])
	}
	return nil
}

func (a *answer) rows() int {
	if a.width == 0 {
		return 0
	}
	return len(a.cells) / a.width
}

func (a *answer) cell(row, column int) []byte { return a.cells[row*a.width+column] }

func (a *answer) int(row, column int) (int, error) {
	n, err := strconv.Atoi(string(a.cell(row, column)))
	if err != nil {
		return 0, fmt.Errorf("read column %d: %w", column+1, err)
	}
	return n, nil
}

// errMissing is a row that must be there and is not.
var errMissing = errors.New("the server returned no row")

// exec runs a statement with the parameters, and keeps what it returns.
func (u *User) exec(name string) error {
	u.answer.reset()
	if err := u.session.Exec(name, u.params.list, u.answer.keep); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// one runs a statement that must return a row.
func (u *User) one(name string) error {
	if err := u.exec(name); err != nil {
		return err
	}
	if u.answer.rows() == 0 {
		return fmt.Errorf("%s: %w", name, errMissing)
	}
	return nil
}
