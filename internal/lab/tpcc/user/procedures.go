package user

import (
	"strconv"
	"time"

	"howdah/internal/lab/tpcc/form"
	"howdah/internal/lab/tpcc/terminal"
)

// compose draws the input of a transaction, and writes the CALL that does it. All values are literals,
// as HammerDB has them.
func (u *User) compose(kind form.Kind) {
	u.call = append(append(append(u.call[:0], "CALL "...), u.o.Schema...), '.')
	switch kind {
	case form.NewOrder:
		u.composeNewOrder(u.terminal.NewOrder())
	case form.Payment:
		u.composePayment(u.terminal.Payment())
	case form.Delivery:
		w, carrier := u.terminal.Delivery()
		u.call = append(u.call, "delivery("...)
		u.ints(w, carrier)
		if u.o.Terminal.Mode == form.Specification {
			u.ints(0) // what it skipped
		}
		u.now()
	case form.StockLevel:
		w, d, threshold := u.terminal.StockLevel()
		u.call = append(u.call, "slev("...)
		u.ints(w, d, threshold, 0)
	case form.OrderStatus:
		u.composeOrderStatus(u.terminal.OrderStatus())
	}
	u.call[len(u.call)-1] = ')' // in the place of the last comma
}

func (u *User) composeNewOrder(n *terminal.NewOrder) {
	u.call = append(u.call, "neword("...)
	if u.o.Terminal.Mode == form.Compatible {
		u.ints(n.Warehouse, u.o.Terminal.Warehouses, n.District, n.Customer, n.Count)
		u.call = append(u.call, "0,'','',0,0,0,"...)
		u.now()
		return
	}
	u.ints(n.Warehouse, n.District, n.Customer)
	for _, field := range []func(terminal.Line) int{item, supply, quantity} {
		u.call = append(u.call, '\'')
		u.call = appendArray(u.call, n.Lines, field)
		u.call = append(u.call, "',"...)
	}
	u.call = append(u.call, "0,'','',0,0,0,0,'',"...)
	u.now()
}

func (u *User) composePayment(p *terminal.Payment) {
	u.call = append(u.call, "payment("...)
	u.ints(p.Warehouse, p.District, p.CustomerWarehouse, p.CustomerDistrict, p.Customer, truth(p.ByName))
	u.call = append(appendCents(u.call, p.Cents), ",'"...)
	u.call = append(append(u.call, p.Last...), "',"...)
	// Five texts of the warehouse, five of the district, eight of the customer; since, credit, limit,
	// discount, balance and data.
	u.call = append(u.call, "'','','','','','','','','','','','','','','','','','',NULL,'',0,0,0,'',"...)
	u.now()
}

func (u *User) composeOrderStatus(s *terminal.OrderStatus) {
	u.call = append(u.call, "ostat("...)
	u.ints(s.Warehouse, s.District, s.Customer, truth(s.ByName))
	u.call = append(append(append(u.call, '\''), s.Last...), "','','',0,0,NULL,0,'',"...)
}

func (u *User) ints(all ...int) {
	for _, n := range all {
		u.call = append(strconv.AppendInt(u.call, int64(n), 10), ',')
	}
}

func (u *User) now() {
	u.call = append(u.call, '\'')
	u.call = append(appendNow(u.call), "',"...)
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func item(l terminal.Line) int     { return l.Item }
func supply(l terminal.Line) int   { return l.Supply }
func quantity(l terminal.Line) int { return l.Quantity }

// appendArray appends an array of integers as the server writes it.
func appendArray(to []byte, lines []terminal.Line, field func(terminal.Line) int) []byte {
	to = append(to, '{')
	for i, l := range lines {
		if i > 0 {
			to = append(to, ',')
		}
		to = strconv.AppendInt(to, int64(field(l)), 10)
	}
	return append(to, '}')
}

// appendCents appends an amount.
func appendCents(to []byte, cents int) []byte {
	to = strconv.AppendInt(to, int64(cents/100), 10)
	if rest := cents % 100; rest != 0 {
		to = append(to, '.', byte('0'+rest/10), byte('0'+rest%10))
	}
	return to
}

func appendNow(to []byte) []byte {
	return time.Now().UTC().AppendFormat(to, "2006-01-02 15:04:05.000000+00")
}
