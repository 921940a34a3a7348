-- What users leave lying for maintenance and the platform's own statements.

-- attempt: an index expression, for VACUUM, ANALYZE, REINDEX and CLUSTER by the platform
-- as: master
CREATE FUNCTION public.f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1; END $$;
CREATE TABLE public.t (i int);
INSERT INTO public.t SELECT generate_series(1, 100);
CREATE INDEX x ON public.t (public.f(i));
CREATE OR REPLACE FUNCTION public.f(int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN
	BEGIN RESET ROLE; EXCEPTION WHEN OTHERS THEN NULL; END;
	BEGIN RESET SESSION AUTHORIZATION; EXCEPTION WHEN OTHERS THEN NULL; END;
	BEGIN ALTER ROLE master SUPERUSER; EXCEPTION WHEN OTHERS THEN NULL; END;
	PERFORM set_config('search_path', 'evil', false);
	RETURN $1; END $$;
-- as: rdsadmin
VACUUM ANALYZE public.t;
REINDEX TABLE public.t;
CLUSTER public.t USING x;
VACUUM FULL public.t;
REINDEX DATABASE CONCURRENTLY target;
SHOW search_path;
-- sees: pg_catalog, pg_temp

-- attempt: a deferred trigger left for the end of maintenance
-- as: master
CREATE TABLE public.log (i int);
CREATE FUNCTION public.tr() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN NEW; END $$;
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON public.log DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.tr();
CREATE FUNCTION public.f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1; END $$;
CREATE TABLE public.t (i int);
INSERT INTO public.t VALUES (1);
CREATE INDEX x ON public.t (public.f(i));
CREATE OR REPLACE FUNCTION public.f(int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN INSERT INTO public.log VALUES (1); RETURN $1; END $$;
-- as: rdsadmin
ANALYZE public.t;
REINDEX TABLE public.t;
-- sees: cannot fire deferred trigger within security-restricted operation

-- attempt: a cursor left open for the end of maintenance
-- as: master
CREATE FUNCTION public.late() RETURNS int LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 1; END $$;
CREATE FUNCTION public.f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1; END $$;
CREATE TABLE public.t (i int);
INSERT INTO public.t VALUES (1);
CREATE INDEX x ON public.t (public.f(i));
CREATE OR REPLACE FUNCTION public.f(int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN EXECUTE 'DECLARE c CURSOR WITH HOLD FOR SELECT public.late()'; RETURN $1; END $$;
-- as: rdsadmin
ANALYZE public.t;
REINDEX TABLE public.t;
-- sees: cannot create a cursor WITH HOLD within security-restricted operation

-- attempt: a temporary table left by maintenance
-- as: master
CREATE FUNCTION public.f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1; END $$;
CREATE TABLE public.t (i int);
INSERT INTO public.t VALUES (1);
CREATE INDEX x ON public.t (public.f(i));
CREATE OR REPLACE FUNCTION public.f(int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN CREATE TEMP TABLE pg_stat_activity (i int); RETURN $1; END $$;
-- as: rdsadmin
REINDEX TABLE public.t;
SELECT count(*) > 0 FROM pg_stat_activity;
-- sees: cannot create temporary table within security-restricted operation
-- sees: ^t$

-- attempt: a materialized view that the platform refreshes
-- as: master
CREATE FUNCTION public.f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 1; EXCEPTION WHEN insufficient_privilege THEN RETURN 2; END $$;
CREATE MATERIALIZED VIEW public.m AS SELECT public.f() AS f;
CREATE UNIQUE INDEX ON public.m (f);
-- as: rdsadmin
REFRESH MATERIALIZED VIEW public.m;
REFRESH MATERIALIZED VIEW CONCURRENTLY public.m;
SELECT 'refused: ' || f FROM public.m;
-- sees: refused: 2

-- attempt: a table with a trigger, a rule and a default that the platform writes to
-- as: master
CREATE TABLE public.t (i int DEFAULT 1);
CREATE FUNCTION public.tr() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM set_config('search_path', 'evil', false); RETURN NEW; END $$;
CREATE TRIGGER tr BEFORE INSERT ON public.t FOR EACH ROW EXECUTE FUNCTION public.tr();
CREATE TABLE public.u (i int);
CREATE FUNCTION public.f() RETURNS int LANGUAGE sql SECURITY DEFINER AS $$ SELECT length(set_config('search_path', 'evil', false)) $$;
CREATE RULE r AS ON INSERT TO public.u DO ALSO SELECT public.f();
-- as: rdsadmin
INSERT INTO public.t VALUES (1);
INSERT INTO public.u VALUES (1);
SHOW search_path;
-- sees: function public.tr\(\) may not run with superuser rights
-- sees: function public.f\(\) may not run with superuser rights
-- sees: pg_catalog, pg_temp

-- attempt: a view that the platform reads
-- as: master
CREATE FUNCTION public.f() RETURNS int LANGUAGE sql SECURITY DEFINER AS $$ SELECT length(set_config('search_path', 'evil', false)) $$;
CREATE VIEW public.v AS SELECT public.f();
CREATE VIEW public.w AS SELECT current_setting('search_path') WHERE public.f() > 0;
-- as: rdsadmin
SELECT * FROM public.v;
SELECT * FROM public.w;
-- as: rdsmon
SELECT * FROM public.v;
-- sees: function public.f\(\) may not run with superuser rights
-- not: evil

-- attempt: a foreign key's check in a session of the platform
-- as: master
CREATE FUNCTION public.eq(int, int) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM set_config('search_path', 'evil', false); RETURN true; END $$;
CREATE TABLE public.p (i int PRIMARY KEY);
CREATE TABLE public.c (i int REFERENCES public.p ON DELETE CASCADE);
CREATE FUNCTION public.tr() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM set_config('search_path', 'evil', false); RETURN OLD; END $$;
CREATE TRIGGER tr BEFORE DELETE ON public.c FOR EACH ROW EXECUTE FUNCTION public.tr();
INSERT INTO public.p VALUES (1);
INSERT INTO public.c VALUES (1);
-- as: rdsadmin
DELETE FROM public.p;
SHOW search_path;
-- sees: function public.tr\(\) may not run with superuser rights
-- sees: pg_catalog, pg_temp

-- attempt: statistics with an expression of the user's
-- as: master
CREATE FUNCTION public.f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM set_config('search_path', 'evil', false); RETURN $1; END $$;
CREATE TABLE public.t (i int, j int);
INSERT INTO public.t SELECT i, i FROM generate_series(1, 100) i;
CREATE STATISTICS public.s ON (public.f(i)), j FROM public.t;
-- as: rdsadmin
ANALYZE public.t;
EXPLAIN (COSTS off) SELECT * FROM public.t WHERE i = 1;
SHOW search_path;
-- sees: pg_catalog, pg_temp

-- attempt: an operator that leaks what statistics hold
-- as: master
CREATE TABLE public.secret (i int);
INSERT INTO public.secret SELECT 4711 FROM generate_series(1, 100);
ANALYZE public.secret;
GRANT CREATE ON SCHEMA public TO plain;
-- as: plain
CREATE FUNCTION public.leak(int, int) RETURNS boolean LANGUAGE plpgsql COST 0.001 AS $$ BEGIN RAISE NOTICE 'leaked %', $1; RETURN true; END $$;
CREATE OPERATOR public.<<< (LEFTARG = int, RIGHTARG = int, FUNCTION = public.leak, RESTRICT = scalarltsel);
SELECT * FROM public.secret WHERE i <<< 1;
EXPLAIN SELECT * FROM public.secret WHERE i <<< 1;
SELECT * FROM pg_stats WHERE tablename = 'secret';
-- sees: permission denied for table secret
-- not: leaked

-- attempt: autovacuum's own session
-- as: master
CREATE FUNCTION public.f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1; END $$;
CREATE TABLE public.t (i int) WITH (autovacuum_enabled = on);
INSERT INTO public.t VALUES (1);
CREATE INDEX x ON public.t (public.f(i));
CREATE OR REPLACE FUNCTION public.f(int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN COPY (SELECT 1) TO PROGRAM 'touch {dir}/escaped'; RETURN $1; EXCEPTION WHEN insufficient_privilege THEN RETURN $1; END $$;
-- as: rdsadmin
VACUUM (ANALYZE, PARALLEL 2) public.t;
ANALYZE;
-- not: ERROR
