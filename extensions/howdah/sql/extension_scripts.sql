-- Attacks on the scripts of extensions, which run with superuser rights.
\set VERBOSITY terse
\c - master
CREATE SCHEMA trap;
SET search_path = trap, public;
-- a function that fits the script's call better than its own
CREATE FUNCTION bait_help(int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	ALTER ROLE master SUPERUSER;
	RETURN 0;
END $$;
CREATE EXTENSION howdah_bait;
SELECT rolsuper FROM pg_roles WHERE rolname = 'master';
-- the same in SQL, which the planner would inline
CREATE OR REPLACE FUNCTION bait_help(int) RETURNS bigint LANGUAGE sql AS 'SELECT pg_backend_pid()::bigint';
CREATE EXTENSION howdah_bait;
-- also if it was planned when that was harmless
CREATE OR REPLACE FUNCTION bait_help(int) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
PREPARE p AS SELECT bait_help(1);
EXECUTE p;
EXECUTE p;
CREATE EXTENSION howdah_bait;
-- with its own rights it may run, and has none
CREATE OR REPLACE FUNCTION bait_help(int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
	ALTER ROLE master SUPERUSER;
	RETURN 0;
END $$;
CREATE EXTENSION howdah_bait;
CREATE OR REPLACE FUNCTION bait_help(int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
	SET ROLE rdsadmin;
	RETURN 0;
END $$;
CREATE EXTENSION howdah_bait;
CREATE OR REPLACE FUNCTION bait_help(int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
	RESET ROLE;
	RETURN 0;
END $$;
CREATE EXTENSION howdah_bait;
DROP FUNCTION bait_help(int);
-- an aggregate, a default argument, a variadic one
CREATE AGGREGATE bait_help(int) (SFUNC = int8pl, STYPE = int8);
CREATE FUNCTION add_it(bigint, int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	ALTER ROLE master SUPERUSER;
	RETURN 0;
END $$;
DROP AGGREGATE bait_help(int);
CREATE AGGREGATE bait_help(int) (SFUNC = add_it, STYPE = int8);
CREATE EXTENSION howdah_bait;
DROP AGGREGATE bait_help(int);
DROP FUNCTION add_it;
-- objects of the names that the script uses
CREATE FUNCTION bait_help(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint';
CREATE EXTENSION howdah_bait;
DROP FUNCTION bait_help(bigint);
CREATE TABLE bait_seen (who text);
CREATE EXTENSION howdah_bait;
DROP TABLE bait_seen;
CREATE EXTENSION howdah_bait;
SELECT who, answer FROM bait_seen;
-- an operator in an update's script, where the user could prepare it at leisure
CREATE FUNCTION less(int, int) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	ALTER ROLE master SUPERUSER;
	RETURN true;
END $$;
CREATE OPERATOR <+> (LEFTARG = int, RIGHTARG = int, FUNCTION = less);
ALTER EXTENSION howdah_bait UPDATE TO '1.1';
SELECT rolsuper FROM pg_roles WHERE rolname = 'master';
SELECT extversion FROM pg_extension WHERE extname = 'howdah_bait';
-- inlined into a cached plan of the extension's own function, by calling that before
ALTER EXTENSION howdah_bait UPDATE TO '1.2';
CREATE OR REPLACE FUNCTION less(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT current_setting(''is_superuser'')::boolean';
SET search_path = trap, pg_temp;
BEGIN;
SELECT bait_call();
SELECT bait_call();
ALTER EXTENSION howdah_bait UPDATE TO '1.3';
ROLLBACK;
SELECT bait_call();
ALTER EXTENSION howdah_bait UPDATE TO '1.3';
SET search_path = trap, public;
SELECT rolsuper FROM pg_roles WHERE rolname = 'master';
-- the required extension, with the trap in its schema
DROP EXTENSION howdah_bait;
CREATE FUNCTION bait_help(int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	ALTER ROLE master SUPERUSER;
	RETURN 0;
END $$;
CREATE EXTENSION howdah_needs_bait CASCADE;
-- the setting that lets superusers run user code does not count here
\c - rdsadmin
ALTER ROLE master SET howdah.superuser_runs_user_code = on;
\c - master
SET search_path = trap, public;
SHOW howdah.superuser_runs_user_code;
CREATE EXTENSION howdah_bait;
\c - rdsadmin
ALTER ROLE master RESET howdah.superuser_runs_user_code;
\c - master
SET search_path = trap, public;
-- an event trigger
CREATE FUNCTION on_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE '% as %', tg_tag, current_user;
	ALTER ROLE master SUPERUSER;
EXCEPTION WHEN insufficient_privilege THEN
	RAISE NOTICE 'refused';
END $$;
CREATE EVENT TRIGGER watch ON ddl_command_end EXECUTE FUNCTION on_ddl();
DROP FUNCTION bait_help(int);
CREATE EXTENSION howdah_bait;
DROP EVENT TRIGGER watch;
SELECT rolsuper FROM pg_roles WHERE rolname = 'master';
-- operators by which the guard looks the extension up
CREATE FUNCTION eq(name, name) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE 'as %', current_user;
	RETURN true;
END $$;
CREATE OPERATOR = (LEFTARG = name, RIGHTARG = name, FUNCTION = eq);
SET search_path = trap, pg_catalog, public;
CREATE EXTENSION pg_buffercache;
DROP EXTENSION pg_buffercache;
RESET search_path;
-- the trap in the schema that a control file names
CREATE SCHEMA howdah_own;
CREATE TABLE howdah_own.own_made (i int);
CREATE EXTENSION howdah_schema;
DROP TABLE howdah_own.own_made;
CREATE EXTENSION howdah_schema;
SELECT tableowner = 'master' AS mine FROM pg_tables WHERE tablename = 'own_made';
DROP EXTENSION howdah_schema, howdah_bait;
SET client_min_messages = warning;
DROP SCHEMA trap, howdah_own CASCADE;
SELECT rolsuper FROM pg_roles WHERE rolname = 'master';
-- what a script does not do, whatever it makes its statements of
\c - rdsadmin
GRANT CREATE ON SCHEMA public TO master;
\c - master
CREATE TABLE public.bait_said (id serial, what text);
INSERT INTO public.bait_said (what) VALUES ('ALTER ROLE master SUPERUSER'), ('CREATE ROLE evil SUPERUSER'), ('GRANT pg_execute_server_program TO master'),
	('ALTER ROLE rdsmon SET search_path = evil'), ('ALTER ROLE rdsadmin RENAME TO evil'), ('DROP ROLE other_super'), ('REASSIGN OWNED BY rdsadmin TO master'),
	('UPDATE pg_authid SET rolsuper = true WHERE rolname = ''master'''), ('INSERT INTO pg_auth_members (roleid, member) SELECT oid, oid FROM pg_authid LIMIT 1'),
	('ALTER DATABASE rdsadmin SET search_path = evil'), ('ALTER DATABASE rdsadmin OWNER TO master'), ('DROP DATABASE rdsadmin'), ('ALTER SYSTEM SET work_mem = 64'),
	('COPY bait_said FROM PROGRAM ''true'''), ('COPY bait_said TO ''/tmp/evil'''), ('CREATE TABLESPACE evil LOCATION ''/tmp'''),
	('DO $x$ BEGIN ALTER ROLE master SUPERUSER; END $x$'), ('ALTER DATABASE contrib_regression SET search_path = public'), ('UPDATE pg_class SET relname = relname WHERE false');
CREATE EXTENSION howdah_bait VERSION '1.0';
ALTER EXTENSION howdah_bait UPDATE TO '1.4';
SELECT rolsuper FROM pg_roles WHERE rolname = 'master';
ALTER DATABASE contrib_regression RESET search_path;
DROP EXTENSION howdah_bait;
DROP TABLE public.bait_said;
-- names of functions that an update of postgis would rewrite
CREATE FUNCTION public.a_deprecated_by_postgis_300() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION public.a() RETURNS int LANGUAGE sql AS 'SELECT 1';
ALTER FUNCTION public.a RENAME TO a_deprecated_by_postgis_300;
ALTER FUNCTION public.a IMMUTABLE;
DROP FUNCTION public.a;
\c - rdsadmin
REVOKE CREATE ON SCHEMA public FROM master;
