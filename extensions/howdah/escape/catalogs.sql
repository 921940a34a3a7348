-- Catalogs and what guards them.

-- attempt: to write to catalogs
-- as: master
UPDATE pg_authid SET rolsuper = true WHERE rolname = 'master';
UPDATE pg_proc SET prosecdef = true, proowner = 10 WHERE proname = 'f';
UPDATE pg_class SET relowner = 'master'::regrole WHERE relname = 'pg_authid';
UPDATE pg_database SET datdba = 'master'::regrole;
UPDATE pg_language SET lanpltrusted = true;
INSERT INTO pg_parameter_acl VALUES (1, 'x');
DELETE FROM pg_db_role_setting;
UPDATE pg_extension SET extowner = 10;
-- sees: permission denied for table pg_authid
-- sees: permission denied for table pg_language
-- sees: permission denied for table pg_db_role_setting

-- attempt: with catalogs that may be changed
-- as: master
SET allow_system_table_mods = on;
UPDATE pg_settings SET setting = 'on' WHERE name = 'allow_system_table_mods';
ALTER TABLE pg_authid OWNER TO master;
ALTER TABLE pg_authid DISABLE TRIGGER ALL;
TRUNCATE pg_authid;
-- sees: permission denied to set parameter "allow_system_table_mods"
-- sees: "pg_authid" is a system catalog
-- sees: permission denied

-- attempt: to read passwords
-- as: master
SELECT rolpassword FROM pg_authid;
SELECT passwd FROM pg_shadow;
SELECT subconninfo FROM pg_subscription;
SELECT umoptions FROM pg_user_mapping;
SELECT * FROM pg_hba_file_rules;
SELECT * FROM pg_file_settings;
SELECT * FROM pg_statistic;
SELECT * FROM pg_largeobject;
-- sees: permission denied for table pg_authid
-- sees: permission denied for view pg_shadow
-- sees: permission denied for (view|function) pg_hba_file_rules
-- sees: permission denied for table pg_largeobject

-- attempt: to read passwords by those who may read all
-- as: master
CREATE ROLE reader LOGIN;
GRANT pg_read_all_data TO reader;
GRANT reader TO plain;
-- as: plain
SELECT count(*) FILTER (WHERE rolpassword IS NOT NULL) || ' passwords of the platform' FROM pg_authid WHERE rolname ~ '^rds';
-- sees: 0 passwords of the platform

-- attempt: to write by those who may write all
-- as: master
CREATE ROLE writer LOGIN;
GRANT pg_write_all_data TO writer;
GRANT writer TO plain;
-- as: plain
UPDATE pg_authid SET rolsuper = true;
INSERT INTO pg_auth_members VALUES (1, 1, 1, true);
UPDATE pg_catalog.pg_proc SET prosrc = 'pg_read_file' WHERE proname = 'md5';
-- sees: permission denied for table pg_authid
-- sees: permission denied for table pg_proc

-- attempt: to write by those who may write all, through a view of a superuser's
-- as: master
CREATE ROLE writer;
GRANT pg_write_all_data TO writer;
GRANT writer TO plain;
-- as: plain
UPDATE pg_group SET groname = 'mine' WHERE groname = 'pg_execute_server_program';
UPDATE pg_group SET grosysid = 4711 WHERE groname = 'pg_read_server_files';
DELETE FROM pg_group WHERE groname = 'rds_superuser';
UPDATE pg_stat_database_conflicts SET datname = 'mine' WHERE datname = 'rdsadmin';
DELETE FROM pg_stat_database_conflicts WHERE datname = 'rdsadmin';
DELETE FROM information_schema.enabled_roles;
SELECT * FROM pg_group FOR UPDATE;
SELECT * FROM pg_roles FOR NO KEY UPDATE;
UPDATE pg_settings SET setting = 'on' WHERE name = 'array_nulls';
-- sees: permission denied for table pg_authid
-- sees: permission denied for table pg_database
-- sees: ^on$
-- not: mine

-- attempt: the same through a view of one's own on it, a function and a plan of before
-- as: master
CREATE ROLE writer;
GRANT writer TO master;
GRANT CREATE ON SCHEMA public TO writer;
SET ROLE writer;
CREATE VIEW public.v AS SELECT groname FROM pg_group;
CREATE FUNCTION public.f() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN UPDATE pg_group SET groname = 'mine' WHERE groname = 'rds_iam'; END $$;
PREPARE p AS UPDATE pg_group SET groname = 'mine' WHERE groname = 'rds_iam';
RESET ROLE;
GRANT pg_write_all_data TO writer;
UPDATE public.v SET groname = 'mine' WHERE groname = 'rds_iam';
SELECT public.f();
SET ROLE writer;
EXECUTE p;
WITH x AS (UPDATE pg_group SET groname = 'mine' WHERE groname = 'rds_iam' RETURNING 1) SELECT * FROM x;
MERGE INTO pg_group USING (VALUES (1)) s (i) ON true WHEN MATCHED THEN UPDATE SET groname = 'mine';
-- sees: permission denied for table pg_authid
-- not: ^1$

-- attempt: to lock catalogs by those who may write all, through a view
-- as: master
CREATE ROLE writer;
GRANT pg_write_all_data TO writer;
GRANT writer TO plain;
GRANT CREATE ON SCHEMA public TO writer;
-- as: plain
SET ROLE writer;
CREATE VIEW public.v AS SELECT 1 WHERE EXISTS (SELECT FROM pg_roles);
CREATE VIEW public.w AS SELECT * FROM public.v UNION ALL SELECT 2;
BEGIN; LOCK TABLE pg_roles; ROLLBACK;
BEGIN; LOCK TABLE pg_catalog.pg_group IN SHARE MODE; ROLLBACK;
BEGIN; LOCK TABLE information_schema.tables IN EXCLUSIVE MODE; ROLLBACK;
BEGIN; LOCK TABLE public.v; ROLLBACK;
BEGIN; LOCK TABLE public.w IN ACCESS EXCLUSIVE MODE; ROLLBACK;
BEGIN; LOCK TABLE pg_roles IN ACCESS SHARE MODE; ROLLBACK;
CREATE VIEW public.x AS SELECT 1 AS one;
CREATE VIEW public.a AS SELECT 1 AS one;
CREATE VIEW public.b AS SELECT * FROM public.a;
CREATE OR REPLACE VIEW public.a AS SELECT * FROM public.b;
BEGIN; LOCK TABLE public.a; SELECT 'a circle holds ' || count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND relation IN ('public.a'::regclass, 'public.b'::regclass); ROLLBACK;
CREATE TABLE public.t (i int);
CREATE VIEW public.y AS SELECT * FROM public.t, public.x;
CREATE TEMP TABLE u (i int);
BEGIN; LOCK TABLE y, u; SELECT 'holds ' || count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND relation IN ('y'::regclass, 'public.x'::regclass, 't'::regclass, 'u'::regclass); ROLLBACK;
-- sees: permission denied to lock view "pg_roles"
-- sees: permission denied to lock view "pg_group"
-- sees: permission denied to lock view "tables"
-- sees: permission denied to lock view "v"
-- sees: permission denied to lock view "w"
-- sees: a circle holds 2
-- sees: holds 4

-- attempt: statistics of shared catalogs, and their maintenance
-- since: 18
-- as: master
SELECT pg_restore_relation_stats('schemaname', 'pg_catalog', 'relname', 'pg_authid', 'relpages', 1000000);
VACUUM FULL pg_catalog.pg_database;
ANALYZE pg_catalog.pg_authid;
GRANT MAINTAIN ON pg_catalog.pg_authid TO master;
SET event_triggers = off;
-- sees: cannot modify statistics for shared relation
-- sees: permission denied to vacuum "pg_database"
-- sees: permission denied to analyze "pg_authid"
-- sees: permission denied for table pg_authid
-- sees: permission denied to set parameter "event_triggers"

-- attempt: functions that set what only pg_upgrade sets
-- as: master
SELECT binary_upgrade_set_next_pg_authid_oid(10);
SELECT binary_upgrade_set_next_pg_type_oid(10);
SELECT pg_extension_config_dump('pg_authid', '');
SELECT pg_nextoid('pg_authid', 'oid', 'pg_authid_oid_index');
-- sees: ERROR:  .*binary upgrade
-- sees: can only be called from an SQL script
-- sees: must be superuser|permission denied for function pg_nextoid

-- attempt: a lock that stops all logins
-- as: master
BEGIN;
LOCK TABLE pg_authid IN ACCESS EXCLUSIVE MODE;
ROLLBACK;
LOCK TABLE pg_database;
CREATE INDEX ON pg_authid (rolname);
VACUUM FULL pg_authid;
CLUSTER pg_authid USING pg_authid_oid_index;
REINDEX TABLE pg_authid;
REINDEX SYSTEM target;
-- sees: permission denied for table pg_authid|"pg_authid" is a system catalog
-- not: FATAL

-- attempt: parameters for oneself
-- as: master
GRANT SET ON PARAMETER dynamic_library_path TO master;
GRANT ALTER SYSTEM ON PARAMETER archive_command TO master;
REVOKE SET ON PARAMETER log_statement FROM rds_superuser;
-- sees: permission denied for parameter (dynamic_library_path|archive_command)

-- attempt: privileges on functions that are a superuser's
-- as: master
GRANT EXECUTE ON FUNCTION pg_read_file(text) TO master;
GRANT EXECUTE ON FUNCTION lo_import(text) TO PUBLIC;
GRANT ALL ON pg_authid TO master;
ALTER FUNCTION pg_read_file(text) OWNER TO master;
CREATE OR REPLACE FUNCTION pg_catalog.pg_read_file(text) RETURNS text LANGUAGE sql AS 'SELECT $1';
DROP FUNCTION pg_catalog.pg_read_file(text);
SELECT 'may: ' || has_function_privilege('pg_read_file(text)', 'EXECUTE');
-- sees: must be owner of function pg_read_file
-- sees: may: false

-- attempt: casts, classes, methods and transforms of a superuser's
-- as: master
CREATE CAST (text AS oid) WITHOUT FUNCTION;
CREATE OPERATOR CLASS mine FOR TYPE int USING btree AS STORAGE int;
CREATE ACCESS METHOD mine TYPE index HANDLER bthandler;
CREATE TRANSFORM FOR int LANGUAGE plpgsql (FROM SQL WITH FUNCTION prsd_lextype(internal));
CREATE TYPE base (INPUT = int4in, OUTPUT = int4out);
CREATE TEXT SEARCH TEMPLATE mine (LEXIZE = dsimple_lexize);
CREATE TEXT SEARCH PARSER mine (START = prsd_start, GETTOKEN = prsd_nexttoken, END = prsd_end, LEXTYPES = prsd_lextype);
-- sees: must be (superuser|owner of type)
-- sees: permission denied to create access method "mine"

-- attempt: a dictionary that reads any file
-- as: master
CREATE TEXT SEARCH DICTIONARY d (TEMPLATE = ispell, DictFile = '../../../../../../etc/passwd', AffFile = 'x');
CREATE TEXT SEARCH DICTIONARY d (TEMPLATE = simple, StopWords = '../PG_VERSION');
CREATE EXTENSION unaccent;
CREATE TEXT SEARCH DICTIONARY d (TEMPLATE = unaccent, RULES = '../../../../../../etc/passwd');
CREATE EXTENSION dict_xsyn;
CREATE TEXT SEARCH DICTIONARY d (TEMPLATE = xsyn_template, RULES = '../../../../../../etc/passwd');
-- sees: invalid text search configuration file name

-- attempt: a collation that reads any file
-- as: master
CREATE COLLATION c (LOCALE = '../../../../../tmp/x');
CREATE COLLATION c (PROVIDER = icu, LOCALE = 'und-u-ks-level2', RULES = '[import ../../x]');
CREATE CONVERSION c FOR 'UTF8' TO 'LATIN1' FROM pg_read_file;
-- sees: could not create locale|No such file
-- sees: ERROR:  .*pg_read_file|function pg_read_file
