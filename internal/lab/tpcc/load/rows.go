package load

import (
	"howdah/internal/lab/tpcc/draw"
	"howdah/internal/lab/tpcc/form"
)

// Each of the functions below writes the columns of its table in the order that package layout has
// them in.

// What a new database has, by clause 4.3.3.1.
const (
	warehouseYTD = 30000000 // cents
	districtYTD  = 3000000
	paid         = 1000 // by each customer
	creditLimit  = 5000000
	maxDiscount  = 5000 // ten thousandths
	lineQuantity = 5
)

// mark is what one of ten items has in its data.
func (d Data) mark() string {
	if d.Mode == form.Compatible {
		return "original"
	}
	return "ORIGINAL"
}

// badCredit is the share of customers with bad credit. HammerDB's is larger, so that more payments
// rewrite a customer's data.
func (d Data) badCredit() int {
	if d.Mode == form.Compatible {
		return 50
	}
	return 10
}

// tax draws ten thousandths.
func (d Data) tax(s *draw.Source) int {
	if d.Mode == form.Compatible {
		return s.Between(1000, 2000)
	}
	return s.Between(0, 2000)
}

func (e *encoder) drawn(s *draw.Source, low, high int) {
	e.bytes(s.AppendText(e.text, low, high))
}

func (e *encoder) marked(s *draw.Source, mark string) {
	e.bytes(s.AppendMarked(e.text, 26, 50, mark))
}

func (e *encoder) address(s *draw.Source) {
	for range 3 { // two streets and a city
		e.drawn(s, 10, 20)
	}
	e.bytes(s.AppendLetters(e.text, 2))
	e.bytes(append(s.AppendDigits(e.text, 4), "11111"...))
}

func (d Data) items() []Part {
	s, i := d.source(0, itemStream), 0
	return []Part{{"item", 0, d.stream(func(e *encoder) bool {
		if i == form.Items {
			return false
		}
		i++
		e.row(5)
		e.int4(i)
		e.int4(s.Between(1, 10000))
		e.drawn(s, 14, 24)
		e.cents(s.Between(100, 10000))
		e.marked(s, d.mark())
		return true
	})}}
}

func (d Data) stock(w int) []Part {
	s, i := d.source(w, stockStream), 0
	return []Part{{"stock", w, d.stream(func(e *encoder) bool {
		if i == form.Items {
			return false
		}
		i++
		e.row(7 + form.Districts)
		e.int4(i)
		e.int4(w)
		e.int4(0)
		e.int2(s.Between(10, 100))
		e.int2(0)
		e.int2(0)
		for range form.Districts {
			e.drawn(s, 24, 24)
		}
		e.marked(s, d.mark())
		return true
	})}}
}

// people makes a warehouse with its districts and customers, and what the customers paid.
func (d Data) people(w int) []Part {
	s := d.source(w, peopleStream)
	return []Part{
		{"warehouse", w, d.warehouse(w, s)}, {"district", w, d.districts(w, s)},
		{"customer", w, d.customers(w, s)}, {"history", w, d.payments(w, s)},
	}
}

func (d Data) warehouse(w int, s *draw.Source) *stream {
	done := false
	return d.stream(func(e *encoder) bool {
		if done {
			return false
		}
		done = true
		e.row(9)
		e.int4(w)
		e.cents(warehouseYTD)
		e.tenThousandths(d.tax(s))
		e.drawn(s, 6, 10)
		e.address(s)
		return true
	})
}

func (d Data) districts(w int, s *draw.Source) *stream {
	id := 0
	return d.stream(func(e *encoder) bool {
		if id == form.Districts {
			return false
		}
		id++
		e.row(11)
		e.int4(w)
		e.int4(form.Orders + 1)
		e.int2(id)
		e.cents(districtYTD)
		e.tenThousandths(d.tax(s))
		e.drawn(s, 6, 10)
		e.address(s)
		return true
	})
}

// perDistrict calls row with each number of a district from 1 to each, district by district.
func (d Data) perDistrict(each int, row func(e *encoder, district, n int)) *stream {
	district, n := 1, 0
	return d.stream(func(e *encoder) bool {
		if n == each {
			district, n = district+1, 0
		}
		if district > form.Districts {
			return false
		}
		n++
		row(e, district, n)
		return true
	})
}

func (d Data) customers(w int, s *draw.Source) *stream {
	since := microseconds(d.Now)
	return d.perDistrict(form.Customers, func(e *encoder, district, c int) {
		e.row(21)
		e.timestamp(since)
		e.int4(c)
		e.int4(w)
		e.int2(district)
		e.int2(1) // payments
		e.int2(0) // deliveries
		e.drawn(s, 8, 16)
		e.string("OE")
		e.bytes(draw.AppendLast(e.text, lastName(c, s)))
		e.address(s)
		e.bytes(s.AppendDigits(e.text, 16))
		if s.Percent(d.badCredit()) {
			e.string("BC")
		} else {
			e.string("GC")
		}
		e.cents(creditLimit)
		e.tenThousandths(s.Between(0, maxDiscount))
		e.cents(-paid)
		e.cents(paid)
		e.drawn(s, 300, 500)
	})
}

// lastName gives each name to one of the first customers, and draws those of the others.
func lastName(customer int, s *draw.Source) int {
	if customer <= form.LastNames {
		return customer - 1
	}
	return s.LastName(form.LastLoad)
}

func (d Data) payments(w int, s *draw.Source) *stream {
	date := microseconds(d.Now)
	return d.perDistrict(form.Customers, func(e *encoder, district, c int) {
		e.row(8)
		e.timestamp(date)
		e.int4(c)
		e.int4(w)
		e.int4(w)
		e.int2(district)
		e.int2(district)
		e.cents(paid)
		e.drawn(s, 12, 24)
	})
}
