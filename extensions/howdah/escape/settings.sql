-- Settings that change what others run, or reach files and programs.

-- attempt: settings that are a superuser's
-- as: master
SET session_preload_libraries = 'x';
SET lo_compat_privileges = on;
SET allow_in_place_tablespaces = on;
SET zero_damaged_pages = on;
SET ignore_checksum_failure = on;
SET jit_provider = 'x';
SET local_preload_libraries = 'x';
SET archive_command = 'touch {dir}/escaped';
SET ssl_passphrase_command = 'touch {dir}/escaped';
-- sees: permission denied to set parameter "session_preload_libraries"
-- sees: cannot be changed now

-- attempt: programs by settings of the server
-- as: master
ALTER SYSTEM SET archive_command = 'touch {dir}/escaped';
ALTER SYSTEM SET restore_command = 'touch {dir}/escaped';
ALTER SYSTEM SET archive_cleanup_command = 'touch {dir}/escaped';
ALTER SYSTEM SET ssl_passphrase_command = 'touch {dir}/escaped';
ALTER SYSTEM SET hba_file = '{dir}/hba';
ALTER SYSTEM SET log_statement = 'all';
SELECT pg_reload_conf();
-- sees: permission denied to set parameter "archive_command"|must be superuser to execute ALTER SYSTEM
-- sees: permission denied for function pg_reload_conf

-- attempt: programs by settings of the server, by a plain user
-- as: plain
ALTER SYSTEM SET archive_command = 'touch {dir}/escaped';
ALTER SYSTEM SET work_mem = '1GB';
ALTER SYSTEM RESET ALL;
SET log_statement = 'none';
SET session_replication_role = replica;
-- sees: permission denied to set parameter "archive_command"|must be superuser to execute ALTER SYSTEM
-- sees: permission denied to set parameter "session_replication_role"

-- attempt: the module's own settings
-- as: master
SET howdah.extensions = 'file_fdw, plperlu';
SET howdah.admin_role = 'master';
SET howdah.superuser_role = 'master';
SET howdah.protected_roles = '';
SET howdah.protected_databases = '';
SET howdah.superuser_runs_user_code = on;
SET howdah.tablespaces = on;
SET howdah.commit_ignores_cancel = off;
ALTER ROLE master SET howdah.superuser_runs_user_code = on;
ALTER DATABASE target SET howdah.superuser_runs_user_code = on;
SELECT set_config('howdah.protected_roles', '', false);
SET howdah.other = on;
CREATE EXTENSION file_fdw;
-- sees: permission denied to set parameter "howdah.superuser_runs_user_code"
-- sees: parameter "howdah.extensions" cannot be changed now
-- sees: invalid configuration parameter name "howdah.other"
-- sees: extension "file_fdw" is not supported

-- attempt: the database's search_path, for whoever of the platform comes
-- as: master
CREATE SCHEMA evil;
CREATE VIEW evil.pg_stat_activity AS SELECT 'trapped' AS trapped;
CREATE FUNCTION evil.now() RETURNS text LANGUAGE sql AS $$ SELECT 'trapped' $$;
CREATE FUNCTION evil.eq(name, name) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;
CREATE OPERATOR evil.= (LEFTARG = name, RIGHTARG = name, FUNCTION = evil.eq);
GRANT USAGE ON SCHEMA evil TO PUBLIC;
GRANT SELECT ON evil.pg_stat_activity TO PUBLIC;
ALTER DATABASE target SET search_path = evil, pg_catalog;
ALTER ROLE ALL IN DATABASE target SET search_path = evil, pg_catalog;
-- as: rdsadmin
SELECT * FROM pg_stat_activity WHERE datname = 'nothing'::name;
SELECT now() IS NULL;
-- as: rdsmon
SELECT * FROM pg_stat_activity WHERE datname = 'nothing'::name;
-- not: trapped

-- attempt: the database's settings that hinder whoever of the platform comes
-- as: master
ALTER DATABASE target SET statement_timeout = 1;
ALTER DATABASE target SET default_transaction_read_only = on;
ALTER DATABASE target SET lock_timeout = 1;
ALTER DATABASE target SET session_replication_role = replica;
ALTER DATABASE target SET role = plain;
ALTER DATABASE target SET standard_conforming_strings = off;
ALTER DATABASE target SET row_security = off;
-- as: rdsadmin
SELECT pg_sleep(0.02), 'as ' || current_user, current_setting('session_replication_role'), current_setting('standard_conforming_strings'), current_setting('default_transaction_read_only');
-- sees: as rdsadmin\|origin\|on\|off

-- attempt: for all databases and all roles
-- as: master
ALTER ROLE ALL SET search_path = evil;
ALTER ROLE ALL IN DATABASE rdsadmin SET search_path = evil;
ALTER DATABASE rdsadmin SET search_path = evil;
ALTER DATABASE template0 SET search_path = evil;
-- sees: (must be superuser|permission denied) to alter (settings globally|setting)
-- sees: must be owner of database rdsadmin|permission denied to alter database "rdsadmin"
-- sees: must be owner of database template0

-- attempt: what a login says it wants
-- as: master
SET client_encoding = 'SQL_ASCII';
SET log_min_messages = panic;
SET application_name = E'x\nconnection authorized: user=nobody';
SET lc_messages = '../../x';
SET default_text_search_config = 'evil.x';
-- sees: permission denied to set parameter "log_min_messages"|
-- not: server closed the connection

-- attempt: to stop what is logged of oneself
-- as: plain
SET log_statement = 'none';
SET log_min_error_statement = 'panic';
SET track_activities = off;
SET log_min_duration_statement = -1;
-- sees: permission denied to set parameter "log_statement"
-- sees: permission denied to set parameter "track_activities"
