package load

import (
	"howdah/internal/lab/tpcc/draw"
	"howdah/internal/lab/tpcc/form"
)

// order is what an order and its lines must agree on.
type order struct {
	customer int32
	lines    int32
}

// orders makes the orders of a warehouse with their lines, and those that are to be delivered. Each
// customer has one order. HammerDB means to permute the customers too, but some of its customers have
// several orders and others none.
func (d Data) orders(w int) []Part {
	s := d.source(w, orderStream)
	all := make([]order, form.Districts*form.Orders)
	customers := make([]int32, form.Orders)
	for i := range all {
		if i%form.Orders == 0 {
			s.Permute(customers)
		}
		all[i] = order{customers[i%form.Orders], int32(s.Between(form.MinLines, form.MaxLines))}
	}
	return []Part{{"orders", w, d.heads(w, s, all)}, {"new_order", w, d.undelivered(w)}, {"order_line", w, d.lines(w, s, all)}}
}

func at(all []order, district, n int) order { return all[(district-1)*form.Orders+n-1] }

func (d Data) heads(w int, s *draw.Source, all []order) *stream {
	entered := microseconds(d.Now)
	return d.perDistrict(form.Orders, func(e *encoder, district, n int) {
		o := at(all, district, n)
		e.row(8)
		e.timestamp(entered)
		e.int4(n)
		e.int4(w)
		e.int4(int(o.customer))
		e.int2(district)
		if n <= form.Delivered {
			e.int2(s.Between(1, 10))
		} else {
			e.null()
		}
		e.int2(int(o.lines))
		e.int2(1)
	})
}

func (d Data) undelivered(w int) *stream {
	return d.perDistrict(form.Undelivered, func(e *encoder, district, n int) {
		e.row(3)
		e.int4(w)
		e.int4(form.Delivered + n)
		e.int2(district)
	})
}

func (d Data) lines(w int, s *draw.Source, all []order) *stream {
	delivered := microseconds(d.Now)
	i, line := 0, int32(0)
	return d.stream(func(e *encoder) bool {
		if line == all[i].lines {
			i, line = i+1, 0
		}
		if i == len(all) {
			return false
		}
		line++
		number := i%form.Orders + 1
		e.row(10)
		if number <= form.Delivered {
			e.timestamp(delivered)
		} else {
			e.null()
		}
		e.int4(number)
		e.int4(w)
		e.int4(s.Between(1, form.Items))
		e.int4(w)
		e.int2(i/form.Orders + 1)
		e.int2(int(line))
		e.int2(lineQuantity)
		e.cents(d.amount(s, number <= form.Delivered))
		e.drawn(s, 24, 24)
		return true
	})
}

// amount draws what a line costs, in cents. TPC-C gives amounts to the orders that are not delivered,
// HammerDB to the others.
func (d Data) amount(s *draw.Source, delivered bool) int {
	switch {
	case d.Mode == form.Compatible && delivered:
		return s.Between(10, 10000)
	case d.Mode == form.Compatible || delivered:
		return 0
	default:
		return s.Between(1, 999999)
	}
}
