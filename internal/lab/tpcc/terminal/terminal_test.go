package terminal

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"howdah/internal/lab/tpcc/draw"
	"howdah/internal/lab/tpcc/form"
)

func constants(mode form.Mode) draw.Constants { return draw.RunConstants(mode, draw.New(1, 1)) }

// Users spread over all warehouses as HammerDB's do.
func TestShare(t *testing.T) {
	for _, c := range []struct {
		user, users, warehouses int
		want                    []int
	}{
		{0, 1, 4, []int{1, 2, 3, 4}},
		{0, 2, 4, []int{1, 3}},
		{1, 2, 4, []int{2, 4}},
		{0, 3, 4, []int{1, 4}},
		{1, 3, 4, []int{2, 1}}, // it begins again
		{2, 3, 4, []int{3, 2}},
		{0, 8, 4, []int{1}},
		{3, 8, 4, []int{4}},
		{4, 8, 4, []int{1}},
		{7, 8, 1, []int{1}},
	} {
		if diff := cmp.Diff(c.want, Share(c.user, c.users, c.warehouses)); diff != "" {
			t.Errorf("user %d of %d with %d warehouses: %s", c.user, c.users, c.warehouses, diff)
		}
	}
}

// All users together have all warehouses, and none has one that is not there.
func TestSharesAreAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		users, warehouses := rapid.IntRange(1, 50).Draw(t, "users"), rapid.IntRange(1, 60).Draw(t, "warehouses")
		var all []int
		for user := range users {
			all = append(all, Share(user, users, warehouses)...)
		}
		slices.Sort(all)
		all = slices.Compact(all)
		if len(all) != warehouses || all[0] != 1 || all[len(all)-1] != warehouses {
			t.Fatalf("the users have %v", all)
		}
	})
}

func within(t *rapid.T, what string, n, low, high int) {
	t.Helper()
	if n < low || n > high {
		t.Fatalf("%s is %d, not from %d to %d", what, n, low, high)
	}
}

// Whatever the options, all that is drawn is there to be asked for.
func TestInputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]form.Mode{form.Compatible, form.Specification}).Draw(t, "mode")
		users := rapid.IntRange(1, 1024).Draw(t, "users")
		o := Options{
			User: rapid.IntRange(0, users-1).Draw(t, "user"), Users: users,
			Warehouses: rapid.IntRange(1, 30).Draw(t, "warehouses"), AllWarehouses: rapid.Bool().Draw(t, "all"),
			Mode: mode, Lines: rapid.Bool().Draw(t, "lines"), Seed: rapid.Uint64().Draw(t, "seed"), Constants: constants(mode),
		}
		terminal := New(o)
		for range 100 {
			checkOrder(t, o, terminal.NewOrder())
			p := terminal.Payment()
			within(t, "warehouse", p.Warehouse, 1, o.Warehouses)
			within(t, "district", p.District, 1, form.Districts)
			within(t, "customer's warehouse", p.CustomerWarehouse, 1, o.Warehouses)
			within(t, "customer's district", p.CustomerDistrict, 1, form.Districts)
			within(t, "cents", p.Cents, 100, 500000)
			checkWhom(t, p.Customer, p.ByName, p.Last)
			s := terminal.OrderStatus()
			within(t, "warehouse", s.Warehouse, 1, o.Warehouses)
			checkWhom(t, s.Customer, s.ByName, s.Last)
			w, carrier := terminal.Delivery()
			within(t, "warehouse", w, 1, o.Warehouses)
			within(t, "carrier", carrier, 1, 10)
			w, d, threshold := terminal.StockLevel()
			within(t, "warehouse", w, 1, o.Warehouses)
			within(t, "district", d, 1, form.Districts)
			within(t, "threshold", threshold, 10, 20)
			if !slices.Contains(terminal.Warehouses(), w) {
				t.Fatalf("it works for %d, and has %v", w, terminal.Warehouses())
			}
		}
	})
}

func checkOrder(t *rapid.T, o Options, n *NewOrder) {
	t.Helper()
	within(t, "warehouse", n.Warehouse, 1, o.Warehouses)
	within(t, "district", n.District, 1, form.Districts)
	within(t, "customer", n.Customer, 1, form.Customers)
	within(t, "lines", n.Count, form.MinLines, form.MaxLines)
	if !o.Lines {
		if len(n.Lines) > 0 {
			t.Fatal("there are lines")
		}
		return
	}
	if len(n.Lines) != n.Count {
		t.Fatalf("%d lines of %d", len(n.Lines), n.Count)
	}
	for i, l := range n.Lines {
		within(t, "supply", l.Supply, 1, o.Warehouses)
		within(t, "quantity", l.Quantity, 1, 10)
		if l.Item == form.UnusedItem && i < n.Count-1 {
			t.Fatal("the unused item is not the last one")
		}
		within(t, "item", l.Item, 1, form.UnusedItem)
		if o.Mode == form.Specification && i > 0 && l.Item < n.Lines[i-1].Item {
			t.Fatalf("the lines are not in the order of their items: %v", n.Lines)
		}
	}
}

func checkWhom(t *rapid.T, customer int, byName bool, last []byte) {
	t.Helper()
	if byName != (len(last) > 0) || byName != (customer == 0) {
		t.Fatalf("customer %d, by name %t, name %q", customer, byName, last)
	}
	within(t, "customer", customer, 0, form.Customers)
}

// share is how many percent of all calls are true.
func share(times int, call func() bool) float64 {
	n := 0
	for range times {
		if call() {
			n++
		}
	}
	return 100 * float64(n) / float64(times)
}

// Shares are those of the specification, in both modes.
func TestShares(t *testing.T) {
	for _, mode := range []form.Mode{form.Compatible, form.Specification} {
		terminal := New(Options{Users: 1, Warehouses: 10, AllWarehouses: true, Mode: mode, Lines: true, Seed: 2, Constants: constants(mode)})
		remoteLines, lines := 0, 0
		remoteOrders := 0
		unused := share(100000, func() bool {
			n := terminal.NewOrder()
			for _, l := range n.Lines {
				lines++
				if l.Supply != n.Warehouse {
					remoteLines++
				}
			}
			if !n.AllLocal() {
				remoteOrders++
			}
			return n.Unused()
		})
		byName := share(100000, func() bool { return terminal.Payment().ByName })
		remote := share(100000, func() bool { p := terminal.Payment(); return p.CustomerWarehouse != p.Warehouse })
		statusByName := share(100000, func() bool { return terminal.OrderStatus().ByName })
		newOrders := share(100000, func() bool { return terminal.Next() == form.NewOrder })
		for _, c := range []struct {
			what           string
			got, low, high float64
		}{
			{"orders of the unused item", unused, 0.9, 1.1},
			{"payments by name", byName, 59, 61},
			{"payments of other warehouses", remote, 14.5, 15.5},
			{"statuses by name", statusByName, 59, 61},
			{"new orders", newOrders, 42.9, 44},
			{"remote lines", 100 * float64(remoteLines) / float64(lines), 0.85, 1.05},
			{"orders with a remote line", float64(remoteOrders) / 1000, 8.2, 10},
		} {
			if c.got < c.low || c.got > c.high {
				t.Errorf("%s: %s are %.2f %%", mode, c.what, c.got)
			}
		}
	}
}

// In the compatible mode amounts are whole, and homes and districts of stock levels are drawn once.
func TestModes(t *testing.T) {
	homes, districts := map[int]int{}, map[int]bool{}
	for user := range 200 {
		terminal := New(Options{User: user, Users: 200, Warehouses: 10, Mode: form.Compatible, Seed: 3, Constants: constants(form.Compatible)})
		w, d, _ := terminal.StockLevel()
		homes[w]++
		districts[d] = true
		for range 20 {
			if p := terminal.Payment(); p.Cents%100 != 0 || p.Warehouse != w {
				t.Fatalf("a payment of %d cents at %d, and the home is %d", p.Cents, p.Warehouse, w)
			}
			if again, sameDistrict, _ := terminal.StockLevel(); again != w || sameDistrict != d {
				t.Fatalf("home %d became %d, district %d became %d", w, again, d, sameDistrict)
			}
		}
	}
	if len(homes) != 10 || len(districts) != form.Districts {
		t.Errorf("200 users have the homes %v and the districts %v", homes, districts)
	}
	odd := false
	for user := range 25 {
		terminal := New(Options{User: user, Users: 25, Warehouses: 10, Mode: form.Specification, Seed: 3, Constants: constants(form.Specification)})
		if _, d, _ := terminal.StockLevel(); d != user%10+1 {
			t.Errorf("user %d has the district %d", user, d)
		}
		odd = odd || terminal.Payment().Cents%100 != 0
	}
	if !odd {
		t.Error("amounts of the specification mode are whole")
	}
}

func TestEqualOptions(t *testing.T) {
	o := Options{User: 1, Users: 3, Warehouses: 7, Mode: form.Specification, Lines: true, Seed: 8, Constants: constants(form.Specification)}
	a, b := New(o), New(o)
	for range 50 {
		if a.Next() != b.Next() {
			t.Fatal("equal terminals differ in what comes next")
		}
		if diff := cmp.Diff(a.NewOrder(), b.NewOrder()); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestTimes(t *testing.T) {
	for _, c := range []struct {
		mode                    form.Mode
		statusMean, deliverMean float64
	}{{form.Compatible, 5, 10}, {form.Specification, 10, 5}} {
		terminal := New(Options{Users: 1, Warehouses: 1, Mode: c.mode, Seed: 4})
		mean := func(kind form.Kind) float64 {
			var sum, most time.Duration
			for range 20000 {
				d := terminal.Thinking(kind)
				sum += d
				most = max(most, d)
			}
			if whole := most%time.Second == 0; c.mode == form.Compatible && !whole {
				t.Errorf("%s: somebody thinks %s", c.mode, most)
			}
			if bound := seconds(longest * paces[c.mode][kind].thinking); c.mode == form.Specification && most > bound {
				t.Errorf("%s: somebody thinks %s", c.mode, most)
			}
			return sum.Seconds() / 20000
		}
		for kind, want := range map[form.Kind]float64{
			form.NewOrder: 12, form.Payment: 12, form.StockLevel: 5, form.OrderStatus: c.statusMean, form.Delivery: c.deliverMean,
		} {
			if got := mean(kind); got < want*0.96 || got > want*1.04 {
				t.Errorf("%s: the mean of %s is %.2f, not %v", c.mode, kind, got, want)
			}
		}
		if terminal.Keying(form.NewOrder) != 18*time.Second || terminal.Keying(form.Payment) != 3*time.Second || terminal.Keying(form.StockLevel) != 2*time.Second {
			t.Errorf("%s: typing takes %s, %s", c.mode, terminal.Keying(form.NewOrder), terminal.Keying(form.Payment))
		}
	}
}

// A reach decides whether a transaction stays in its own warehouse.
func TestReach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]form.Mode{form.Compatible, form.Specification}).Draw(t, "mode")
		reach := rapid.SampledFrom([]form.Reach{form.Home, form.Away}).Draw(t, "reach")
		terminal := New(Options{
			Users: 1, Warehouses: rapid.IntRange(2, 30).Draw(t, "warehouses"), AllWarehouses: rapid.Bool().Draw(t, "all"),
			Mode: mode, Reach: reach, Lines: true, Seed: rapid.Uint64().Draw(t, "seed"), Constants: constants(mode),
		})
		for range 50 {
			if n := terminal.NewOrder(); n.AllLocal() != (reach == form.Home) {
				t.Fatalf("%s: warehouse %d, lines %+v", reach, n.Warehouse, n.Lines)
			}
			if p := terminal.Payment(); (p.CustomerWarehouse == p.Warehouse) != (reach == form.Home) {
				t.Fatalf("%s: %+v", reach, p)
			}
		}
	})
}
