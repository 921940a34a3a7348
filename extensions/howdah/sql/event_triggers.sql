-- Event triggers of master users: they fire for users, never for the platform.
\set VERBOSITY terse
\c - master
CREATE FUNCTION on_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE '% as %', tg_tag, current_user;
END $$;
CREATE EVENT TRIGGER watch ON ddl_command_end EXECUTE FUNCTION on_ddl();
CREATE TABLE t (i int);
SELECT evtname, pg_get_userbyid(evtowner) = 'master' AS mine, evtenabled FROM pg_event_trigger;
COMMENT ON EVENT TRIGGER watch IS 'mine';
ALTER EVENT TRIGGER watch DISABLE;
ALTER EVENT TRIGGER watch ENABLE;
ALTER EVENT TRIGGER watch RENAME TO watch2;
\c - plain
CREATE TEMP TABLE u (i int);
ALTER EVENT TRIGGER watch2 DISABLE;
DROP EVENT TRIGGER watch2;
\c - manager
DROP EVENT TRIGGER watch2;
-- not in sessions of the platform, whatever role they take
\c - rdsadmin
CREATE TABLE public.t2 (i int);
SET ROLE master;
DROP TABLE public.t;
RESET ROLE;
SET SESSION AUTHORIZATION master;
CREATE TABLE public.t (i int);
RESET SESSION AUTHORIZATION;
SET howdah.superuser_runs_user_code = on;
DROP TABLE public.t, public.t2;
CREATE SCHEMA for_mon AUTHORIZATION rdsmon;
\c - rdsmon
CREATE TABLE for_mon.t (i int);
-- nor with the rights of the platform's functions
\c - rdsadmin
CREATE FUNCTION public.make() RETURNS void LANGUAGE sql SECURITY DEFINER AS 'CREATE TABLE public.made (i int); DROP TABLE public.made';
DROP SCHEMA for_mon CASCADE;
CREATE FUNCTION public.platform_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE 'platform: %', tg_tag;
END $$;
CREATE EVENT TRIGGER platform ON ddl_command_end WHEN tag IN ('CREATE TABLE') EXECUTE FUNCTION public.platform_ddl();
\c - master
SELECT make();
-- the platform's own fire everywhere and are not the user's
CREATE TABLE t (i int);
DROP TABLE t;
DROP EVENT TRIGGER platform;
ALTER EVENT TRIGGER platform DISABLE;
DROP EVENT TRIGGER watch2, platform;
COMMENT ON EVENT TRIGGER platform IS 'mine';
CREATE EVENT TRIGGER mine ON ddl_command_end EXECUTE FUNCTION platform_ddl();
-- nor do settings of the function take effect, or fail, in the platform's sessions
CREATE FUNCTION with_set() RETURNS event_trigger LANGUAGE plpgsql SET role = plain AS 'BEGIN END';
ALTER FUNCTION on_ddl() SET work_mem = '1MB';
ALTER FUNCTION on_ddl SET search_path FROM CURRENT;
CREATE FUNCTION plain_set() RETURNS int LANGUAGE sql SET work_mem = '1MB' AS 'SELECT 1';
ALTER FUNCTION plain_set() SET work_mem = '2MB';
DROP FUNCTION plain_set;
\c - rdsadmin
CREATE FUNCTION public.given() RETURNS event_trigger LANGUAGE plpgsql SET work_mem = '1MB' AS 'BEGIN END';
ALTER FUNCTION public.given() OWNER TO master;
\c - master
CREATE EVENT TRIGGER mine ON ddl_command_end EXECUTE FUNCTION given();
DROP FUNCTION given;
-- neither with what the user does not own, nor for another owner
CREATE EVENT TRIGGER mine ON ddl_command_end EXECUTE FUNCTION nonesuch();
CREATE FUNCTION no_trigger() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE EVENT TRIGGER mine ON ddl_command_end EXECUTE FUNCTION no_trigger();
DROP FUNCTION no_trigger;
ALTER EVENT TRIGGER watch2 OWNER TO master;
\c - manager
CREATE FUNCTION pg_temp.on_ddl() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
CREATE EVENT TRIGGER mine ON ddl_command_end EXECUTE FUNCTION pg_temp.on_ddl();
\c - master2
CREATE EVENT TRIGGER mine ON ddl_command_end EXECUTE FUNCTION on_ddl();
DROP EVENT TRIGGER watch2;
\c rdsadmin_owned master
CREATE FUNCTION pg_temp.on_ddl() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
CREATE EVENT TRIGGER mine ON ddl_command_end EXECUTE FUNCTION pg_temp.on_ddl();
\c contrib_regression master2
\c - master
-- the guard sees the function that a later one hides
CREATE SCHEMA hide;
SET search_path = hide, public;
CREATE EVENT TRIGGER mine ON sql_drop EXECUTE FUNCTION on_ddl();
CREATE FUNCTION hide.on_ddl() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
SELECT evtfoid::regproc FROM pg_event_trigger WHERE evtname = 'mine';
DROP EVENT TRIGGER mine, watch2;
DROP EVENT TRIGGER IF EXISTS watch2;
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA hide CASCADE;
DROP FUNCTION on_ddl;
\c - rdsadmin
DROP EVENT TRIGGER platform;
DROP FUNCTION public.platform_ddl, public.make;
