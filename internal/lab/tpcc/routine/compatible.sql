-- The compatible mode: each procedure does the work that HammerDB's of the same name does, with as many statements of
-- the same kind. What is dear in them is kept: draws inside of the new order, and an exception block, which is a
-- subtransaction for each call. The handlers raise the error again, so that its SQLSTATE reaches the client.

-- pick draws an integer from low to high.
CREATE FUNCTION lab.pick(low integer, high integer) RETURNS integer LANGUAGE plpgsql STRICT AS $$
BEGIN
    RETURN trunc(low + random() * (high - low + 1));
END;
$$;

-- One order in a hundred asks for an item that is not there. It is not rolled back: its line has neither amount nor
-- text. Lines that name an item twice leave one more without them. Both are HammerDB's results, and cost as much.
CREATE PROCEDURE lab.neword(
    in_w integer, in_warehouses integer, in_d integer, in_c integer, in_lines integer,
    INOUT out_discount numeric, INOUT out_last varchar, INOUT out_credit varchar,
    INOUT out_d_tax numeric, INOUT out_w_tax numeric, INOUT out_order integer,
    in_at timestamptz
) LANGUAGE plpgsql AS $$
DECLARE
    v_unused boolean := lab.pick(1, 100) = 1;
    v_all_local smallint := 1;
    v_numbers smallint[];
    v_items integer[];
    v_supplies integer[];
    v_quantities smallint[];
    v_prices numeric[];
    v_amounts numeric[];
    v_infos varchar[];
    v_total numeric := 0;
BEGIN
    SELECT c_discount, c_last, c_credit, w_tax INTO out_discount, out_last, out_credit, out_w_tax
    FROM lab.customer JOIN lab.warehouse ON w_id = c_w_id
    WHERE c_w_id = in_w AND c_d_id = in_d AND c_id = in_c;

    FOR n IN 1 .. in_lines LOOP
        v_numbers[n] := n;
        IF v_unused AND n = in_lines THEN
            v_items[n] := {{.UnusedItem}};
        ELSE
            v_items[n] := lab.pick(1, {{.Items}});
        END IF;
        IF lab.pick(1, 100) > 1 THEN
            v_supplies[n] := in_w;
        ELSE
            -- It may be the home warehouse again.
            v_supplies[n] := 1 + (in_w + lab.pick(0, in_warehouses - 1)) % in_warehouses;
            v_all_local := 0;
        END IF;
        v_quantities[n] := lab.pick(1, 10);
    END LOOP;

    UPDATE lab.district SET d_next_o_id = d_next_o_id + 1
    WHERE d_w_id = in_w AND d_id = in_d
    RETURNING d_next_o_id - 1, d_tax INTO out_order, out_d_tax;

    INSERT INTO lab.orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
    VALUES (out_order, in_d, in_w, in_c, in_at, in_lines, v_all_local);

    INSERT INTO lab.new_order (no_o_id, no_d_id, no_w_id) VALUES (out_order, in_d, in_w);

    SELECT array_agg(i_price) INTO v_prices
    FROM unnest(v_items) AS line(item) LEFT JOIN lab.item ON i_id = line.item;
{{range $d, $info := .Districts}}
    {{if eq $d 1}}IF{{else}}ELSIF{{end}} in_d = {{$d}} THEN
        WITH changed AS (
            UPDATE lab.stock SET s_quantity =
                s_quantity - line.quantity + CASE WHEN s_quantity >= line.quantity + 10 THEN 0 ELSE 91 END
            FROM unnest(v_items, v_supplies, v_quantities, v_prices) AS line(item, supply, quantity, price)
            WHERE s_i_id = line.item AND s_w_id = line.supply AND s_w_id = ANY (v_supplies)
            RETURNING {{$info}} AS info, line.quantity * line.price AS amount)
        SELECT array_agg(info), array_agg(amount) INTO v_infos, v_amounts FROM changed;{{end}}
    END IF;

    INSERT INTO lab.order_line
        (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info)
    SELECT out_order, in_d, in_w, line.number, line.item, line.supply, line.quantity, line.amount, line.info
    FROM unnest(v_numbers, v_items, v_supplies, v_quantities, v_amounts, v_infos)
        AS line(number, item, supply, quantity, amount, info);

    FOR n IN 1 .. in_lines LOOP
        v_total := v_total + v_amounts[n];
    END LOOP;
    v_total := v_total * (1 + out_w_tax + out_d_tax) * (1 - out_discount);
EXCEPTION WHEN serialization_failure OR deadlock_detected OR no_data_found THEN
    RAISE;
END;
$$;

CREATE PROCEDURE lab.payment(
    in_w integer, in_d integer, in_c_w integer, in_c_d integer, INOUT io_c integer, in_by_name integer, in_amount numeric,
    INOUT io_last varchar,
    INOUT out_w_street_1 varchar, INOUT out_w_street_2 varchar, INOUT out_w_city varchar, INOUT out_w_state varchar,
    INOUT out_w_zip varchar,
    INOUT out_d_street_1 varchar, INOUT out_d_street_2 varchar, INOUT out_d_city varchar, INOUT out_d_state varchar,
    INOUT out_d_zip varchar,
    INOUT out_first varchar, INOUT out_middle varchar, INOUT out_street_1 varchar, INOUT out_street_2 varchar,
    INOUT out_city varchar, INOUT out_state varchar, INOUT out_zip varchar, INOUT out_phone varchar,
    INOUT out_since timestamptz, INOUT out_credit varchar, INOUT out_credit_lim numeric, INOUT out_discount numeric,
    INOUT out_balance numeric, INOUT out_data varchar,
    in_at timestamptz
) LANGUAGE plpgsql AS $$
DECLARE
    v_w_name varchar;
    v_d_name varchar;
    v_namesakes integer;
    namesakes CURSOR FOR
        SELECT c_id, c_first, c_middle, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit,
            c_credit_lim, c_discount, c_balance
        FROM lab.customer WHERE c_w_id = in_c_w AND c_d_id = in_c_d AND c_last = io_last
        ORDER BY c_first;
BEGIN
    UPDATE lab.warehouse SET w_ytd = w_ytd + in_amount WHERE w_id = in_w
    RETURNING w_street_1, w_street_2, w_city, w_state, w_zip, w_name
    INTO out_w_street_1, out_w_street_2, out_w_city, out_w_state, out_w_zip, v_w_name;

    UPDATE lab.district SET d_ytd = d_ytd + in_amount WHERE d_w_id = in_w AND d_id = in_d
    RETURNING d_street_1, d_street_2, d_city, d_state, d_zip, d_name
    INTO out_d_street_1, out_d_street_2, out_d_city, out_d_state, out_d_zip, v_d_name;

    IF in_by_name = 1 THEN
        SELECT count(c_id) INTO v_namesakes
        FROM lab.customer WHERE c_w_id = in_c_w AND c_d_id = in_c_d AND c_last = io_last;
        OPEN namesakes;
        FOR n IN 1 .. (v_namesakes + 1) / 2 LOOP
            FETCH namesakes INTO io_c, out_first, out_middle, out_street_1, out_street_2, out_city, out_state, out_zip,
                out_phone, out_since, out_credit, out_credit_lim, out_discount, out_balance;
        END LOOP;
        CLOSE namesakes;
    ELSE
        SELECT c_last, c_first, c_middle, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit,
            c_credit_lim, c_discount, c_balance
        INTO io_last, out_first, out_middle, out_street_1, out_street_2, out_city, out_state, out_zip, out_phone,
            out_since, out_credit, out_credit_lim, out_discount, out_balance
        FROM lab.customer WHERE c_w_id = in_c_w AND c_d_id = in_c_d AND c_id = io_c;
    END IF;

    IF out_credit = 'BC' THEN
        UPDATE lab.customer SET c_balance = c_balance - in_amount,
            c_data = left(concat_ws(' ', io_c, in_c_d, in_c_w, in_d, in_w, in_amount, in_at, v_w_name, v_d_name, c_data), 500)
        WHERE c_w_id = in_c_w AND c_d_id = in_c_d AND c_id = io_c
        RETURNING c_balance, c_data INTO out_balance, out_data;
    ELSE
        UPDATE lab.customer SET c_balance = c_balance - in_amount
        WHERE c_w_id = in_c_w AND c_d_id = in_c_d AND c_id = io_c
        RETURNING c_balance, '' INTO out_balance, out_data;
    END IF;

    INSERT INTO lab.history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    VALUES (in_c_d, in_c_w, io_c, in_d, in_w, in_at, in_amount, v_w_name || '    ' || v_d_name);
EXCEPTION WHEN serialization_failure OR deadlock_detected OR no_data_found THEN
    RAISE;
END;
$$;

-- The ten districts are delivered together. What a statement returns has no order, so districts go along.
CREATE PROCEDURE lab.delivery(in_w integer, in_carrier integer, in_at timestamptz) LANGUAGE plpgsql AS $$
DECLARE
    v_all smallint[] := ARRAY[{{range $d, $info := .Districts}}{{if ne $d 1}}, {{end}}{{$d}}{{end}}];
    v_districts smallint[];
    v_orders integer[];
    v_buyer_districts smallint[];
    v_buyers integer[];
    v_bill_districts smallint[];
    v_bills numeric[];
BEGIN
    WITH gone AS (
        DELETE FROM lab.new_order USING unnest(v_all) AS the(district)
        WHERE no_w_id = in_w AND no_d_id = the.district AND no_o_id = (
            SELECT min(oldest.no_o_id) FROM lab.new_order AS oldest
            WHERE oldest.no_w_id = in_w AND oldest.no_d_id = the.district)
        RETURNING no_d_id, no_o_id)
    SELECT array_agg(no_d_id), array_agg(no_o_id) INTO v_districts, v_orders FROM gone;

    WITH sent AS (
        UPDATE lab.orders SET o_carrier_id = in_carrier
        FROM unnest(v_districts, v_orders) AS the(district, number)
        WHERE o_w_id = in_w AND o_d_id = the.district AND o_id = the.number
        RETURNING o_d_id, o_c_id)
    SELECT array_agg(o_d_id), array_agg(o_c_id) INTO v_buyer_districts, v_buyers FROM sent;

    WITH sent AS (
        UPDATE lab.order_line SET ol_delivery_d = in_at
        FROM unnest(v_districts, v_orders) AS the(district, number)
        WHERE ol_w_id = in_w AND ol_d_id = the.district AND ol_o_id = the.number
        RETURNING ol_d_id, ol_amount),
    bill AS (SELECT ol_d_id, sum(ol_amount) AS amount FROM sent GROUP BY ol_d_id)
    SELECT array_agg(ol_d_id), array_agg(amount) INTO v_bill_districts, v_bills FROM bill;

    UPDATE lab.customer SET c_balance = c_balance + coalesce(bill.amount, 0)
    FROM unnest(v_buyer_districts, v_buyers) AS buyer(district, customer)
        JOIN unnest(v_bill_districts, v_bills) AS bill(district, amount) ON bill.district = buyer.district
    WHERE c_w_id = in_w AND c_d_id = buyer.district AND c_id = buyer.customer;
EXCEPTION WHEN serialization_failure OR deadlock_detected OR no_data_found THEN
    RAISE;
END;
$$;

-- One statement joins all three tables. Its plan turns bad at times, and then takes a hundred times as long: versions of
-- the few districts pile up while a vacuum or an analyze of a large table runs, and the planner takes them for more
-- districts. That is HammerDB's way, and so are the runs that it spoils: their stock levels have a p95 that is far above
-- the p50.
CREATE PROCEDURE lab.slev(in_w integer, in_d integer, in_threshold integer, INOUT out_low integer) LANGUAGE plpgsql AS $$
BEGIN
    SELECT count(DISTINCT s_i_id) INTO out_low
    FROM lab.district
        JOIN lab.order_line ON ol_w_id = d_w_id AND ol_d_id = d_id AND ol_o_id < d_next_o_id AND ol_o_id >= d_next_o_id - 20
        JOIN lab.stock ON s_w_id = d_w_id AND s_i_id = ol_i_id
    WHERE d_w_id = in_w AND d_id = in_d AND s_quantity < in_threshold;
END;
$$;
