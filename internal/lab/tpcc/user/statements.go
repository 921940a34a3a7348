package user

import (
	"howdah/internal/lab/tpcc/form"
	"howdah/internal/lab/tpcc/routine"
)

// common are the statements that both modes have.
var common = map[string]string{
	"buyer": `SELECT c_discount, c_last, c_credit, w_tax FROM lab.customer JOIN lab.warehouse ON w_id = c_w_id
		WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3`,
	"take_number": `UPDATE lab.district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2
		RETURNING d_next_o_id - 1, d_tax`,
	"put_order": `INSERT INTO lab.orders (o_w_id, o_d_id, o_id, o_c_id, o_ol_cnt, o_all_local, o_entry_d)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
	"put_new_order": `INSERT INTO lab.new_order (no_w_id, no_d_id, no_o_id) VALUES ($1, $2, $3)`,
	"put_lines": `INSERT INTO lab.order_line
			(ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info)
		SELECT $1::integer, $2::integer, $3::integer, line.number, line.item, line.supply, line.quantity, line.amount, line.info
		FROM unnest($4::integer[], $5::integer[], $6::smallint[], $7::numeric[], $8::varchar[])
			WITH ORDINALITY AS line(item, supply, quantity, amount, info, number)`,
	"prices": `SELECT line.number, i_price FROM unnest($1::integer[]) WITH ORDINALITY AS line(item, number)
		JOIN lab.item ON i_id = line.item`,
	"pay_warehouse": `UPDATE lab.warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1
		RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip`,
	"pay_district": `UPDATE lab.district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2
		RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip`,
	"put_history": `INSERT INTO lab.history (h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_amount, h_date, h_data)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
	"oldest": `SELECT no_o_id FROM lab.new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1 FOR UPDATE`,
	"remove": `DELETE FROM lab.new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3`,
	"send":   `UPDATE lab.orders SET o_carrier_id = $4 WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 RETURNING o_c_id`,
	"send_lines": `WITH sent AS (
			UPDATE lab.order_line SET ol_delivery_d = $4 WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3
			RETURNING ol_amount)
		SELECT coalesce(sum(ol_amount), 0) FROM sent`,
	"namesakes": `SELECT c_id, c_first, c_middle, c_balance FROM lab.customer
		WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first`,
	"customer": `SELECT c_id, c_first, c_middle, c_balance, c_last FROM lab.customer
		WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3`,
	"latest": `SELECT o_id, o_entry_d, o_carrier_id FROM lab.orders
		WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 ORDER BY o_id DESC LIMIT 1`,
	"lines": `SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM lab.order_line
		WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3`,
	"next_number": `SELECT d_next_o_id FROM lab.district WHERE d_w_id = $1 AND d_id = $2`,
	"low": `SELECT count(DISTINCT s_i_id) FROM lab.order_line JOIN lab.stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
		WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id < $3 AND ol_o_id >= $3 - 20 AND s_quantity < $4`,
}

// payReturning is what the terminal shows of a customer who paid.
const payReturning = `
	WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3
	RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit,
		c_credit_lim, c_discount, c_balance, CASE c_credit WHEN 'BC' THEN left(c_data, 200) END`

// own are the statements in which the modes differ: the compatible mode keeps no counters, and
// changes all stock of an order at once.
var own = map[form.Mode]map[string]string{
	form.Compatible: {
		"take_all": `UPDATE lab.stock SET s_quantity =
				s_quantity - line.quantity + CASE WHEN s_quantity >= line.quantity + 10 THEN 0 ELSE 91 END
			FROM unnest($1::integer[], $2::integer[], $3::smallint[]) WITH ORDINALITY AS line(item, supply, quantity, number)
			WHERE s_i_id = line.item AND s_w_id = line.supply AND s_w_id = ANY ($2::integer[])
			RETURNING line.number, ` + routine.Dist("$4::integer"),
		"pay": `UPDATE lab.customer SET c_balance = c_balance - $6,
			c_data = CASE c_credit
				WHEN 'BC' THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, $5::integer, $4::integer, $6::numeric, c_data), 500)
				ELSE c_data END` + payReturning,
		"credit": `UPDATE lab.customer SET c_balance = c_balance + $4 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3`,
	},
	form.Specification: {
		"take": `UPDATE lab.stock SET
				s_quantity = s_quantity - $3::integer + CASE WHEN s_quantity >= $3::integer + 10 THEN 0 ELSE 91 END,
				s_ytd = s_ytd + $3::integer, s_order_cnt = s_order_cnt + 1,
				s_remote_cnt = s_remote_cnt + (s_w_id <> $4::integer)::integer
			FROM lab.item
			WHERE i_id = $1 AND s_i_id = $1 AND s_w_id = $2
			RETURNING $3::integer * i_price, ` + routine.Dist("$5::integer") + `,
				i_data LIKE '%ORIGINAL%' AND s_data LIKE '%ORIGINAL%'`,
		"pay": `UPDATE lab.customer SET c_balance = c_balance - $6, c_ytd_payment = c_ytd_payment + $6,
			c_payment_cnt = c_payment_cnt + 1,
			c_data = CASE c_credit
				WHEN 'BC' THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, $5::integer, $4::integer, $6::numeric, c_data), 500)
				ELSE c_data END` + payReturning,
		"credit": `UPDATE lab.customer SET c_balance = c_balance + $4, c_delivery_cnt = c_delivery_cnt + 1
			WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3`,
	},
}

// statements returns what a session prepares, by name.
func statements(schema string, mode form.Mode) map[string]string {
	all := map[string]string{}
	for _, some := range []map[string]string{common, own[mode]} {
		for name, sql := range some {
			all[name] = routine.In(schema, sql)
		}
	}
	return all
}
