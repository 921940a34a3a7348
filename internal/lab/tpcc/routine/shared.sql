-- An order status is alike in both modes.

CREATE PROCEDURE lab.ostat(
    in_w integer, in_d integer, INOUT io_c integer, in_by_name integer,
    INOUT io_last varchar, INOUT out_first varchar, INOUT out_middle varchar, INOUT out_balance numeric,
    INOUT out_order integer, INOUT out_entered timestamptz, INOUT out_carrier integer, INOUT out_lines text
) LANGUAGE plpgsql AS $$
DECLARE
    v_namesakes integer;
    namesakes CURSOR FOR
        SELECT c_id, c_first, c_middle, c_balance
        FROM lab.customer WHERE c_w_id = in_w AND c_d_id = in_d AND c_last = io_last
        ORDER BY c_first;
BEGIN
    IF in_by_name = 1 THEN
        SELECT count(c_id) INTO v_namesakes
        FROM lab.customer WHERE c_w_id = in_w AND c_d_id = in_d AND c_last = io_last;
        OPEN namesakes;
        FOR n IN 1 .. (v_namesakes + 1) / 2 LOOP
            FETCH namesakes INTO io_c, out_first, out_middle, out_balance;
        END LOOP;
        CLOSE namesakes;
    ELSE
        SELECT c_last, c_first, c_middle, c_balance INTO io_last, out_first, out_middle, out_balance
        FROM lab.customer WHERE c_w_id = in_w AND c_d_id = in_d AND c_id = io_c;
    END IF;

    SELECT o_id, o_carrier_id, o_entry_d INTO out_order, out_carrier, out_entered
    FROM lab.orders WHERE o_w_id = in_w AND o_d_id = in_d AND o_c_id = io_c
    ORDER BY o_id DESC LIMIT 1;

    SELECT string_agg(concat_ws(' ', ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d), ',') INTO out_lines
    FROM lab.order_line WHERE ol_w_id = in_w AND ol_d_id = in_d AND ol_o_id = out_order;
EXCEPTION WHEN serialization_failure OR deadlock_detected OR no_data_found THEN
    RAISE;
END;
$$;
