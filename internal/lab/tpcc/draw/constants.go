package draw

import "howdah/internal/lab/tpcc/form"

// Constants are the constants of NURand that hold for one run.
type Constants struct {
	Last     int // for last names
	Customer int
	Item     int
}

// Ranges of NURand's first argument.
const (
	lastRange     = 255
	customerRange = 1023
	itemRange     = 8191
)

// Clause 2.1.6.1 bounds how far the constant of a run is from that of the load, and leaves two
// distances out.
const (
	leastApart, mostApart = 65, 119
	firstNot, secondNot   = 96, 112
)

// RunConstants draws the constants of a run in the specification mode. HammerDB has the load's
// constant for last names in runs too, so the compatible mode does.
func RunConstants(mode form.Mode, s *Source) Constants {
	c := Constants{Last: form.LastLoad, Customer: s.Between(0, customerRange), Item: s.Between(0, itemRange)}
	if mode == form.Compatible {
		return c
	}
	apart := s.Between(leastApart, mostApart)
	for apart == firstNot || apart == secondNot {
		apart = s.Between(leastApart, mostApart)
	}
	c.Last = form.LastLoad + apart
	return c
}

// LastName draws the number of a last name.
func (s *Source) LastName(constant int) int {
	return s.NURand(lastRange, 0, form.LastNames-1, constant)
}

// Customer draws the number of a customer in its district.
func (s *Source) Customer(mode form.Mode, c Constants) int {
	if mode == form.Compatible {
		return s.Between(1, form.Customers)
	}
	return s.NURand(customerRange, 1, form.Customers, c.Customer)
}

// Item draws the number of an item.
func (s *Source) Item(mode form.Mode, c Constants) int {
	if mode == form.Compatible {
		return s.Between(1, form.Items)
	}
	return s.NURand(itemRange, 1, form.Items, c.Item)
}
