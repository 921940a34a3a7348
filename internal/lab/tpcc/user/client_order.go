package user

import (
	"fmt"
	"strconv"

	"howdah/internal/lab/tpcc/form"
	"howdah/internal/lab/tpcc/terminal"
)

// orderRoom is what a new order has to remember between its statements.
type orderRoom struct {
	amounts, infos [form.MaxLines][]byte // of its lines; nil is null
	room           []byte
}

func (o *orderRoom) reset() { *o = orderRoom{room: o.room[:0]} }

func (o *orderRoom) copy(text []byte) []byte {
	begin := len(o.room)
	o.room = append(o.room, text...)
	return o.room[begin:len(o.room):len(o.room)]
}

func (u *User) newOrder(n *terminal.NewOrder) error {
	u.params.reset().ints(n.Warehouse, n.District, n.Customer)
	if err := u.one("buyer"); err != nil {
		return err
	}
	u.params.reset().ints(n.Warehouse, n.District)
	if err := u.one("take_number"); err != nil {
		return err
	}
	number, err := u.answer.int(0, 0)
	if err != nil {
		return err
	}
	u.params.reset().ints(n.Warehouse, n.District, number, n.Customer, n.Count, truth(n.AllLocal())).now()
	if err := u.exec("put_order"); err != nil {
		return err
	}
	u.params.reset().ints(n.Warehouse, n.District, number)
	if err := u.exec("put_new_order"); err != nil {
		return err
	}
	u.order.reset()
	take := u.takeEach
	if u.o.Terminal.Mode == form.Compatible {
		take = u.takeAll
	}
	if err := take(n); err != nil {
		return err
	}
	return u.putLines(n, number)
}

// takeEach takes the lines from stock one after the other. The last one may not be there.
func (u *User) takeEach(n *terminal.NewOrder) error {
	for i, l := range n.Lines {
		u.params.reset().ints(l.Item, l.Supply, l.Quantity, n.Warehouse, n.District)
		if err := u.exec("take"); err != nil {
			return err
		}
		if u.answer.rows() == 0 {
			return errUnused
		}
		u.order.amounts[i] = u.order.copy(u.answer.cell(0, 0))
		u.order.infos[i] = u.order.copy(u.answer.cell(0, 1))
	}
	return nil
}

// takeAll takes all lines from stock at once. One that is not there has neither amount nor text, and
// the second one of an item no text.
func (u *User) takeAll(n *terminal.NewOrder) error {
	u.arrays(u.params.reset(), n, item)
	if err := u.exec("prices"); err != nil {
		return err
	}
	for row := range u.answer.rows() {
		line, err := u.line(n, row)
		if err != nil {
			return err
		}
		cents, err := parseCents(u.answer.cell(row, 1))
		if err != nil {
			return err
		}
		begin := len(u.order.room)
		u.order.room = appendCents(u.order.room, cents*n.Lines[line].Quantity)
		u.order.amounts[line] = u.order.room[begin:len(u.order.room):len(u.order.room)]
	}
	u.arrays(u.params.reset(), n, item, supply, quantity).ints(n.District)
	if err := u.exec("take_all"); err != nil {
		return err
	}
	for row := range u.answer.rows() {
		line, err := u.line(n, row)
		if err != nil {
			return err
		}
		u.order.infos[line] = u.order.copy(u.answer.cell(row, 1))
	}
	return nil
}

// line returns of which line a row is, from 0.
func (u *User) line(n *terminal.NewOrder, row int) (int, error) {
	number, err := u.answer.int(row, 0)
	if err == nil && (number < 1 || number > len(n.Lines)) {
		err = fmt.Errorf("the server returned a line %d of %d", number, len(n.Lines))
	}
	return number - 1, err
}

func (u *User) putLines(n *terminal.NewOrder, number int) error {
	p := u.params.reset().ints(n.Warehouse, n.District, number)
	u.arrays(p, n, item, supply, quantity)
	p.add(func(to []byte) []byte { return appendTexts(to, u.order.amounts[:len(n.Lines)]) })
	p.add(func(to []byte) []byte { return appendTexts(to, u.order.infos[:len(n.Lines)]) })
	return u.exec("put_lines")
}

func (u *User) arrays(p *params, n *terminal.NewOrder, fields ...func(terminal.Line) int) *params {
	for _, field := range fields {
		p.add(func(to []byte) []byte { return appendArray(to, n.Lines, field) })
	}
	return p
}

// appendTexts appends an array of numbers or of letters and digits, which need no quotes.
func appendTexts(to []byte, texts [][]byte) []byte {
	to = append(to, '{')
	for i, text := range texts {
		if i > 0 {
			to = append(to, ',')
		}
		if text == nil {
			to = append(to, "NULL"...)
		} else {
			to = append(to, text...)
		}
	}
	return append(to, '}')
}

// parseCents reads an amount that has two digits after its point.
func parseCents(text []byte) (int, error) {
	const scale = 3 // with the point
	n := len(text) - scale
	if n < 1 || text[n] != '.' {
		return 0, fmt.Errorf("%q is no amount", text)
	}
	cents, err := strconv.Atoi(string(text[:n]) + string(text[n+1:]))
	if err != nil {
		return 0, fmt.Errorf("%q is no amount: %w", text, err)
	}
	return cents, nil
}
