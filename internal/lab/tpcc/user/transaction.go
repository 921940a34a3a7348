package user

import (
	"errors"

	"howdah/internal/lab/tpcc/form"
	"howdah/internal/lab/tpcc/wire"
)

// errUnused ends a new order of an item that is not there.
var errUnused = errors.New("the item is not there")

// draw draws the input of a transaction, and returns what does it. That can be called again.
func (u *User) draw(kind form.Kind) func() error {
	if u.o.Call == form.Procedures {
		u.compose(kind)
		text := string(u.call)
		return func() error { return unused(u.session.Query(text, nil)) }
	}
	switch kind {
	case form.NewOrder:
		n := u.terminal.NewOrder()
		return func() error { return u.newOrder(n) }
	case form.Payment:
		p := u.terminal.Payment()
		return func() error { return u.payment(p) }
	case form.Delivery:
		w, carrier := u.terminal.Delivery()
		return func() error { return u.delivery(w, carrier) }
	case form.StockLevel:
		w, d, threshold := u.terminal.StockLevel()
		return func() error { return u.stockLevel(w, d, threshold) }
	default:
		s := u.terminal.OrderStatus()
		return func() error { return u.orderStatus(s) }
	}
}

// unused recognizes the error with which the server's new order ends itself.
func unused(err error) error {
	if err != nil && wire.State(err) == form.Unused {
		return errUnused
	}
	return err
}

// in runs a transaction: a CALL is one by itself.
func (u *User) in(do func() error) error {
	if u.o.Call == form.Procedures {
		return do()
	}
	if err := u.session.Query("BEGIN", nil); err != nil {
		return err
	}
	err := do()
	if err == nil {
		return u.session.Query("COMMIT", nil)
	}
	if errors.Is(err, wire.ErrLost) {
		return err
	}
	if rollback := u.session.Query("ROLLBACK", nil); rollback != nil {
		return errors.Join(err, rollback)
	}
	return err
}
