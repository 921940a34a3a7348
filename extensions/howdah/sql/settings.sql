-- What a master user may set.
\set VERBOSITY sqlstate
\c - master
SET log_min_duration_statement = 100;
SET log_statement = 'mod';
SET log_lock_waits = on;
SET session_replication_role = replica;
SET session_replication_role = origin;
SET track_functions = 'all';
SET temp_file_limit = -1;
SET deadlock_timeout = '2s';
SET auto_explain.log_min_duration = 1000;
SET pg_stat_statements.track = 'all';
CREATE ROLE app;
ALTER ROLE app SET log_statement = 'all';
DROP ROLE app;
ALTER DATABASE contrib_regression SET log_min_duration_statement = 500;
ALTER DATABASE contrib_regression RESET log_min_duration_statement;
CHECKPOINT;
SELECT pg_stat_reset();
-- others do not get these
\c - manager
SET log_statement = 'none';
CHECKPOINT;
\c - master
-- what loads code, changes what SQL means, or reaches files stays refused
SET session_preload_libraries = 'x';
SET dynamic_library_path = '/nonexistent';
SET allow_system_table_mods = on;
SET allow_in_place_tablespaces = on;
SET lo_compat_privileges = on;
SET zero_damaged_pages = on;
SET max_stack_depth = '3MB';
SET jit_provider = 'x';
SET event_source = 'x';
SET archive_command = 'id';
ALTER ROLE master SET session_preload_libraries = 'x';
ALTER DATABASE contrib_regression SET session_preload_libraries = 'x';
ALTER DATABASE contrib_regression SET dynamic_library_path = '/nonexistent';
CREATE FUNCTION f() RETURNS int LANGUAGE sql SET allow_system_table_mods = on AS 'SELECT 1';
SELECT set_config('allow_system_table_mods', 'on', false);
-- our own settings
SET howdah.extensions = 'file_fdw';
SET howdah.protected_roles = '';
SET howdah.superuser_runs_user_code = on;
SET howdah.tablespaces = on;
SET howdah.nonsense = on;
ALTER ROLE master SET howdah.superuser_runs_user_code = on;
ALTER DATABASE contrib_regression SET howdah.superuser_runs_user_code = on;
SELECT set_config('howdah.superuser_runs_user_code', 'on', false);
-- for all roles, for the instance, and handing on
ALTER ROLE ALL SET log_statement = 'all';
ALTER SYSTEM SET archive_command = 'id';
ALTER SYSTEM SET log_statement = 'all';
ALTER SYSTEM RESET ALL;
GRANT SET ON PARAMETER log_statement TO plain;
GRANT ALTER SYSTEM ON PARAMETER archive_command TO master;
SELECT pg_reload_conf();
-- a database's settings do not reach the platform's sessions
ALTER DATABASE contrib_regression SET search_path = evil, pg_catalog;
ALTER DATABASE contrib_regression SET standard_conforming_strings = off;
ALTER DATABASE contrib_regression SET default_transaction_read_only = on;
ALTER DATABASE contrib_regression SET session_replication_role = replica;
ALTER DATABASE contrib_regression SET role = plain;
ALTER DATABASE contrib_regression SET statement_timeout = 1;
DO $$ BEGIN
	IF current_setting('server_version_num')::int >= 170000 THEN
		ALTER DATABASE contrib_regression SET transaction_timeout = 1;
	END IF;
END $$;
\c - rdsadmin
SELECT name, setting FROM pg_settings WHERE name IN ('search_path', 'standard_conforming_strings',
	'default_transaction_read_only', 'session_replication_role', 'role', 'statement_timeout') ORDER BY name;
SELECT coalesce(current_setting('transaction_timeout', true), '0') AS transaction_timeout;
SELECT current_user;
CREATE TEMP TABLE in_default_tablespace (i int);
ALTER DATABASE contrib_regression RESET ALL;
\c - rdsmon
SHOW search_path;
