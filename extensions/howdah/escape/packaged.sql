-- Extensions of packages (internal/model/extension): what each could be turned to.

-- attempt: objects of the user's that a script is to take over
-- needs: ip4r
-- as: master
CREATE EXTENSION ip4r VERSION 'unpackaged';
CREATE EXTENSION ip4r;
ALTER EXTENSION ip4r UPDATE TO 'unpackaged';
ALTER EXTENSION ip4r UPDATE TO 'ANY';
SELECT 'owns ' || count(*) FROM pg_proc WHERE prolang = (SELECT oid FROM pg_language WHERE lanname = 'c') AND proowner = 'master'::regrole;
-- sees: permission denied for version "unpackaged" of extension "ip4r"
-- sees: permission denied for version "ANY" of extension "ip4r"
-- sees: owns 0

-- attempt: versions of PostGIS by which scripts take over what is there
-- needs: postgis
-- as: master
CREATE EXTENSION postgis VERSION '3.3.2next';
CREATE EXTENSION postgis VERSION 'unpackaged';
CREATE EXTENSION postgis;
ALTER EXTENSION postgis UPDATE TO '3.3.2next';
ALTER EXTENSION postgis UPDATE TO 'ANY';
ALTER EXTENSION postgis UPDATE;
SELECT 'owns ' || count(*) FROM pg_proc WHERE prolang = (SELECT oid FROM pg_language WHERE lanname = 'c') AND proowner = 'master'::regrole;
-- sees: permission denied for version "3.3.2next" of extension "postgis"
-- sees: permission denied for version "unpackaged" of extension "postgis"
-- sees: permission denied for version "ANY" of extension "postgis"
-- sees: version ".*" of extension "postgis" is already installed
-- sees: owns 0

-- attempt: a function that an update of PostGIS rewrites, in a schema whose name is a statement
-- needs: postgis
-- as: master
CREATE EXTENSION postgis;
CREATE SCHEMA "text,out int)language sql as'select 1';alter role master superuser";
SET search_path = "text,out int)language sql as'select 1';alter role master superuser", public;
CREATE FUNCTION st_dwithin_deprecated_by_postgis_300("AS $$ SELECT " int, out int) LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION before("AS $$ SELECT " int, out int) LANGUAGE sql AS 'SELECT 1';
CREATE VIEW v AS SELECT before(1);
ALTER FUNCTION before RENAME TO st_dwithin_deprecated_by_postgis_300;
ALTER ROUTINE before RENAME TO st_dwithin_deprecated_by_postgis_300;
CREATE AGGREGATE st_dwithin_deprecated_by_postgis_300(int) (SFUNC = int4pl, STYPE = int);
DO $$ BEGIN CREATE PROCEDURE st_dwithin_deprecated_by_postgis_300() LANGUAGE sql AS ''; END $$;
SELECT 'named so: ' || count(*) FROM pg_proc WHERE proname ~ 'deprecated_by_postgis';
-- as: rdsadmin
UPDATE pg_extension SET extversion = '3.3.1' WHERE extname = 'postgis';
-- as: master
ALTER EXTENSION postgis UPDATE;
-- sees: permission denied to name a function "st_dwithin_deprecated_by_postgis_300"
-- sees: named so: 0

-- attempt: the same function, from before there was a guard
-- needs: postgis
-- as: master
CREATE EXTENSION postgis;
CREATE SCHEMA "text,out int)language sql as'select 1';alter role m superuser--";
SET search_path = "text,out int)language sql as'select 1';alter role m superuser--", public;
CREATE FUNCTION before("AS $$ SELECT " int, out int) LANGUAGE sql AS 'SELECT 1';
CREATE VIEW v AS SELECT before(1);
CREATE ROLE m;
-- as: rdsadmin
UPDATE pg_extension SET extversion = '3.3.1' WHERE extname = 'postgis';
ALTER FUNCTION "text,out int)language sql as'select 1';alter role m superuser--".before RENAME TO st_dwithin_deprecated_by_postgis_300;
-- as: master
ALTER EXTENSION postgis UPDATE;
SELECT 'version ' || extversion FROM pg_extension WHERE extname = 'postgis';
SELECT postgis_extensions_upgrade();
-- sees: extension "postgis" cannot be updated while there is the function .*st_dwithin_deprecated_by_postgis_300
-- sees: version 3.3.1

-- attempt: an update of PostGIS among a user's functions, operators and tables of its names
-- needs: postgis
-- as: master
CREATE EXTENSION postgis;
-- as: rdsadmin
UPDATE pg_extension SET extversion = '3.3.1' WHERE extname = 'postgis';
GRANT CREATE ON SCHEMA public TO master;
-- as: master
CREATE FUNCTION postgis_extension_drop_if_exists(text, varchar) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN true; END $$;
CREATE FUNCTION _postgis_drop_function_if_needed(text, varchar) RETURNS void LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; END $$;
CREATE FUNCTION ours(int[], int[]) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN false; END $$;
CREATE OPERATOR public.< (LEFTARG = int[], RIGHTARG = int[], FUNCTION = ours);
CREATE SCHEMA evil;
CREATE FUNCTION evil.postgis_full_version() RETURNS text LANGUAGE sql AS $$ SELECT 'x' $$;
ALTER EXTENSION postgis UPDATE;
SELECT 'version ' || extversion FROM pg_extension WHERE extname = 'postgis';
-- sees: version 3.3

-- attempt: a search_path of the login that the script of topologies runs
-- needs: postgis_topology
-- as: master
SELECT set_config('search_path', 'public;ALTER/**/ROLE/**/master/**/SUPERUSER', false) IS NULL;
ALTER DATABASE target SET search_path FROM CURRENT;
-- as: master
SHOW search_path;
SET search_path = public;
CREATE EXTENSION postgis_topology CASCADE;
CREATE EXTENSION postgis_topology VERSION 'unpackaged' CASCADE;
SELECT 'made ' || count(*) FROM pg_extension WHERE extname = 'postgis_topology';
-- sees: public;ALTER
-- sees: cannot be created or updated with the search_path of this login
-- sees: made 0

-- attempt: the same, by a name in quotes
-- needs: postgis_topology
-- as: master
SELECT set_config('search_path', '"x""; ALTER ROLE master SUPERUSER; --", public', false) IS NULL;
ALTER ROLE master SET search_path FROM CURRENT;
-- as: master
SET search_path = public;
CREATE EXTENSION postgis_topology CASCADE;
ALTER ROLE master SET search_path = public;
-- as: master
CREATE EXTENSION postgis_topology CASCADE;
SELECT set_config('search_path', 'public;ALTER/**/ROLE/**/master/**/SUPERUSER', false) IS NULL;
ALTER ROLE master SET search_path FROM CURRENT;
-- as: rdsadmin
UPDATE pg_extension SET extversion = '3.3.1' WHERE extname = 'postgis_topology';
-- as: master
ALTER EXTENSION postgis_topology UPDATE;
SELECT 'version ' || extversion FROM pg_extension WHERE extname = 'postgis_topology';
-- sees: Its script needs a list of plain names without pg_catalog, and not: "x""; ALTER ROLE
-- sees: Its script needs a list of plain names without pg_catalog, and not: public;ALTER
-- sees: version 3.3.1

-- attempt: the search_path of somebody else's database
-- needs: postgis_topology
-- as: master
CREATE ROLE owner;
-- as: rdsadmin
ALTER DATABASE target OWNER TO owner;
GRANT CREATE ON DATABASE target TO master;
-- as: master
ALTER ROLE master SET search_path = evil, public;
-- as: master
CREATE EXTENSION postgis_topology CASCADE;
SELECT 'set for all: ' || count(*) FROM pg_db_role_setting WHERE setrole = 0 AND setdatabase = (SELECT oid FROM pg_database WHERE datname = 'target');
-- as: rdsadmin
ALTER DATABASE target OWNER TO master;
-- sees: must be owner of database target
-- sees: set for all: 0

-- attempt: topologies whose names are statements
-- needs: postgis_topology
-- as: master
CREATE EXTENSION postgis_topology CASCADE;
INSERT INTO topology.topology (name, srid, precision) VALUES ('x"; ALTER ROLE master SUPERUSER; --', -1, 0);
UPDATE topology.layer SET schema_name = 'x';
CREATE TRIGGER evil BEFORE UPDATE ON topology.topology FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
ALTER TABLE topology.topology OWNER TO master;
-- as: rdsadmin
UPDATE pg_extension SET extversion = '3.3.1' WHERE extname = 'postgis_topology';
-- as: master
ALTER EXTENSION postgis_topology UPDATE;
SELECT 'srid ' || srid FROM topology.topology;
DROP EXTENSION postgis_topology;
-- sees: must be owner of table topology
-- sees: srid 0
-- sees: permission denied for table topology

-- attempt: an operator in the schema of topologies, by which the script copies one whose faces are a view
-- needs: postgis_topology
-- as: master
CREATE EXTENSION postgis_topology CASCADE;
CREATE OPERATOR topology.|| (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = topology.copytopology);
INSERT INTO topology.topology (name, srid, precision) VALUES ('topology', 0, 0);
CREATE VIEW topology.face AS SELECT 1 AS face_id, NULL::geometry AS mbr WHERE query_to_xml('SELECT set_config(''escape.done'', ''by '' || current_user, false)', true, true, '') IS NOT NULL;
-- as: rdsadmin
UPDATE pg_extension SET extversion = '3.3.1' WHERE extname ~ '^postgis';
-- as: master
ALTER EXTENSION postgis UPDATE;
ALTER EXTENSION postgis_topology UPDATE;
SELECT 'done ' || current_setting('escape.done', true);
DROP OPERATOR topology.|| (varchar, varchar);
ALTER EXTENSION postgis_topology UPDATE;
SELECT extname || ' is ' || extversion FROM pg_extension WHERE extname = 'postgis_topology';
-- sees: operator topology.|| may not be used in the script of an extension
-- sees: postgis_topology is 3.3.2
-- not: done by

-- attempt: an operator on built-in types in the schema of postgis
-- needs: postgis
-- as: master
CREATE SCHEMA gis;
CREATE EXTENSION postgis SCHEMA gis;
CREATE OPERATOR gis.< (LEFTARG = int[], RIGHTARG = int[], FUNCTION = array_gt);
CREATE FUNCTION gis.gt(int[], int[]) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR gis.< (LEFTARG = int[], RIGHTARG = int[], FUNCTION = gis.gt);
-- as: rdsadmin
UPDATE pg_extension SET extversion = '3.3.1' WHERE extname = 'postgis';
-- as: master
ALTER EXTENSION postgis UPDATE;
SELECT 'version ' || extversion FROM pg_extension WHERE extname = 'postgis';
-- sees: operator gis.< may not be used in the script of an extension|function gis.gt.* may not run with superuser rights
-- sees: version 3.3.1

-- attempt: what an update has left of postgis, in a schema that is renamed to a statement
-- needs: postgis
-- as: master
CREATE SCHEMA old;
-- as: rdsadmin
CREATE FUNCTION old.st_dwithin_deprecated_by_postgis_300(text, text, float8) RETURNS boolean LANGUAGE sql AS 'SELECT true';
-- as: master
CREATE VIEW rests AS SELECT old.st_dwithin_deprecated_by_postgis_300('', '', 1);
ALTER SCHEMA old RENAME TO "(a int,out int)language sql as'select 1';create role m--AS x";
CREATE EXTENSION postgis;
-- as: rdsadmin
UPDATE pg_extension SET extversion = '3.3.1' WHERE extname = 'postgis';
-- as: master
ALTER EXTENSION postgis UPDATE;
SELECT 'version ' || extversion FROM pg_extension WHERE extname = 'postgis';
DROP VIEW rests;
-- as: rdsadmin
DROP FUNCTION "(a int,out int)language sql as'select 1';create role m--AS x".st_dwithin_deprecated_by_postgis_300;
-- as: master
ALTER EXTENSION postgis UPDATE;
SELECT 'then ' || extversion FROM pg_extension WHERE extname = 'postgis';
-- sees: extension "postgis" cannot be updated while there is the function .*st_dwithin_deprecated_by_postgis_300
-- sees: version 3.3.1
-- sees: then 3.3.2

-- attempt: a search_path of the login with schemas before those of PostgreSQL
-- needs: postgis_topology
-- as: master
ALTER ROLE master SET search_path = evil, pg_catalog, public;
-- as: master
SET search_path = public;
CREATE EXTENSION postgis_topology CASCADE;
SELECT 'made ' || count(*) FROM pg_extension WHERE extname = 'postgis_topology';
-- sees: Its script needs a list of plain names without pg_catalog
-- sees: made 0

-- attempt: a table of the user's that the scripts of pg_partman take for their own
-- needs: pg_partman
-- as: master
CREATE SCHEMA partman;
CREATE EXTENSION pg_partman SCHEMA partman;
CREATE TABLE partman.partman_preserve_privs_temp (statement text);
INSERT INTO partman.partman_preserve_privs_temp VALUES ('SELECT set_config(''escape.done'', ''by '' || current_user, false)');
-- as: rdsadmin
UPDATE pg_extension SET extversion = '4.6.2' WHERE extname = 'pg_partman';
ALTER TABLE partman.part_config DROP COLUMN ignore_default_data;
ALTER TABLE partman.part_config_sub DROP COLUMN sub_ignore_default_data;
ALTER EXTENSION pg_partman DROP PROCEDURE partman.run_analyze;
DROP PROCEDURE partman.run_analyze;
-- as: master
ALTER EXTENSION pg_partman UPDATE;
SELECT 'done ' || current_setting('escape.done', true);
SELECT 'version ' || extversion FROM pg_extension WHERE extname = 'pg_partman';
-- sees: permission denied for partman_preserve_privs_temp in the script of an extension
-- sees: version 4.6.2
-- not: done by

-- attempt: a job of somebody else's
-- needs: pg_cron
-- as: master
CREATE EXTENSION pg_cron;
GRANT pg_write_all_data TO plain;
GRANT USAGE ON SCHEMA cron TO plain;
SELECT cron.schedule('* * * * *', 'SELECT 1') > 0 AS scheduled;
-- as: plain
INSERT INTO cron.job (schedule, command, database, username) VALUES ('* * * * *', 'ALTER ROLE plain SUPERUSER', 'target', 'rdsadmin');
UPDATE cron.job SET username = 'rdsadmin', command = 'ALTER ROLE plain SUPERUSER';
SELECT cron.schedule('mine', '* * * * *', 'SELECT 1') > 0 AS scheduled;
UPDATE cron.job SET username = 'rdsadmin' WHERE username = 'plain';
SELECT cron.alter_job(1, username := 'rdsadmin');
SELECT cron.schedule_in_database('evil', '* * * * *', 'ALTER ROLE plain SUPERUSER', 'rdsadmin', 'rdsadmin');
-- sees: new row violates row-level security policy for table "job"
-- sees: must be superuser|permission denied for function alter_job
-- sees: must be superuser|permission denied for function schedule_in_database

-- attempt: the same by the master user
-- needs: pg_cron
-- as: master
CREATE EXTENSION pg_cron;
SELECT cron.schedule('mine', '* * * * *', 'SELECT 1') > 0 AS scheduled;
SELECT cron.alter_job(jobid, username := 'rdsadmin') FROM cron.job;
SELECT cron.schedule_in_database('evil', '* * * * *', 'ALTER ROLE master SUPERUSER', 'target', 'rdsadmin');
UPDATE cron.job SET username = 'rdsadmin';
SELECT username || ' has ' || count(*) FROM cron.job GROUP BY username;
ALTER TABLE cron.job DISABLE ROW LEVEL SECURITY;
CREATE TRIGGER evil BEFORE INSERT ON cron.job_run_details FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
ALTER EXTENSION pg_cron SET SCHEMA public;
-- sees: must be superuser
-- sees: permission denied for function alter_job
-- sees: permission denied for table job
-- sees: master has 1
-- sees: must be owner of table job

-- attempt: operators for the statements of pg_cron itself
-- needs: pg_cron
-- as: master
CREATE EXTENSION pg_cron;
CREATE SCHEMA evil;
CREATE FUNCTION evil.same(bigint, bigint) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN true; END $$;
CREATE OPERATOR evil.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.same);
CREATE FUNCTION evil.same(text, text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN true; END $$;
CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.same);
SET search_path = evil, pg_catalog;
SELECT cron.schedule('mine', '* * * * *', 'SELECT 1') > 0 AS scheduled;
SELECT cron.alter_job(1, schedule := '1 * * * *');
SELECT cron.schedule('mine', '2 * * * *', 'SELECT 2') > 0 AS scheduled;
SELECT cron.unschedule('mine');
DROP EXTENSION pg_cron;
SELECT 'left ' || count(*) FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'pg_cron';
-- sees: left 0

-- attempt: a job of another user's, by an operator that names a function of PostgreSQL's own
-- needs: pg_cron
-- as: master
CREATE EXTENSION pg_cron;
SELECT cron.schedule('mine', '* * * * *', 'SELECT 1') > 0 AS scheduled;
GRANT USAGE ON SCHEMA cron TO plain;
-- as: plain
CREATE SCHEMA evil_plain;
CREATE OPERATOR evil_plain.= (LEFTARG = text, RIGHTARG = text, FUNCTION = textne);
SET search_path = evil_plain, pg_catalog;
SELECT cron.alter_job(1, command => 'GRANT rds_superuser TO plain');
SELECT cron.unschedule('mine');
-- as: master
SELECT 'still ' || command FROM cron.job;
-- sees: permission denied for function alter_job
-- sees: still SELECT 1

-- attempt: a schema that is to be pg_cron's
-- needs: pg_cron
-- as: master
CREATE SCHEMA cron;
CREATE TABLE cron.job (jobid bigint, schedule text, command text, nodename text, nodeport int, database text, username text, active bool, jobname text);
INSERT INTO cron.job VALUES (1, '* * * * *', 'ALTER ROLE master SUPERUSER', 'localhost', 5432, 'target', 'rdsadmin', true, 'x');
CREATE EXTENSION pg_cron;
-- sees: schema "cron" already exists

-- attempt: a role that goes, and leaves jobs of which pg_cron ends
-- needs: pg_cron
-- as: master
CREATE EXTENSION pg_cron;
CREATE ROLE leaver;
GRANT rds_superuser TO leaver;
GRANT leaver TO master;
SET ROLE leaver;
SELECT cron.schedule('his', '* * * * *', 'SELECT 1') > 0 AS scheduled;
RESET ROLE;
CREATE SCHEMA evil_cron;
CREATE OPERATOR evil_cron.= (LEFTARG = text, RIGHTARG = text, FUNCTION = textne);
SET search_path = evil_cron, pg_catalog;
DROP ROLE leaver;
DROP ROLE IF EXISTS nobody_at_all, leaver;
ALTER ROLE leaver RENAME TO gone;
RESET search_path;
SET ROLE leaver;
SELECT count(cron.unschedule(jobid)) AS ended FROM cron.job;
RESET ROLE;
DROP ROLE leaver;
SELECT 'left ' || count(*) FROM pg_roles WHERE rolname = 'leaver';
-- sees: role "leaver" cannot be dropped because it has jobs of pg_cron
-- sees: role "leaver" cannot be renamed because it has jobs of pg_cron
-- sees: left 0

-- attempt: jobs of others, by who may only use pg_cron
-- needs: pg_cron
-- as: master
CREATE EXTENSION pg_cron;
GRANT USAGE ON SCHEMA cron TO plain;
REVOKE pg_write_all_data FROM plain;
SELECT cron.schedule('hers', '* * * * *', 'SELECT 1') > 0 AS scheduled;
SELECT 'her job is ' || jobid FROM cron.job;
-- as: plain
DO $$ BEGIN FOR i IN 1..50 LOOP BEGIN PERFORM cron.unschedule(i); EXCEPTION WHEN others THEN RAISE NOTICE '%', sqlerrm; END; END LOOP; END $$;
SELECT cron.unschedule('hers');
-- as: master
SELECT 'still ' || command FROM cron.job;
-- sees: permission denied for table job
-- sees: still SELECT 1

-- attempt: locks that pg_cron waits for
-- needs: pg_cron
-- as: master
CREATE EXTENSION pg_cron;
GRANT USAGE ON SCHEMA cron TO plain;
-- as: plain
BEGIN;
LOCK TABLE cron.job_run_details;
ROLLBACK;
BEGIN;
LOCK TABLE cron.job_run_details IN SHARE MODE;
ROLLBACK;
CREATE TEMP VIEW runs AS SELECT * FROM cron.job_run_details;
BEGIN;
LOCK TABLE runs;
ROLLBACK;
DELETE FROM cron.job_run_details WHERE false RETURNING 'tidied';
DROP VIEW runs;
-- sees: permission denied to lock table "job_run_details"
-- sees: permission denied to lock view "runs"

-- attempt: the drop of pg_cron lends no rights
-- needs: pg_cron
-- as: master
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; END $$;
CREATE EXTENSION pg_cron;
CREATE EVENT TRIGGER a ON ddl_command_start EXECUTE FUNCTION et();
CREATE EVENT TRIGGER b ON sql_drop EXECUTE FUNCTION et();
CREATE EVENT TRIGGER c ON ddl_command_end EXECUTE FUNCTION et();
DROP EXTENSION pg_cron, plpgsql;
DROP EXTENSION pg_cron;
SELECT 'left ' || count(*) FROM pg_extension WHERE extname = 'pg_cron';
-- sees: left 0

-- attempt: rasters of files and addresses
-- needs: postgis_raster
-- as: master
SET postgis.gdal_enabled_drivers = 'ENABLE_ALL';
SET postgis.enable_outdb_rasters = on;
CREATE EXTENSION postgis_raster CASCADE;
SET postgis.gdal_enabled_drivers = 'ENABLE_ALL';
SET postgis.enable_outdb_rasters = on;
SELECT 'drivers ' || count(*) FROM ST_GDALDrivers();
SELECT 'band ' || ST_Value(ST_AddBand(NULL::raster, '/etc/passwd', NULL::int[]), 1, 1, 1);
SELECT 'raster ' || ST_AsText(ST_Envelope(ST_FromGDALRaster('<VRTDataset rasterXSize="1" rasterYSize="1"><VRTRasterBand dataType="Byte" band="1"><SimpleSource><SourceFilename>/etc/passwd</SourceFilename></SimpleSource></VRTRasterBand></VRTDataset>')));
SELECT current_setting('postgis.gdal_enabled_drivers'), current_setting('postgis.enable_outdb_rasters');
-- sees: permission denied to set parameter "postgis.gdal_enabled_drivers"
-- sees: permission denied to set parameter "postgis.enable_outdb_rasters"
-- sees: DISABLE_ALL
-- not: band [0-9]
-- not: raster POLY

-- attempt: the same by settings of the session before the library is loaded
-- needs: postgis_raster
-- as: master
CREATE EXTENSION postgis_raster CASCADE;
ALTER ROLE master SET postgis.gdal_enabled_drivers = 'ENABLE_ALL';
ALTER DATABASE target SET postgis.enable_outdb_rasters = on;
-- as: master
SELECT set_config('postgis.gdal_enabled_drivers', 'ENABLE_ALL', false), set_config('postgis.enable_outdb_rasters', 'on', false);
SELECT 'version ' || postgis_raster_lib_version();
SELECT 'raster ' || ST_AsText(ST_Envelope(ST_FromGDALRaster('<VRTDataset rasterXSize="1" rasterYSize="1"></VRTDataset>')));
SELECT 'now ' || current_setting('postgis.gdal_enabled_drivers') || ' ' || current_setting('postgis.enable_outdb_rasters');
-- sees: now DISABLE_ALL off
-- not: raster POLY

-- attempt: what pgaudit logs, turned off by who may not
-- needs: pgaudit
-- as: master
CREATE EXTENSION pgaudit;
DROP EVENT TRIGGER pgaudit_ddl_command_end;
ALTER EVENT TRIGGER pgaudit_sql_drop DISABLE;
CREATE OR REPLACE FUNCTION pgaudit_sql_drop() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN END $$;
-- sees: must be owner of event trigger|cannot drop event trigger
-- sees: must be owner of function pgaudit_sql_drop

-- attempt: functions of a user in the event triggers of pgaudit
-- needs: pgaudit
-- as: master
CREATE EXTENSION pgaudit;
CREATE SCHEMA evil;
CREATE FUNCTION evil.same(text, text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN true; END $$;
CREATE OPERATOR evil.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.same);
CREATE FUNCTION evil.upper(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 'x'; END $$;
SET search_path = evil, pg_catalog, public;
SET pgaudit.log = 'all';
CREATE TABLE public.t (a int);
DROP TABLE public.t;
-- not: ERROR

-- attempt: constants of others' statements
-- needs: pg_qualstats
-- as: master
CREATE EXTENSION pg_qualstats;
CREATE TABLE hidden (a text);
INSERT INTO hidden SELECT md5(i::text) FROM generate_series(1, 1000) i;
SET pg_qualstats.sample_rate = 1;
SELECT count(*) FROM hidden WHERE a = 'a secret';
SELECT 'seen by its owner' FROM pg_qualstats() WHERE constvalue ~ 'a secret';
-- as: plain
SELECT 'seen by others' FROM pg_qualstats() WHERE constvalue ~ 'a secret';
SELECT 'seen by others' FROM pg_qualstats_example_queries() WHERE query ~ 'a secret';
SELECT pg_qualstats_reset();
-- sees: seen by its owner
-- sees: permission denied for function pg_qualstats_reset
-- not: seen by others

-- attempt: TDS to the platform's own sockets
-- needs: tds_fdw
-- as: master
CREATE EXTENSION tds_fdw;
CREATE SERVER t FOREIGN DATA WRAPPER tds_fdw OPTIONS (servername '{socket}/.s.PGSQL.{port}', port '{port}', database 'postgres');
CREATE USER MAPPING FOR master SERVER t OPTIONS (username 'rdsadmin', password 'x');
CREATE FOREIGN TABLE f (a int) SERVER t OPTIONS (query 'SELECT 1');
SELECT * FROM f;
-- sees: ERROR

-- attempt: what is installed, and is for nobody
-- as: master
CREATE EXTENSION pg_repack;
CREATE EXTENSION pglogical;
CREATE EXTENSION wal2json;
CREATE EXTENSION plprofiler;
-- sees: extension "pg_repack" is not supported on this instance
-- sees: extension "pglogical" is not supported on this instance
-- sees: extension "plprofiler" is not supported on this instance
-- sees: extension "wal2json" is not supported on this instance

-- attempt: files of the server by orafce, whose list of directories a member of pg_write_all_data writes
-- needs: orafce
-- as: master
CREATE EXTENSION orafce;
GRANT pg_write_all_data TO plain;
-- as: plain
INSERT INTO utl_file.utl_file_dir VALUES ('{dir}', 'evil'), ('/etc', 'etc');
SELECT 'may write to ' || dir FROM utl_file.utl_file_dir;
SELECT utl_file.put_line(utl_file.fopen('{dir}', 'written', 'w'), 'evil');
SELECT 'read: ' || utl_file.get_line(utl_file.fopen('/etc', 'passwd', 'r'));
SELECT utl_file.fcopy('/etc', 'passwd', '{dir}', 'copied');
SELECT utl_file.frename('/etc', 'passwd', '{dir}', 'copied');
SELECT utl_file.fremove('/etc', 'passwd');
SELECT utl_file.fgetattr('/etc', 'passwd');
CREATE FUNCTION pg_temp.mine() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN utl_file.get_line(utl_file.fopen('/etc', 'passwd', 'r')); END $$;
SELECT 'read: ' || pg_temp.mine();
-- sees: may write to
-- sees: permission denied for function fopen
-- sees: permission denied for function fcopy
-- sees: permission denied for function frename
-- sees: permission denied for function fremove
-- sees: permission denied for function fgetattr
-- not: read: root

-- attempt: signals of orafce, which are sent with a superuser's rights, through a table of the user's
-- needs: orafce
-- as: master
CREATE EXTENSION orafce;
CREATE TABLE ora_alerts (event text, message text);
CREATE FUNCTION evil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN NEW; END $$;
CREATE TRIGGER evil BEFORE INSERT ON ora_alerts FOR EACH ROW EXECUTE FUNCTION evil();
SELECT dbms_alert.signal('a', 'b');
SELECT dbms_alert.register('a');
CREATE TEMP TABLE t (a int);
CREATE TRIGGER x AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION dbms_alert.defered_signal();
-- sees: permission denied for function signal
-- sees: permission denied for function register
-- sees: permission denied for function dbms_alert.defered_signal

-- attempt: the end of the server, by numbers, texts and NULL that functions do not expect
-- needs: orafce
-- as: master
CREATE EXTENSION orafce;
SELECT dbms_sql.is_open(32767);
SELECT dbms_sql.fetch_rows(-2147483648);
SELECT oracle.remainder(NULL::numeric, 1);
SET statement_timeout = '1s';
SELECT length(dbms_random.string('x', 2147483647));
PREPARE p AS SELECT dbms_sql.execute($1);
EXECUTE p (2147483647);
CREATE FUNCTION again() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT dbms_sql.execute(100)';
SELECT again();
CREATE OPERATOR %% (LEFTARG = numeric, RIGHTARG = numeric, FUNCTION = oracle.remainder);
SELECT NULL %% 1::numeric;
CREATE AGGREGATE remainders (numeric) (SFUNC = oracle.remainder, STYPE = numeric);
SELECT remainders(a) FROM (VALUES (NULL::numeric), (1)) AS t (a);
SELECT 'goes on';
-- sees: invalid argument 1 of function is_open
-- sees: invalid argument 1 of function remainder
-- sees: invalid argument 2 of function string
-- sees: invalid argument 1 of function execute
-- sees: goes on

-- attempt: the same of pg_similarity
-- needs: pg_similarity
-- as: master
CREATE EXTENSION pg_similarity SCHEMA public;
SELECT soundex('', 'x');
SELECT soundex('x', '');
SELECT 'goes on';
-- sees: invalid argument 1 of function soundex
-- sees: invalid argument 2 of function soundex
-- sees: goes on

-- attempt: the same of pgrouting, and statements of a user's in its functions
-- needs: pgrouting
-- as: master
CREATE EXTENSION pgrouting CASCADE;
SELECT * FROM _trsp(NULL::text, NULL::text, NULL::int[], NULL::int[], NULL::boolean);
SELECT * FROM pgr_dijkstra(NULL, 1, 2);
SELECT * FROM pgr_dijkstra('ALTER ROLE master SUPERUSER', 1, 2);
SELECT * FROM pgr_dijkstra('SELECT oid::int8 AS id, 1 AS source, 2 AS target, length(rolpassword)::float8 AS cost FROM pg_authid', 1, 2);
SELECT 'goes on';
-- sees: invalid argument 1 of function _trsp
-- sees: permission denied for table pg_authid
-- sees: goes on

-- attempt: the same of PostGIS
-- needs: postgis_raster
-- as: master
CREATE EXTENSION postgis_raster CASCADE;
SELECT ST_AsGeoJSON('POINT(1 2)'::geometry, 2000000000);
SELECT ST_AsGeoJSON('POINT(1 2)'::geography, 2000000000);
SELECT ST_RelateMatch(repeat('0', 100000), 'a');
SELECT * FROM _postgis_index_extent('pg_class', 'x');
SELECT ST_MapAlgebra(ARRAY[[ROW(NULL, NULL)::rastbandarg], [NULL::rastbandarg]], 'x');
SELECT ST_Relate('POINT EMPTY'::geometry, 'POINT EMPTY'::geometry, repeat('T', 100000));
SELECT ST_VoronoiPolygons('LINESTRING(0 0,1 1)'::geometry, 0, 'POINT(NaN NaN)'::geometry);
SELECT 'cells ' || ST_NumGeometries(ST_VoronoiPolygons('LINESTRING(0 0,1 1)'::geometry, 0, 'POLYGON((0 0,9 0,9 9,0 0))'::geometry));
SELECT ST_FrechetDistance('LINESTRING(0 0,1 1)', 'LINESTRING(0 0,1 1)', 1e-5);
SELECT ST_SetGeoTransform(ST_MakeEmptyRaster(1, 1, 0, 0, 1), 'NaN', 0, 0, 0, 0, 0);
SELECT 'made ' || ST_AsGeoJSON('POINT(1 2)'::geometry, 15);
-- sees: invalid argument 2 of function st_asgeojson
-- sees: invalid argument 1 of function st_relatematch
-- sees: permission denied for function _postgis_index_extent
-- sees: invalid argument 2 of function _st_voronoi
-- sees: cells 2
-- sees: made {"type":"Point"

-- attempt: files of the server by options of MySQL
-- needs: mysql_fdw
-- as: master
CREATE EXTENSION mysql_fdw;
CREATE SERVER a FOREIGN DATA WRAPPER mysql_fdw OPTIONS (host '127.0.0.1', port '1', init_command 'LOAD DATA LOCAL INFILE ''/etc/passwd'' INTO TABLE x');
CREATE SERVER b FOREIGN DATA WRAPPER mysql_fdw OPTIONS (mysql_default_file '/etc/passwd');
CREATE SERVER c FOREIGN DATA WRAPPER mysql_fdw OPTIONS (ssl_key '/etc/passwd');
CREATE SERVER d FOREIGN DATA WRAPPER mysql_fdw OPTIONS (sql_mode 'x');
CREATE SERVER m FOREIGN DATA WRAPPER mysql_fdw OPTIONS (host '127.0.0.1', port '1');
ALTER SERVER m OPTIONS (ADD init_command 'LOAD DATA LOCAL INFILE ''/etc/passwd'' INTO TABLE x');
ALTER SERVER m OPTIONS (SET port '2', ADD ssl_ca '/etc/passwd');
DO $$ BEGIN EXECUTE 'ALTER SERVER m OPTIONS (ADD mysql_default_file ''/etc/passwd'')'; END $$;
CREATE USER MAPPING FOR master SERVER m OPTIONS (username 'u', init_command 'x');
CREATE USER MAPPING FOR master SERVER m OPTIONS (username 'u', password 'p');
CREATE FOREIGN TABLE f (a int) SERVER m OPTIONS (dbname 'd', table_name 't', init_command 'x');
ALTER FOREIGN DATA WRAPPER mysql_fdw OPTIONS (ADD init_command 'x');
CREATE FOREIGN DATA WRAPPER mine HANDLER mysql_fdw_handler;
SELECT 'options: ' || srvoptions::text FROM pg_foreign_server;
-- sees: permission denied to use the option "init_command" of mysql_fdw
-- sees: permission denied to use the option "mysql_default_file" of mysql_fdw
-- sees: permission denied to use the option "sql_mode" of mysql_fdw
-- sees: invalid option "init_command"
-- sees: options: {host=127.0.0.1,port=1}
