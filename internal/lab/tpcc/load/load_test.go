package load

import (
	"bytes"
	"encoding/binary"
	"hash/crc64"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"howdah/internal/lab/tpcc/form"
	"howdah/internal/lab/tpcc/layout"
)

var now = time.Date(2026, 11, 27, 1, 2, 3, 4000, time.UTC)

func data(mode form.Mode) Data {
	return Data{Mode: mode, Seed: 42, Now: now, Rows: new(atomic.Int64)}
}

// row is a row of a stream. Only the function that gets it may use it.
type row struct {
	fields [][]byte // null is nil
	at     map[string]int
}

// get returns the field of a column.
func (r row) get(name string) []byte { return r.fields[r.at[name]] }

// decode reads a stream as the server would, with one row after the other.
func decode(t *testing.T, p Part, each func(row)) {
	t.Helper()
	table, ok := layout.Named(p.Table)
	if !ok {
		t.Fatalf("there is no table %s", p.Table)
	}
	all, err := io.ReadAll(p.Rows)
	if err != nil {
		t.Fatal(err)
	}
	rest, ok := bytes.CutPrefix(all, header)
	if !ok {
		t.Fatalf("%s begins with %q", p.Table, all[:min(20, len(all))])
	}
	r := row{make([][]byte, len(table.Columns)), map[string]int{}}
	for i, c := range table.Columns {
		r.at[c.Name] = i
	}
	for !bytes.Equal(rest, trailer) {
		if n := int(binary.BigEndian.Uint16(rest)); n != len(table.Columns) {
			t.Fatalf("%s: a row has %d fields, the table %d columns", p.Table, n, len(table.Columns))
		}
		rest = rest[2:]
		for i, c := range table.Columns {
			n := int(int32(binary.BigEndian.Uint32(rest)))
			rest = rest[4:]
			if n < 0 {
				if !c.Nullable {
					t.Fatalf("%s.%s is null", p.Table, c.Name)
				}
				r.fields[i] = nil
				continue
			}
			check(t, p.Table, c, rest[:n])
			r.fields[i], rest = rest[:n], rest[n:]
		}
		each(r)
	}
}

// check compares the size of a field with its type.
func check(t *testing.T, table string, c layout.Column, field []byte) {
	t.Helper()
	var most int
	name, size, _ := strings.Cut(c.Type, "(")
	switch name {
	case "integer":
		most = 4
	case "smallint":
		most = 2
	case "timestamptz":
		most = 8
	case "numeric":
		most = 14
	default:
		for _, digit := range strings.TrimSuffix(size, ")") {
			most = most*10 + int(digit-'0')
		}
		if name == "varchar" && len(field) <= most {
			return
		}
	}
	if len(field) != most {
		t.Fatalf("%s.%s is a %s, and has %d bytes: %q", table, c.Name, c.Type, len(field), field)
	}
}

func (r row) int(name string) int {
	b := r.get(name)
	if len(b) == 2 {
		return int(int16(binary.BigEndian.Uint16(b)))
	}
	return int(int32(binary.BigEndian.Uint32(b)))
}

var types = pgtype.NewMap()

// numeric reads a numeric as pgx does.
func numeric(t *testing.T, field []byte) float64 {
	t.Helper()
	var n pgtype.Numeric
	if err := types.Scan(pgtype.NumericOID, pgtype.BinaryFormatCode, field, &n); err != nil {
		t.Fatalf("% x: %v", field, err)
	}
	f, err := n.Float64Value()
	if err != nil {
		t.Fatal(err)
	}
	return f.Float64
}

func TestNumeric(t *testing.T) {
	for _, c := range []struct {
		write func(*encoder)
		want  float64
	}{
		{func(e *encoder) { e.cents(0) }, 0},
		{func(e *encoder) { e.cents(7) }, 0.07},
		{func(e *encoder) { e.cents(-1000) }, -10},
		{func(e *encoder) { e.cents(999999) }, 9999.99},
		{func(e *encoder) { e.cents(30000000) }, 300000},
		{func(e *encoder) { e.cents(9999999999) }, 99999999.99},
		{func(e *encoder) { e.tenThousandths(1234) }, 0.1234},
		{func(e *encoder) { e.tenThousandths(20000) }, 2},
	} {
		var e encoder
		c.write(&e)
		if got := numeric(t, e.out[4:]); got != c.want {
			t.Errorf("%v became %v", c.want, got)
		}
	}
}

// tables decodes those tables of one warehouse that somebody wants to see.
func tables(t *testing.T, d Data, each map[string]func(row)) {
	t.Helper()
	for _, task := range d.Tasks(1) {
		for _, p := range task() {
			if f := each[p.Table]; f != nil {
				decode(t, p, f)
			}
		}
	}
}

// Each table has as many rows as it must, and the count of rows says so.
func TestRowCounts(t *testing.T) {
	d := data(form.Compatible)
	lines, rows := 0, map[string]int{}
	each := map[string]func(row){}
	for _, table := range layout.Tables() {
		each[table.Name] = func(r row) {
			rows[table.Name]++
			if table.Name == "orders" {
				lines += r.int("o_ol_cnt")
			}
		}
	}
	tables(t, d, each)
	sum := 0
	for _, table := range layout.Tables() {
		want := table.Rows
		if table.Name == "order_line" {
			want = lines
		}
		if rows[table.Name] != want {
			t.Errorf("%s has %d rows, not %d", table.Name, rows[table.Name], want)
		}
		sum += want
	}
	if d.Rows.Load() != int64(sum) {
		t.Errorf("%d rows were counted, not %d", d.Rows.Load(), sum)
	}
	if lines < 298000 || lines > 302000 {
		t.Errorf("%d order lines", lines)
	}
}

// The two modes differ in what the specification and HammerDB differ in.
func TestModes(t *testing.T) {
	for _, c := range []struct {
		mode                form.Mode
		lowBad, highBad     int
		lowTax              float64
		mark                string
		lowOpen, highOpen   float64
		lowSent, highSent   float64
		lowMarks, highMarks int
	}{
		{form.Compatible, 14500, 15500, 0.1, "original", 0, 0, 0.1, 100, 9500, 10500},
		{form.Specification, 2750, 3250, 0, "ORIGINAL", 0.01, 9999.99, 0, 0, 9500, 10500},
	} {
		t.Run(string(c.mode), func(t *testing.T) {
			bad, marks := 0, 0
			tax := func(name string) func(row) {
				return func(r row) {
					if n := numeric(t, r.get(name)); n < c.lowTax || n > 0.2 {
						t.Errorf("%s is %v", name, n)
					}
				}
			}
			tables(t, data(c.mode), map[string]func(row){
				"warehouse": tax("w_tax"), "district": tax("d_tax"),
				"customer": func(r row) {
					if string(r.get("c_credit")) == "BC" {
						bad++
					}
				},
				"stock": func(r row) {
					if bytes.Contains(r.get("s_data"), []byte(c.mark)) {
						marks++
					}
				},
				"order_line": func(r row) {
					low, high := c.lowOpen, c.highOpen
					if r.get("ol_delivery_d") != nil {
						low, high = c.lowSent, c.highSent
					}
					if n := numeric(t, r.get("ol_amount")); n < low || n > high {
						t.Fatalf("order %d: a line costs %v", r.int("ol_o_id"), n)
					}
				},
			})
			if bad < c.lowBad || bad > c.highBad {
				t.Errorf("%d customers have bad credit", bad)
			}
			if marks < c.lowMarks || marks > c.highMarks {
				t.Errorf("%d stocks are original", marks)
			}
		})
	}
}

// Orders are a permutation of the customers, the last 900 of a district are not delivered, and lines
// are numbered as their order says.
func TestOrders(t *testing.T) {
	customers := map[[2]int]bool{}
	open := map[[2]int]bool{}
	lines := map[[2]int]int{}
	tables(t, data(form.Specification), map[string]func(row){
		"orders": func(r row) {
			d, o := r.int("o_d_id"), r.int("o_id")
			customers[[2]int{d, r.int("o_c_id")}] = true
			lines[[2]int{d, o}] = r.int("o_ol_cnt")
			if delivered := r.get("o_carrier_id") != nil; delivered != (o <= form.Delivered) {
				t.Fatalf("order %d: delivered is %t", o, delivered)
			}
		},
		"new_order": func(r row) { open[[2]int{r.int("no_d_id"), r.int("no_o_id")}] = true },
		"order_line": func(r row) {
			order := [2]int{r.int("ol_d_id"), r.int("ol_o_id")}
			if n := r.int("ol_number"); n == lines[order] {
				delete(lines, order) // its last line
			} else if n > lines[order] {
				t.Fatalf("order %v has the line %d", order, n)
			}
			if delivered := r.get("ol_delivery_d") != nil; delivered != (order[1] <= form.Delivered) {
				t.Fatalf("order %v: delivered is %t", order, delivered)
			}
		},
	})
	if len(customers) != form.Districts*form.Customers {
		t.Errorf("%d customers have an order", len(customers))
	}
	if len(lines) != 0 {
		t.Errorf("%d orders lack lines", len(lines))
	}
	for key := range open {
		if key[1] <= form.Delivered || key[1] > form.Orders {
			t.Errorf("order %v is to be delivered", key)
		}
	}
	if len(open) != form.Districts*form.Undelivered {
		t.Errorf("%d orders are to be delivered", len(open))
	}
}

// The first customers of a district have all the names, each once.
func TestCustomers(t *testing.T) {
	names := map[int]map[string]bool{}
	tables(t, data(form.Compatible), map[string]func(row){"customer": func(r row) {
		d := r.int("c_d_id")
		if names[d] == nil {
			names[d] = map[string]bool{}
		}
		if r.int("c_id") <= form.LastNames {
			names[d][string(r.get("c_last"))] = true
		}
		if at := r.get("c_since"); epoch.Add(time.Duration(binary.BigEndian.Uint64(at))*time.Microsecond) != now {
			t.Fatalf("since % x", at)
		}
	}})
	for d, all := range names {
		if len(all) != form.LastNames {
			t.Errorf("district %d has %d names", d, len(all))
		}
	}
	if len(names) != form.Districts {
		t.Errorf("%d districts", len(names))
	}
}

// sums are hashes of how the parts begin, by table and warehouse.
func sums(t *testing.T, d Data, warehouses int) (all []uint64) {
	t.Helper()
	for _, task := range d.Tasks(warehouses) {
		for _, p := range task() {
			h := crc64.New(crc64.MakeTable(crc64.ECMA))
			if _, err := io.Copy(h, io.LimitReader(p.Rows, 1<<18)); err != nil {
				t.Fatal(err)
			}
			all = append(all, h.Sum64())
		}
	}
	return all
}

// The same seed gives the same rows. Warehouses and seeds differ from each other.
func TestSeeds(t *testing.T) {
	first, again := sums(t, data(form.Compatible), 2), sums(t, data(form.Compatible), 2)
	other := data(form.Compatible)
	other.Seed++
	different := sums(t, other, 2)
	seen := map[uint64]bool{}
	for i := range first {
		if first[i] != again[i] {
			t.Errorf("part %d differs from itself", i)
		}
		seen[first[i]] = true
		seen[different[i]] = true
	}
	// new_order has no draws, so another seed has the same.
	if want := 2*len(first) - 2; len(seen) != want {
		t.Errorf("%d parts differ, not %d", len(seen), want)
	}
}

// A stream is whole, however small the pieces are in which it is read.
func TestReadInPieces(t *testing.T) {
	district := func() io.Reader { return data(form.Compatible).people(1)[1].Rows }
	if err := iotest.TestReader(district(), mustRead(t, district())); err != nil {
		t.Error(err)
	}
}

func mustRead(t *testing.T, r io.Reader) []byte {
	t.Helper()
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
