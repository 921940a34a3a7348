// Package layout describes the nine tables: their columns and keys, and what a database that spreads
// them over shards needs to know. It writes their DDL for a single server. It does no I/O.
package layout

import (
	"fmt"
	"strings"

	"howdah/internal/lab/tpcc/form"
)

// Column is a column of a table.
type Column struct {
	Name     string
	Type     string // as DDL has it
	Nullable bool
}

// Index is a unique index.
type Index struct {
	Name    string
	Columns []string
}

// Distribution says how a database with shards should spread a table.
type Distribution struct {
	// Reference tables are copied to each shard. Then Column and With are empty.
	Reference bool
	// Column decides on which shard a row is.
	Column string
	// With is the table whose equal values lie on the same shard; its own name for the first one.
	With string
}

// Table is one of the nine.
type Table struct {
	Name    string
	Columns []Column
	// Key is the primary key, made before the load; history has none.
	Key []string
	// After is made after the load, and nil for most tables.
	After        *Index
	Distribution Distribution
	// Rows are how many rows a new database has for each warehouse; those of item are for all. Those
	// of order_line are an average: an order has 5 to 15.
	Rows int
}

// byWarehouse spreads a table by its warehouse.
func byWarehouse(column string) Distribution {
	return Distribution{Column: column, With: "warehouse"}
}

// Tables returns the nine tables. Their keys and the order of the keys' columns are HammerDB's, since
// plans depend on them: that of stock has the item first. Columns without padding between them come
// first.
func Tables() []Table {
	return []Table{warehouse(), district(), customer(), history(), orders(), newOrder(), orderLine(), stock(), item()}
}

// Named returns the table of this name, or false.
func Named(name string) (Table, bool) {
	for _, t := range Tables() {
		if t.Name == name {
			return t, true
		}
	}
	return Table{}, false
}

// Options vary the DDL.
type Options struct {
	Schema     string // as SQL has it, in quotes if it needs them
	Unlogged   bool
	Fillfactor int // of the tables, 10 to 100; 0 leaves it to the server
}

// Create returns the statement that makes the table.
func (t Table) Create(o Options) string {
	var b strings.Builder
	b.WriteString("CREATE ")
	if o.Unlogged {
		b.WriteString("UNLOGGED ")
	}
	fmt.Fprintf(&b, "TABLE %s.%s (\n", o.Schema, t.Name)
	var lines []string
	for _, c := range t.Columns {
		line := "    " + c.Name + " " + c.Type
		if !c.Nullable {
			line += " NOT NULL"
		}
		lines = append(lines, line)
	}
	if len(t.Key) > 0 {
		lines = append(lines, "    PRIMARY KEY ("+strings.Join(t.Key, ", ")+")")
	}
	b.WriteString(strings.Join(lines, ",\n"))
	b.WriteString("\n)")
	if o.Fillfactor > 0 {
		fmt.Fprintf(&b, " WITH (fillfactor = %d)", o.Fillfactor)
	}
	return b.String()
}

// CreateAfter returns the statement that makes the index which comes after the load, or "".
func (t Table) CreateAfter(o Options) string {
	if t.After == nil {
		return ""
	}
	return fmt.Sprintf("CREATE UNIQUE INDEX %s ON %s.%s (%s)", t.After.Name, o.Schema, t.Name, strings.Join(t.After.Columns, ", "))
}

// Copy returns the statement that loads the table from a binary stream with all columns in their
// order.
func (t Table) Copy(schema string) string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return fmt.Sprintf("COPY %s.%s (%s) FROM STDIN (FORMAT binary)", schema, t.Name, strings.Join(names, ", "))
}

// Rows returns about how many rows a new database has. Only order_line makes it uncertain.
func Rows(warehouses int) int64 {
	sum := int64(0)
	for _, t := range Tables() {
		if t.Distribution.Reference {
			sum += int64(t.Rows)
		} else {
			sum += int64(t.Rows) * int64(warehouses)
		}
	}
	return sum
}

const lines = form.Districts * form.Orders * (form.MinLines + form.MaxLines) / 2
