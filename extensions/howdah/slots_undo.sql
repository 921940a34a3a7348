DO $$ DECLARE f record; BEGIN
FOR f IN SELECT p.oid::regprocedure AS own, p.proname, b.oid::regprocedure AS builtin FROM pg_proc p
	JOIN pg_proc b ON b.pronamespace = p.pronamespace AND b.proname = p.prosrc AND b.oid < 16384
	WHERE p.probin = 'howdah' AND p.pronamespace = 'pg_catalog'::regnamespace
LOOP
	EXECUTE 'DROP FUNCTION ' || f.own;
	EXECUTE format('ALTER FUNCTION %s RENAME TO %I', f.builtin, f.proname);
END LOOP; END $$;
