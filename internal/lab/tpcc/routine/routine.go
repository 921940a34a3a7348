// Package routine has the server's side of the workload: the five transactions as procedures. In its
// files lab stands for the schema. It does no I/O.
package routine

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	"howdah/internal/lab/tpcc/form"
)

//go:embed compatible.sql
var compatible string

//go:embed specification.sql
var specification string

//go:embed shared.sql
var shared string

// schemaName is what stands for the schema in SQL of this driver.
var schemaName = regexp.MustCompile(`\blab\.`)

// In returns SQL with the schema in place of lab. The schema is as SQL has it.
func In(schema, sql string) string { return schemaName.ReplaceAllString(sql, schema+".") }

// SQL returns the statements that make the routines of a mode, for one simple query. The schema is as
// SQL has it.
func SQL(mode form.Mode, schema string) (string, error) {
	own := compatible
	if mode == form.Specification {
		own = specification
	}
	parsed, err := template.New(string(mode)).Parse(own + "\n" + shared)
	if err != nil {
		return "", fmt.Errorf("read the routines of the %s mode: %w", mode, err)
	}
	// The columns of stock have the number of a district in their names.
	districts := map[int]string{}
	for d := 1; d <= form.Districts; d++ {
		districts[d] = fmt.Sprintf("s_dist_%02d", d)
	}
	var b strings.Builder
	err = parsed.Execute(&b, map[string]any{"Districts": districts, "Unused": form.Unused, "UnusedItem": form.UnusedItem, "Items": form.Items})
	if err != nil {
		return "", fmt.Errorf("fill in the routines of the %s mode: %w", mode, err)
	}
	return In(schema, b.String()), nil
}

// Dist returns the expression for the stock's text of a district, whose number an expression gives.
func Dist(district string) string {
	var b strings.Builder
	b.WriteString("CASE " + district)
	for d := 1; d <= form.Districts; d++ {
		fmt.Fprintf(&b, " WHEN %d THEN s_dist_%02d", d, d)
	}
	return b.String() + " END"
}

// Names are the routines of both modes, and those that only one has.
func Names() []string { return []string{"neword", "payment", "delivery", "ostat", "slev", "pick"} }
