-- slots.sql: functions about slots that members of rds_replication may call.
--
-- The agent of the primary runs it as rdsadmin, in each database that lets somebody
-- in, template1 included, where logical replication is on; running it again changes
-- nothing. Who calls PostgreSQL's own functions needs the attribute REPLICATION, and
-- PostgreSQL calls them by their numbers, whatever pg_proc says. So they get other
-- names, and functions of src/slot.c get theirs, with the same arguments. Views and
-- whatever else was made before goes on to call PostgreSQL's own, and is refused as
-- before. pg_upgrade and dumps leave out what is in pg_catalog.
DO $$
DECLARE
	-- those of slot.c, by the names that PostgreSQL's C code has for them
	names text[] := ARRAY['pg_create_logical_replication_slot',
		'pg_copy_logical_replication_slot_a', 'pg_copy_logical_replication_slot_b', 'pg_copy_logical_replication_slot_c',
		'pg_drop_replication_slot', 'pg_replication_slot_advance',
		'pg_logical_slot_get_changes', 'pg_logical_slot_get_binary_changes',
		'pg_logical_slot_peek_changes', 'pg_logical_slot_peek_binary_changes'];
	own record;
	made text;
BEGIN
	-- the owner of a database may have set it there; the definition is read as text
	PERFORM pg_catalog.set_config('quote_all_identifiers', 'off', true);
	FOR own IN SELECT p.oid, p.proname, p.prosrc, pg_catalog.pg_get_functiondef(p.oid) AS definition
		FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
		WHERE p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace AND p.oid < 16384
			AND l.lanname = 'internal' AND p.prosrc = ANY (names)
			AND pg_catalog.left(p.proname, 7) <> 'howdah_'
	LOOP
		made := pg_catalog.replace(own.definition, 'LANGUAGE internal', 'LANGUAGE c');
		made := pg_catalog.replace(made, pg_catalog.format('AS $function$%s$function$', own.prosrc),
			pg_catalog.format('AS %L, %L', 'howdah', 'howdah_' || own.prosrc));
		IF made = own.definition OR pg_catalog.strpos(made, 'LANGUAGE c') = 0 OR pg_catalog.strpos(made, '$function$') <> 0 THEN
			RAISE EXCEPTION 'no function can stand in for %', own.oid::pg_catalog.regprocedure;
		END IF;
		EXECUTE pg_catalog.format('ALTER FUNCTION %s RENAME TO %I', own.oid::pg_catalog.regprocedure, 'howdah_' || own.prosrc);
		EXECUTE made;
	END LOOP;
	IF (SELECT pg_catalog.count(*) <> pg_catalog.cardinality(names) FROM pg_catalog.pg_proc
		WHERE pronamespace = 'pg_catalog'::pg_catalog.regnamespace AND probin = 'howdah'
			AND prosrc IN (SELECT 'howdah_' || n FROM pg_catalog.unnest(names) AS n)) THEN
		RAISE EXCEPTION 'functions about slots are missing';
	END IF;
END
$$;
