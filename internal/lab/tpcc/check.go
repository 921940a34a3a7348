package tpcc

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"howdah/internal/lab/tpcc/routine"
)

// Condition is a consistency condition of clause 3.3.2 and what was found of it.
type Condition struct {
	Number     int    `json:"number"` // in clause 3.3.2
	Text       string `json:"text"`
	Checked    int64  `json:"checked"` // warehouses or districts
	Violations int64  `json:"violations"`
	// Examples are up to five violations, as JSON objects: w and d are the warehouse and the district,
	// the others what should agree.
	Examples []string `json:"examples,omitempty"`
}

// Holds is whether there was something to check, and all of it was right. Unlogged tables are empty
// after a crash, and then nothing holds.
func (c Condition) Holds() bool { return c.Checked > 0 && c.Violations == 0 }

// condition is how a condition is checked.
type condition struct {
	number int
	text   string
	sql    string // rows with wrong, and what is shown of them
}

// conditions are those that hold after a run in both modes. HammerDB's data break the others from the
// start.
var conditions = []condition{
	{1, "a warehouse has taken in what its districts have", `
		SELECT w_id AS w, w_ytd AS warehouse, district.sum AS districts, w_ytd IS DISTINCT FROM district.sum AS wrong
		FROM lab.warehouse LEFT JOIN (SELECT d_w_id, sum(d_ytd) FROM lab.district GROUP BY d_w_id) AS district ON d_w_id = w_id`},
	{2, "the next order of a district follows its last one, and its last undelivered one if there is one", `
		SELECT d_w_id AS w, d_id AS d, d_next_o_id AS next, o.max AS order, n.max AS new_order,
			d_next_o_id - 1 IS DISTINCT FROM o.max OR n.max <> o.max AS wrong
		FROM lab.district
			LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) FROM lab.orders GROUP BY o_w_id, o_d_id) AS o
				ON o_w_id = d_w_id AND o_d_id = d_id
			LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) FROM lab.new_order GROUP BY no_w_id, no_d_id) AS n
				ON no_w_id = d_w_id AND no_d_id = d_id`},
	{3, "the undelivered orders of a district follow each other without a gap", `
		SELECT d_w_id AS w, d_id AS d, n.min AS first, n.max AS last, n.count AS count, n.max - n.min + 1 <> n.count AS wrong
		FROM lab.district
			LEFT JOIN (SELECT no_w_id, no_d_id, min(no_o_id), max(no_o_id), count(*) FROM lab.new_order GROUP BY no_w_id, no_d_id) AS n
				ON no_w_id = d_w_id AND no_d_id = d_id`},
	{4, "the orders of a district have as many lines as they say", `
		SELECT d_w_id AS w, d_id AS d, o.sum AS said, l.count AS lines, o.sum IS DISTINCT FROM l.count AS wrong
		FROM lab.district
			LEFT JOIN (SELECT o_w_id, o_d_id, sum(o_ol_cnt) FROM lab.orders GROUP BY o_w_id, o_d_id) AS o
				ON o_w_id = d_w_id AND o_d_id = d_id
			LEFT JOIN (SELECT ol_w_id, ol_d_id, count(*) FROM lab.order_line GROUP BY ol_w_id, ol_d_id) AS l
				ON ol_w_id = d_w_id AND ol_d_id = d_id`},
	{8, "a warehouse has taken in what its history says", `
		SELECT w_id AS w, w_ytd AS warehouse, h.sum AS history, w_ytd IS DISTINCT FROM h.sum AS wrong
		FROM lab.warehouse LEFT JOIN (SELECT h_w_id, sum(h_amount) FROM lab.history GROUP BY h_w_id) AS h ON h_w_id = w_id`},
	{9, "a district has taken in what its history says", `
		SELECT d_w_id AS w, d_id AS d, d_ytd AS district, h.sum AS history, d_ytd IS DISTINCT FROM h.sum AS wrong
		FROM lab.district
			LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) FROM lab.history GROUP BY h_w_id, h_d_id) AS h
				ON h_w_id = d_w_id AND h_d_id = d_id`},
}

// countSQL counts the rows of a condition, and keeps some of the wrong ones.
const countSQL = `
	SELECT count(*), count(*) FILTER (WHERE wrong),
		coalesce((array_agg((to_jsonb(found) - 'wrong')::text) FILTER (WHERE wrong))[1:5], '{}')
	FROM (%s) AS found`

// Check compares the database with consistency conditions 1 to 4, 8 and 9 of clause 3.3.2, at one
// moment. A condition that does not hold is no error. It reads most of the database.
func Check(ctx context.Context, conn *pgx.Conn, schema string) ([]Condition, error) {
	about, err := Look(ctx, conn, schema)
	if err == nil && about.Finished.IsZero() {
		err = ErrUnfinished
	}
	if err != nil {
		return nil, err
	}
	if schema == "" {
		schema = DefaultSchema
	}
	var all []Condition
	moment := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, conn, moment, func(tx pgx.Tx) error {
		for _, c := range conditions {
			found, err := check(ctx, tx, quoted(schema), c)
			if err != nil {
				return err
			}
			all = append(all, found)
		}
		return nil
	})
	return all, err
}

func check(ctx context.Context, tx pgx.Tx, schema string, c condition) (Condition, error) {
	found := Condition{Number: c.number, Text: c.text}
	sql := fmt.Sprintf(countSQL, routine.In(schema, c.sql))
	if err := tx.QueryRow(ctx, sql).Scan(&found.Checked, &found.Violations, &found.Examples); err != nil {
		return found, fmt.Errorf("check condition %d: %w", c.number, err)
	}
	return found, nil
}
