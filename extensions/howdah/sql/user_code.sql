-- No function of a user runs with superuser rights.
\set VERBOSITY terse
\c - master
CREATE FUNCTION lower(int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 'x'; END $$;
CREATE FUNCTION inlined(int) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT $1::bigint + 1';
CREATE FUNCTION rows() RETURNS SETOF int LANGUAGE sql STABLE AS 'SELECT 1';
CREATE FUNCTION definer() RETURNS name LANGUAGE sql SECURITY DEFINER AS 'SELECT current_user';
CREATE FUNCTION checked(int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1 > 0; END $$;
CREATE FUNCTION on_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN new; END $$;
CREATE PROCEDURE proc() LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; END $$;
CREATE DOMAIN positive AS int CHECK (checked(VALUE));
CREATE TABLE trapped (i int);
CREATE TRIGGER trap BEFORE INSERT ON trapped FOR EACH ROW EXECUTE FUNCTION on_row();
CREATE TABLE indexed (i int);
INSERT INTO indexed SELECT generate_series(1, 10);
CREATE INDEX indexed_i ON indexed ((checked(i)));
CREATE TABLE policed (i int);
ALTER TABLE policed ENABLE ROW LEVEL SECURITY;
CREATE VIEW seen AS SELECT lower(1);
CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq);
CREATE FUNCTION neq(int, int) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN $1 <> $2; END';
CREATE OPERATOR !== (LEFTARG = int, RIGHTARG = int, FUNCTION = neq);
SELECT inlined(1), definer(), 1 !== 2 AS differs;
-- users run their own, in parallel workers too
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
ALTER FUNCTION checked(int) PARALLEL SAFE COST 10000;
SELECT count(*) FROM indexed WHERE checked(i);
\c - rdsadmin
SELECT public.lower(1);
SELECT public.inlined(1);
SELECT * FROM public.rows();
SELECT * FROM public.seen;
SELECT 1 OPERATOR(public.!==) 2;
SELECT 1::public.positive;
CALL public.proc();
INSERT INTO public.trapped VALUES (1);
COPY public.trapped FROM stdin;
1
\.
DO $$ BEGIN PERFORM public.lower(1); END $$;
-- with its owner's rights it would still change the session
SELECT public.definer();
-- what is PostgreSQL's own is no danger, nor what maintenance runs as its owner
SELECT 1 OPERATOR(public.===) 1 AS same;
VACUUM ANALYZE public.indexed;
REINDEX TABLE public.indexed;
SET min_parallel_table_scan_size = 0;
CREATE INDEX ON public.indexed ((public.checked(i)));
-- a role that the session took can be given up
SET ROLE master;
SELECT public.inlined(1);
RESET ROLE;
SET SESSION AUTHORIZATION master;
SELECT public.inlined(1);
RESET SESSION AUTHORIZATION;
\c - rdsmon
SELECT public.inlined(1);
\c - rdsadmin
-- looking is not calling
SELECT pg_get_viewdef('public.seen'::regclass);
EXPLAIN (COSTS off) SELECT public.lower(1);
-- a superuser who knows better
SET howdah.superuser_runs_user_code = on;
SELECT public.inlined(1);
RESET howdah.superuser_runs_user_code;
SELECT rolsuper FROM pg_roles WHERE rolname = 'master';
-- functions of the platform with superuser rights, called by a user who set a trap
CREATE FUNCTION public.careless() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN lower(1); END $$;
\c - master
SELECT careless();
SELECT rolsuper FROM pg_roles WHERE rolname = 'master';
\c - rdsadmin
DROP FUNCTION public.careless;
\c - master
SET client_min_messages = warning;
DROP TABLE trapped, indexed, policed;
DROP VIEW seen;
DROP OPERATOR === (int, int), !== (int, int);
DROP DOMAIN positive;
DROP FUNCTION lower(int), inlined, rows, definer, checked, on_row, neq;
DROP PROCEDURE proc;
