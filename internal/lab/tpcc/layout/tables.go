package layout

import (
	"fmt"

	"howdah/internal/lab/tpcc/form"
)

// must makes columns that are never null: names and types alternate.
func must(namesAndTypes ...string) (all []Column) {
	for i := 0; i+1 < len(namesAndTypes); i += 2 {
		all = append(all, Column{Name: namesAndTypes[i], Type: namesAndTypes[i+1]})
	}
	return all
}

// may makes columns that may be null.
func may(namesAndTypes ...string) []Column {
	all := must(namesAndTypes...)
	for i := range all {
		all[i].Nullable = true
	}
	return all
}

func join(parts ...[]Column) (all []Column) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// address is what four tables begin their texts with.
func address(prefix string) []Column {
	return must(
		prefix+"_street_1", "varchar(20)", prefix+"_street_2", "varchar(20)", prefix+"_city", "varchar(20)",
		prefix+"_state", "char(2)", prefix+"_zip", "char(9)")
}

func warehouse() Table {
	return Table{
		Name: "warehouse", Key: []string{"w_id"}, Rows: 1, Distribution: byWarehouse("w_id"),
		Columns: join(
			must("w_id", "integer", "w_ytd", "numeric(16,2)", "w_tax", "numeric(4,4)", "w_name", "varchar(10)"),
			address("w")),
	}
}

func district() Table {
	return Table{
		Name: "district", Key: []string{"d_w_id", "d_id"}, Rows: form.Districts, Distribution: byWarehouse("d_w_id"),
		Columns: join(
			must("d_w_id", "integer", "d_next_o_id", "integer", "d_id", "smallint",
				"d_ytd", "numeric(12,2)", "d_tax", "numeric(4,4)", "d_name", "varchar(10)"),
			address("d")),
	}
}

func customer() Table {
	return Table{
		Name: "customer", Key: []string{"c_w_id", "c_d_id", "c_id"}, Rows: form.Districts * form.Customers,
		Distribution: byWarehouse("c_w_id"),
		// Payments and order statuses by name read it in this order.
		After: &Index{Name: "customer_name", Columns: []string{"c_w_id", "c_d_id", "c_last", "c_first", "c_id"}},
		Columns: join(
			must("c_since", "timestamptz", "c_id", "integer", "c_w_id", "integer", "c_d_id", "smallint",
				"c_payment_cnt", "smallint", "c_delivery_cnt", "smallint",
				"c_first", "varchar(16)", "c_middle", "char(2)", "c_last", "varchar(16)"),
			address("c"),
			must("c_phone", "char(16)", "c_credit", "char(2)", "c_credit_lim", "numeric(12,2)", "c_discount", "numeric(4,4)",
				"c_balance", "numeric(12,2)", "c_ytd_payment", "numeric(12,2)", "c_data", "varchar(500)")),
	}
}

func history() Table {
	return Table{
		Name: "history", Rows: form.Districts * form.Customers, Distribution: byWarehouse("h_w_id"),
		Columns: must("h_date", "timestamptz", "h_c_id", "integer", "h_c_w_id", "integer", "h_w_id", "integer",
			"h_c_d_id", "smallint", "h_d_id", "smallint", "h_amount", "numeric(6,2)", "h_data", "varchar(24)"),
	}
}

func orders() Table {
	return Table{
		Name: "orders", Key: []string{"o_w_id", "o_d_id", "o_id"}, Rows: form.Districts * form.Orders,
		Distribution: byWarehouse("o_w_id"),
		// The latest order of a customer is at its end.
		After: &Index{Name: "orders_customer", Columns: []string{"o_w_id", "o_d_id", "o_c_id", "o_id"}},
		Columns: join(
			must("o_entry_d", "timestamptz", "o_id", "integer", "o_w_id", "integer", "o_c_id", "integer", "o_d_id", "smallint"),
			may("o_carrier_id", "smallint"),
			must("o_ol_cnt", "smallint", "o_all_local", "smallint")),
	}
}

func newOrder() Table {
	return Table{
		Name: "new_order", Key: []string{"no_w_id", "no_d_id", "no_o_id"}, Rows: form.Districts * form.Undelivered,
		Distribution: byWarehouse("no_w_id"),
		Columns:      must("no_w_id", "integer", "no_o_id", "integer", "no_d_id", "smallint"),
	}
}

func orderLine() Table {
	return Table{
		Name: "order_line", Key: []string{"ol_w_id", "ol_d_id", "ol_o_id", "ol_number"}, Rows: lines,
		Distribution: byWarehouse("ol_w_id"),
		Columns: join(
			may("ol_delivery_d", "timestamptz"),
			must("ol_o_id", "integer", "ol_w_id", "integer", "ol_i_id", "integer", "ol_supply_w_id", "integer",
				"ol_d_id", "smallint", "ol_number", "smallint", "ol_quantity", "smallint"),
			// The compatible mode commits orders of an item that is not there. Their line has neither.
			may("ol_amount", "numeric(6,2)", "ol_dist_info", "char(24)")),
	}
}

func stock() Table {
	columns := must("s_i_id", "integer", "s_w_id", "integer", "s_ytd", "integer",
		"s_quantity", "smallint", "s_order_cnt", "smallint", "s_remote_cnt", "smallint")
	for d := range form.Districts {
		columns = append(columns, Column{Name: fmt.Sprintf("s_dist_%02d", d+1), Type: "char(24)"})
	}
	return Table{
		Name: "stock", Key: []string{"s_i_id", "s_w_id"}, Rows: form.Items, Distribution: byWarehouse("s_w_id"),
		Columns: join(columns, must("s_data", "varchar(50)")),
	}
}

func item() Table {
	return Table{
		Name: "item", Key: []string{"i_id"}, Rows: form.Items, Distribution: Distribution{Reference: true},
		Columns: must("i_id", "integer", "i_im_id", "integer", "i_name", "varchar(24)", "i_price", "numeric(5,2)", "i_data", "varchar(50)"),
	}
}
