// Package terminal draws what a virtual user asks for: which transaction comes next, with which input,
// and how long the user types and thinks. It does no I/O.
package terminal

import (
	"math"
	"slices"
	"time"

	"howdah/internal/lab/tpcc/draw"
	"howdah/internal/lab/tpcc/form"
)

// Options say what a terminal is like.
type Options struct {
	User, Users   int // the number of the user, from 0, and how many there are
	Warehouses    int // that the database has
	AllWarehouses bool
	Mode          form.Mode
	Reach         form.Reach
	// Lines is whether the lines of orders are drawn here. In the compatible mode the procedure draws
	// them.
	Lines     bool
	Seed      uint64
	Constants draw.Constants
}

// Terminal draws for one user.
type Terminal struct {
	o          Options
	draw       *draw.Source
	warehouses []int // from which each transaction gets its own
	district   int   // for stock levels
	order      NewOrder
	payment    Payment
	status     OrderStatus
}

// New returns a terminal. Equal options draw the same.
func New(o Options) *Terminal {
	t := &Terminal{o: o, draw: draw.New(o.Seed, uint64(o.User))}
	if o.AllWarehouses {
		t.warehouses = Share(o.User, o.Users, o.Warehouses)
	} else {
		// As in HammerDB two users may have the same home.
		t.warehouses = []int{t.draw.Between(1, o.Warehouses)}
	}
	if o.Mode == form.Compatible {
		t.district = t.draw.Between(1, form.Districts)
	} else {
		t.district = o.User%form.Districts + 1
	}
	return t
}

// Share returns the warehouses of a user, from 0, if users spread over all of them: every users-th one.
// With more users than warehouses the count begins again.
func Share(user, users, warehouses int) []int {
	all := make([]int, (warehouses+users-1)/users)
	for i := range all {
		all[i] = (user+i*users)%warehouses + 1
	}
	return all
}

// Warehouses are those that the terminal works for.
func (t *Terminal) Warehouses() []int { return slices.Clone(t.warehouses) }

func (t *Terminal) warehouse() int {
	if len(t.warehouses) == 1 {
		return t.warehouses[0]
	}
	return t.warehouses[t.draw.Between(0, len(t.warehouses)-1)]
}

// Next draws which transaction comes next.
func (t *Terminal) Next() form.Kind { return form.Pick(t.draw.Between(1, form.Shares)) }

// Line is a line of an order.
type Line struct {
	Item, Supply, Quantity int
}

// NewOrder is the input of a new order.
type NewOrder struct {
	Warehouse, District, Customer int
	Count                         int // of lines
	// Lines are nil if the server draws them. In the specification mode they are in the order of their
	// items, so that two orders seldom wait for each other. The unused item is the last one.
	Lines []Line
}

// Unused is whether the order asks for an item that is not there.
func (n *NewOrder) Unused() bool {
	return len(n.Lines) > 0 && n.Lines[len(n.Lines)-1].Item == form.UnusedItem
}

// AllLocal is whether all lines come from the order's own warehouse.
func (n *NewOrder) AllLocal() bool {
	return !slices.ContainsFunc(n.Lines, func(l Line) bool { return l.Supply != n.Warehouse })
}

// Shares of orders and lines, in percent.
const (
	unusedShare  = 1
	remoteSupply = 1
	remotePayer  = 15
	byNameShare  = 60
)

// NewOrder draws an order. It is valid until the next draw of one.
func (t *Terminal) NewOrder() *NewOrder {
	n := &t.order
	n.Warehouse = t.warehouse()
	n.District = t.draw.Between(1, form.Districts)
	n.Customer = t.draw.Customer(t.o.Mode, t.o.Constants)
	n.Count = t.draw.Between(form.MinLines, form.MaxLines)
	n.Lines = n.Lines[:0]
	if !t.o.Lines {
		return n
	}
	unused := t.draw.Percent(unusedShare)
	for line := range n.Count {
		n.Lines = append(n.Lines, Line{
			Item: t.draw.Item(t.o.Mode, t.o.Constants), Supply: t.supply(n.Warehouse, line), Quantity: t.draw.Between(1, 10),
		})
	}
	if unused {
		n.Lines[n.Count-1].Item = form.UnusedItem
	}
	if t.o.Mode == form.Specification {
		slices.SortFunc(n.Lines, func(a, b Line) int {
			if a.Item != b.Item {
				return a.Item - b.Item
			}
			return a.Supply - b.Supply
		})
	}
	return n
}

// supply draws the warehouse of a line. HammerDB's remote warehouse may be the home again.
func (t *Terminal) supply(home, line int) int {
	switch {
	case t.o.Reach == form.Home:
		return home
	case t.o.Reach == form.Away && line == 0:
		return t.other(home)
	case !t.draw.Percent(remoteSupply):
		return home
	}
	if t.o.Mode == form.Compatible {
		return 1 + (home+t.draw.Between(0, t.o.Warehouses-1))%t.o.Warehouses
	}
	return t.other(home)
}

// other draws a warehouse that is not the home, if there is one.
func (t *Terminal) other(home int) int {
	if t.o.Warehouses == 1 {
		return home
	}
	w := t.draw.Between(1, t.o.Warehouses-1)
	if w >= home {
		w++
	}
	return w
}

// Payment is the input of a payment.
type Payment struct {
	Warehouse, District                 int
	CustomerWarehouse, CustomerDistrict int
	Customer                            int
	ByName                              bool
	Last                                []byte // the name; only by name
	Cents                               int
}

// Payment draws a payment. It is valid until the next draw of one.
func (t *Terminal) Payment() *Payment {
	p := &t.payment
	p.Warehouse, p.District = t.warehouse(), t.draw.Between(1, form.Districts)
	p.CustomerWarehouse, p.CustomerDistrict = p.Warehouse, p.District
	if t.o.Reach == form.Away || t.o.Reach != form.Home && t.draw.Percent(remotePayer) {
		p.CustomerWarehouse, p.CustomerDistrict = t.other(p.Warehouse), t.draw.Between(1, form.Districts)
	}
	p.Customer, p.ByName, p.Last = t.whom(p.Last)
	if t.o.Mode == form.Compatible {
		p.Cents = 100 * t.draw.Between(1, 5000)
	} else {
		p.Cents = t.draw.Between(100, 500000)
	}
	return p
}

// whom draws a customer and whether the name is given.
func (t *Terminal) whom(room []byte) (customer int, byName bool, last []byte) {
	if t.draw.Percent(byNameShare) {
		return 0, true, draw.AppendLast(room[:0], t.draw.LastName(t.o.Constants.Last))
	}
	return t.draw.Customer(t.o.Mode, t.o.Constants), false, room[:0]
}

// OrderStatus is the input of an order status.
type OrderStatus struct {
	Warehouse, District int
	Customer            int
	ByName              bool
	Last                []byte // the name; only by name
}

// OrderStatus draws an order status. It is valid until the next draw of one.
func (t *Terminal) OrderStatus() *OrderStatus {
	s := &t.status
	s.Warehouse, s.District = t.warehouse(), t.draw.Between(1, form.Districts)
	s.Customer, s.ByName, s.Last = t.whom(s.Last)
	return s
}

// Delivery draws the input of a delivery.
func (t *Terminal) Delivery() (warehouse, carrier int) {
	return t.warehouse(), t.draw.Between(1, 10)
}

// StockLevel draws the input of a stock level. The district is the same each time.
func (t *Terminal) StockLevel() (warehouse, district, threshold int) {
	return t.warehouse(), t.district, t.draw.Between(10, 20)
}

// pace is how long a user types, and thinks on average, in seconds.
type pace struct{ keying, thinking float64 }

// HammerDB has the times of order status and delivery exchanged.
var paces = map[form.Mode][form.Kinds]pace{
	form.Compatible: {
		form.NewOrder: {18, 12}, form.Payment: {3, 12}, form.Delivery: {2, 10}, form.StockLevel: {2, 5}, form.OrderStatus: {2, 5},
	},
	form.Specification: {
		form.NewOrder: {18, 12}, form.Payment: {3, 12}, form.Delivery: {2, 5}, form.StockLevel: {2, 5}, form.OrderStatus: {2, 10},
	},
}

// Keying is how long the user types before a transaction.
func (t *Terminal) Keying(kind form.Kind) time.Duration {
	return seconds(paces[t.o.Mode][kind].keying)
}

// longest bounds what the specification lets users think, as a multiple of the mean.
const longest = 10

// Thinking draws how long the user thinks after a transaction. HammerDB has whole seconds without a
// bound.
func (t *Terminal) Thinking(kind form.Kind) time.Duration {
	mean := paces[t.o.Mode][kind].thinking
	drawn := t.draw.Exponential(mean)
	if t.o.Mode == form.Compatible {
		return seconds(math.Round(drawn))
	}
	return seconds(min(drawn, longest*mean))
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
