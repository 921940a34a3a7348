-- The specification mode: what clauses 2.4 to 2.8 say. The terminal draws all that is random.

-- An item that is not there ends the order with a SQLSTATE of its own. It comes last, when all other lines are done.
CREATE PROCEDURE lab.neword(
    in_w integer, in_d integer, in_c integer, in_items integer[], in_supplies integer[], in_quantities integer[],
    INOUT out_discount numeric, INOUT out_last varchar, INOUT out_credit varchar,
    INOUT out_d_tax numeric, INOUT out_w_tax numeric, INOUT out_order integer, INOUT out_total numeric, INOUT out_brands text,
    in_at timestamptz
) LANGUAGE plpgsql AS $$
DECLARE
    v_lines integer := cardinality(in_items);
    v_amount numeric;
    v_info varchar;
    v_original boolean;
BEGIN
    SELECT c_discount, c_last, c_credit, w_tax INTO out_discount, out_last, out_credit, out_w_tax
    FROM lab.customer JOIN lab.warehouse ON w_id = c_w_id
    WHERE c_w_id = in_w AND c_d_id = in_d AND c_id = in_c;

    UPDATE lab.district SET d_next_o_id = d_next_o_id + 1
    WHERE d_w_id = in_w AND d_id = in_d
    RETURNING d_next_o_id - 1, d_tax INTO out_order, out_d_tax;

    INSERT INTO lab.orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
    VALUES (out_order, in_d, in_w, in_c, in_at, v_lines, (in_w = ALL (in_supplies))::integer);

    INSERT INTO lab.new_order (no_o_id, no_d_id, no_w_id) VALUES (out_order, in_d, in_w);

    out_total := 0;
    out_brands := '';
    FOR n IN 1 .. v_lines LOOP
        UPDATE lab.stock SET
            s_quantity = s_quantity - in_quantities[n] + CASE WHEN s_quantity >= in_quantities[n] + 10 THEN 0 ELSE 91 END,
            s_ytd = s_ytd + in_quantities[n], s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + (s_w_id <> in_w)::integer
        FROM lab.item
        WHERE i_id = in_items[n] AND s_i_id = in_items[n] AND s_w_id = in_supplies[n]
        RETURNING in_quantities[n] * i_price, i_data LIKE '%ORIGINAL%' AND s_data LIKE '%ORIGINAL%',
            CASE in_d{{range $d, $info := .Districts}} WHEN {{$d}} THEN {{$info}}{{end}} END
        INTO v_amount, v_original, v_info;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'item % is not there', in_items[n] USING ERRCODE = '{{.Unused}}';
        END IF;
        INSERT INTO lab.order_line
            (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info)
        VALUES (out_order, in_d, in_w, n, in_items[n], in_supplies[n], in_quantities[n], v_amount, v_info);
        out_total := out_total + v_amount;
        out_brands := out_brands || CASE WHEN v_original THEN 'B' ELSE 'G' END;
    END LOOP;
    out_total := out_total * (1 + out_w_tax + out_d_tax) * (1 - out_discount);
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
BEGIN
    UPDATE lab.warehouse SET w_ytd = w_ytd + in_amount WHERE w_id = in_w
    RETURNING w_street_1, w_street_2, w_city, w_state, w_zip, w_name
    INTO out_w_street_1, out_w_street_2, out_w_city, out_w_state, out_w_zip, v_w_name;

    UPDATE lab.district SET d_ytd = d_ytd + in_amount WHERE d_w_id = in_w AND d_id = in_d
    RETURNING d_street_1, d_street_2, d_city, d_state, d_zip, d_name
    INTO out_d_street_1, out_d_street_2, out_d_city, out_d_state, out_d_zip, v_d_name;

    IF in_by_name = 1 THEN
        SELECT c_id INTO io_c FROM lab.customer WHERE c_w_id = in_c_w AND c_d_id = in_c_d AND c_last = io_last
        ORDER BY c_first
        OFFSET (SELECT (count(*) + 1) / 2 - 1 FROM lab.customer WHERE c_w_id = in_c_w AND c_d_id = in_c_d AND c_last = io_last)
        LIMIT 1;
    END IF;

    UPDATE lab.customer SET c_balance = c_balance - in_amount, c_ytd_payment = c_ytd_payment + in_amount,
        c_payment_cnt = c_payment_cnt + 1,
        c_data = CASE c_credit
            WHEN 'BC' THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, in_d, in_w, in_amount, c_data), 500)
            ELSE c_data END
    WHERE c_w_id = in_c_w AND c_d_id = in_c_d AND c_id = io_c
    RETURNING c_last, c_first, c_middle, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit,
        c_credit_lim, c_discount, c_balance, CASE c_credit WHEN 'BC' THEN left(c_data, 200) ELSE '' END
    INTO io_last, out_first, out_middle, out_street_1, out_street_2, out_city, out_state, out_zip, out_phone, out_since,
        out_credit, out_credit_lim, out_discount, out_balance, out_data;

    INSERT INTO lab.history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    VALUES (in_c_d, in_c_w, io_c, in_d, in_w, in_at, in_amount, v_w_name || '    ' || v_d_name);
END;
$$;

-- A district whose orders are all delivered is skipped. Whoever waits for the oldest order of a district, and finds it
-- delivered, gets the next one.
CREATE PROCEDURE lab.delivery(in_w integer, in_carrier integer, INOUT out_skipped integer, in_at timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
    v_order integer;
    v_buyer integer;
    v_bill numeric;
BEGIN
    out_skipped := 0;
    FOR d IN 1 .. {{len .Districts}} LOOP
        SELECT no_o_id INTO v_order FROM lab.new_order WHERE no_w_id = in_w AND no_d_id = d
        ORDER BY no_o_id LIMIT 1 FOR UPDATE;
        IF NOT FOUND THEN
            out_skipped := out_skipped + 1;
            CONTINUE;
        END IF;
        DELETE FROM lab.new_order WHERE no_w_id = in_w AND no_d_id = d AND no_o_id = v_order;
        UPDATE lab.orders SET o_carrier_id = in_carrier WHERE o_w_id = in_w AND o_d_id = d AND o_id = v_order
        RETURNING o_c_id INTO v_buyer;
        WITH sent AS (
            UPDATE lab.order_line SET ol_delivery_d = in_at WHERE ol_w_id = in_w AND ol_d_id = d AND ol_o_id = v_order
            RETURNING ol_amount)
        SELECT sum(ol_amount) INTO v_bill FROM sent;
        UPDATE lab.customer SET c_balance = c_balance + v_bill, c_delivery_cnt = c_delivery_cnt + 1
        WHERE c_w_id = in_w AND c_d_id = d AND c_id = v_buyer;
    END LOOP;
END;
$$;

-- The next order is read first. So the planner knows that twenty orders are asked for, whatever it takes the district for.
CREATE PROCEDURE lab.slev(in_w integer, in_d integer, in_threshold integer, INOUT out_low integer) LANGUAGE plpgsql AS $$
DECLARE
    v_next integer;
BEGIN
    SELECT d_next_o_id INTO v_next FROM lab.district WHERE d_w_id = in_w AND d_id = in_d;
    SELECT count(DISTINCT s_i_id) INTO out_low
    FROM lab.order_line JOIN lab.stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
    WHERE ol_w_id = in_w AND ol_d_id = in_d AND ol_o_id < v_next AND ol_o_id >= v_next - 20 AND s_quantity < in_threshold;
END;
$$;
