-- While the platform's rights are in force, nothing that a user wrote runs: not even
-- with its owner's rights alone, since it could change what the rest of it means.
\set VERBOSITY terse
\c - master
CREATE SCHEMA trap;
CREATE FUNCTION trap.postgres_fdw_validator(text[], oid) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN END';
-- an event trigger with its owner's rights puts another schema in front, in the middle of a script
CREATE FUNCTION in_front() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
	RAISE NOTICE '% %', tg_event, tg_tag;
	IF to_regprocedure('public.postgres_fdw_validator(text[],oid)') IS NOT NULL AND tg_tag <> 'CREATE EXTENSION' THEN
		PERFORM set_config('search_path', 'trap, pg_catalog, public', false);
	END IF;
END $$;
CREATE EVENT TRIGGER in_front ON ddl_command_end EXECUTE FUNCTION in_front();
CREATE EXTENSION postgres_fdw SCHEMA public;
SHOW search_path;
SELECT fdwvalidator::regproc FROM pg_foreign_data_wrapper WHERE fdwname = 'postgres_fdw';
CREATE SERVER self FOREIGN DATA WRAPPER postgres_fdw OPTIONS (dbname 'contrib_regression');
CREATE USER MAPPING FOR master SERVER self OPTIONS (user 'rdsadmin', password_required 'false');
DROP SERVER self CASCADE;
DROP EXTENSION postgres_fdw;
RESET search_path;
-- the same in the script of a trusted extension, whose rights PostgreSQL gives
CREATE EXTENSION cube;
CREATE EXTENSION citext VERSION '1.4';
ALTER EXTENSION citext UPDATE;
ALTER EXTENSION citext SET SCHEMA trap;
DROP EXTENSION cube, citext;
DROP EVENT TRIGGER in_front;
RESET search_path;
-- event triggers are as with any statement, but around the whole of it
CREATE FUNCTION around() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE
	seen text;
BEGIN
	IF tg_event = 'ddl_command_end' THEN
		SELECT string_agg(object_identity || ' ' || in_extension, ', ') INTO seen FROM pg_event_trigger_ddl_commands();
	ELSIF tg_event = 'sql_drop' THEN
		SELECT count(*) INTO seen FROM pg_event_trigger_dropped_objects();
	END IF;
	RAISE NOTICE '% % % as %: %', tg_event, tg_tag, coalesce((SELECT string_agg(extname, ',') FROM pg_extension WHERE extname LIKE 'howdah%'), 'before'), current_user, seen;
END $$;
CREATE EVENT TRIGGER around_start ON ddl_command_start EXECUTE FUNCTION around();
CREATE EVENT TRIGGER around_end ON ddl_command_end EXECUTE FUNCTION around();
CREATE EVENT TRIGGER around_drop ON sql_drop EXECUTE FUNCTION around();
CREATE EXTENSION howdah_bait;
ALTER EXTENSION howdah_bait UPDATE TO '1.1';
DROP EXTENSION howdah_bait;
CREATE EXTENSION howdah_plain;
ALTER EXTENSION howdah_plain SET SCHEMA trap;
DROP EXTENSION howdah_plain;
CREATE EXTENSION seg;
DROP EXTENSION seg;
CREATE EXTENSION IF NOT EXISTS plpgsql;
CREATE EXTENSION file_fdw;
DROP EVENT TRIGGER around_start, around_end, around_drop;
-- the one before it cannot change where a trusted extension goes
CREATE FUNCTION move() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('search_path', 'pg_catalog', false); END $$;
CREATE EVENT TRIGGER move ON ddl_command_start WHEN tag IN ('CREATE EXTENSION') EXECUTE FUNCTION move();
CREATE EXTENSION citext;
RESET search_path;
DROP EVENT TRIGGER move;
-- nor what its script means
CREATE FUNCTION loosen() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('standard_conforming_strings', 'off', false), set_config('transform_null_equals', 'on', false); END $$;
CREATE EVENT TRIGGER loosen ON ddl_command_start WHEN tag IN ('CREATE EXTENSION') EXECUTE FUNCTION loosen();
CREATE EXTENSION howdah_bait;
SELECT who = 'rdsadmin' AS admin, answer, literal, nulls FROM bait_seen;
DROP EXTENSION howdah_bait;
DROP EVENT TRIGGER loosen;
-- an aggregate of the user's, of functions that are none of the user's
CREATE AGGREGATE trap.bait_help(int) (SFUNC = int84pl, STYPE = int8, INITCOND = '0');
CREATE EXTENSION howdah_bait SCHEMA trap;
-- with its owner's rights alone, in the platform's sessions and functions
CREATE FUNCTION leave() RETURNS name LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM set_config('search_path', 'trap', false); RETURN current_user; END $$;
CREATE FUNCTION leave_quietly() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM set_config('search_path', 'trap', false); RETURN 1; END $$;
CREATE TABLE indexed (i int);
INSERT INTO indexed VALUES (1);
CREATE INDEX ON indexed ((i + leave_quietly()));
RESET search_path;
\c - rdsadmin
SHOW search_path;
SELECT public.leave();
VACUUM ANALYZE public.indexed;
REINDEX TABLE public.indexed;
SHOW search_path;
CREATE FUNCTION public.careless() RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
	IF session_user = 'nobody' THEN PERFORM public.careless(); END IF;
	PERFORM public.leave();
	RETURN current_setting('search_path');
EXCEPTION WHEN insufficient_privilege THEN
	RETURN sqlerrm || ', ' || current_setting('search_path');
END $$;
CREATE FUNCTION public.fails() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN 1 / 0; END $$;
\c - master
SELECT careless();
SELECT leave();
RESET search_path;
-- what has ended, has ended: by an error too
SELECT fails();
DO $$ BEGIN PERFORM fails(); EXCEPTION WHEN division_by_zero THEN RAISE NOTICE 'as %', leave(); END $$;
RESET search_path;
SELECT rolsuper FROM pg_roles WHERE rolname = 'master';
\c - rdsadmin
DROP FUNCTION public.careless, public.fails;
\c - master
SET client_min_messages = warning;
DROP SCHEMA trap CASCADE;
DROP TABLE indexed;
DROP FUNCTION in_front, around, move, loosen, leave, leave_quietly;
