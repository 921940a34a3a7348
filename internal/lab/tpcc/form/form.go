// Package form has what all parts of the TPC-C driver agree on: the cardinalities, the two modes, the
// two ways to call, and the five transactions. It does no I/O.
package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Cardinalities of clause 1.2.1 and 4.3.3.1.
const (
	Items       = 100000 // in all
	Districts   = 10     // of a warehouse
	Customers   = 3000   // of a district
	Orders      = 3000   // of a district, when built
	Delivered   = 2100   // the first orders of a district, when built
	Undelivered = Orders - Delivered
	MinLines    = 5 // of an order
	MaxLines    = 15
	UnusedItem  = Items + 1 // no item has this number
	LastNames   = 1000
)

// LastLoad is the constant of NURand for the last names of the data. HammerDB has the same.
const LastLoad = 123

// Unused is the SQLSTATE with which the specification mode's new order ends itself over an item that
// is not there. It is no error but asked for.
const Unused = "LAB01"

// Mode says which rules hold. Databases of one mode are never used in the other.
type Mode string

const (
	// Compatible does as HammerDB does for PostgreSQL, with its departures from TPC-C. Its figures
	// may be compared with HammerDB's.
	Compatible Mode = "compatible"
	// Specification does as TPC-C 5.11 says: skewed keys, orders that are rolled back, counters that
	// are kept. Its figures are never compared with HammerDB's.
	Specification Mode = "specification"
)

// ErrMode is a mode that does not exist.
var ErrMode = errors.New("the mode must be compatible or specification")

// Check returns ErrMode for a mode that does not exist.
func (m Mode) Check() error {
	if m != Compatible && m != Specification {
		return fmt.Errorf("%w, not %q", ErrMode, string(m))
	}
	return nil
}

// Reach says which warehouses a transaction touches. Where they are spread over shards, it says how many
// shards that takes.
type Reach string

const (
	// Usual is what TPC-C has: one of 100 lines, and 15 of 100 payments, are of another warehouse.
	Usual Reach = "usual"
	// Home touches the user's own warehouse alone.
	Home Reach = "home"
	// Away has the first line of each order, and the customer of each payment, from another warehouse.
	Away Reach = "away"
)

// ErrReach is a reach that does not exist.
var ErrReach = errors.New("the reach must be usual, home or away")

// Check returns ErrReach for a reach that does not exist. None is the usual one.
func (r Reach) Check() error {
	switch r {
	case "", Usual, Home, Away:
		return nil
	}
	return fmt.Errorf("%w, not %q", ErrReach, string(r))
}

// Call says how a transaction reaches the server.
type Call string

const (
	// Procedures sends one CALL a transaction, by the simple protocol, as HammerDB does.
	Procedures Call = "procedures"
	// ClientSQL sends each statement by itself, prepared, in an explicit transaction.
	ClientSQL Call = "client_sql"
)

// ErrCall is a way to call that does not exist.
var ErrCall = errors.New("the way to call must be procedures or client_sql")

// Check returns ErrCall for a way that does not exist.
func (c Call) Check() error {
	if c != Procedures && c != ClientSQL {
		return fmt.Errorf("%w, not %q", ErrCall, string(c))
	}
	return nil
}

// Kind is one of the five transactions.
type Kind int

const (
	NewOrder Kind = iota
	Payment
	Delivery
	StockLevel
	OrderStatus
	Kinds int = iota // how many there are
)

var kindNames = [Kinds]string{"new_order", "payment", "delivery", "stock_level", "order_status"}

// String is the name in results, such as new_order.
func (k Kind) String() string {
	if k < 0 || int(k) >= Kinds {
		return fmt.Sprintf("kind %d", int(k))
	}
	return kindNames[k]
}

// MarshalJSON writes the name.
func (k Kind) MarshalJSON() ([]byte, error) { return json.Marshal(k.String()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (k *Kind) UnmarshalJSON(text []byte) error {
	var name string
	if err := json.Unmarshal(text, &name); err != nil {
		return err
	}
	n := slices.Index(kindNames[:], name)
	if n < 0 {
		return fmt.Errorf("there is no transaction %q", name)
	}
	*k = Kind(n)
	return nil
}

// The mix: one draw of 1 to Shares for each transaction.
const (
	Shares      = 23
	newOrders   = 10
	payments    = 20
	deliveries  = 21
	stockLevels = 22
)

// Pick returns the transaction of a draw of 1 to Shares. The shares are 10:10:1:1:1.
func Pick(drawn int) Kind {
	switch {
	case drawn <= newOrders:
		return NewOrder
	case drawn <= payments:
		return Payment
	case drawn <= deliveries:
		return Delivery
	case drawn <= stockLevels:
		return StockLevel
	default:
		return OrderStatus
	}
}
