-- Extensions of the allow-list, and who ends up owning what.
\set VERBOSITY default
\c - master
CREATE EXTENSION file_fdw;
\set VERBOSITY terse
CREATE EXTENSION IF NOT EXISTS pg_surgery;
-- trusted by PostgreSQL, but not in the list; and what the grammar turns into CREATE EXTENSION
CREATE EXTENSION hstore;
CREATE LANGUAGE plpython3u;
CREATE EXTENSION "../../etc/x";
-- not trusted: as the admin role, for the user
CREATE EXTENSION pg_stat_statements;
CREATE EXTENSION IF NOT EXISTS pg_stat_statements;
CREATE EXTENSION pg_stat_statements;
CREATE EXTENSION IF NOT EXISTS plpgsql WITH SCHEMA pg_catalog;
SELECT extname, pg_get_userbyid(extowner) AS owner, extnamespace::regnamespace AS schema
FROM pg_extension WHERE extname = 'pg_stat_statements';
SELECT DISTINCT pg_get_userbyid(p.proowner) AS owner FROM pg_proc p
JOIN pg_depend d ON d.objid = p.oid AND d.deptype = 'e' JOIN pg_extension e ON e.oid = d.refobjid
WHERE e.extname = 'pg_stat_statements';
SELECT pg_stat_statements_reset() IS NOT NULL AS reset;
SELECT current_user, session_user;
-- trusted: PostgreSQL's own way, which ends the same
CREATE EXTENSION citext;
SELECT extname, pg_get_userbyid(extowner) AS owner FROM pg_extension WHERE extname = 'citext';
COMMENT ON EXTENSION citext IS 'mine';
CREATE EXTENSION pg_trgm SCHEMA pg_catalog;
SET search_path = pg_catalog;
CREATE EXTENSION pg_trgm;
RESET search_path;
-- no superuser needed: the script runs as the user
CREATE EXTENSION howdah_plain;
SELECT tableowner FROM pg_tables WHERE tablename = 'plain_made';
-- wrappers come with the right to use them
CREATE EXTENSION postgres_fdw;
SELECT fdwname, pg_get_userbyid(fdwowner) = 'master' AS mine, has_foreign_data_wrapper_privilege(oid, 'USAGE WITH GRANT OPTION') AS usable
FROM pg_foreign_data_wrapper;
CREATE SERVER there FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', dbname 'contrib_regression');
CREATE USER MAPPING FOR master SERVER there OPTIONS (user 'rdsadmin', password 'x');
GRANT USAGE ON FOREIGN DATA WRAPPER postgres_fdw TO plain;
ALTER FOREIGN DATA WRAPPER postgres_fdw OPTIONS (ADD x 'y');
\set VERBOSITY sqlstate
ALTER USER MAPPING FOR master SERVER there OPTIONS (ADD password_required 'false');
ALTER USER MAPPING FOR master SERVER there OPTIONS (ADD sslkey '/etc/key');
\set VERBOSITY terse
CREATE EXTENSION amcheck;
SELECT count(*) > 0 AS checked FROM bt_index_check('pg_class_oid_index');
CREATE EXTENSION dblink;
SELECT dblink_connect_u('dbname=contrib_regression user=rdsadmin');
-- CASCADE: each one is checked, each is the user's
CREATE EXTENSION howdah_needs_forbidden;
CREATE EXTENSION howdah_needs_forbidden CASCADE;
CREATE EXTENSION howdah_needs_bait;
CREATE SCHEMA tools;
CREATE EXTENSION howdah_needs_bait SCHEMA tools CASCADE;
SELECT extname, pg_get_userbyid(extowner) AS owner, extnamespace::regnamespace AS schema
FROM pg_extension WHERE extname IN ('howdah_needs_bait', 'howdah_bait', 'cube') ORDER BY 1;
SELECT who, answer, literal, nulls, tableowner FROM tools.bait_seen, pg_tables WHERE tablename = 'bait_seen';
SELECT classid::regclass, pg_get_userbyid(refobjid) AS owner FROM pg_shdepend
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
AND classid = 'pg_extension'::regclass AND objid = (SELECT oid FROM pg_extension WHERE extname = 'howdah_bait');
-- a schema that the control file asks for
CREATE EXTENSION howdah_schema SCHEMA pg_catalog CASCADE;
CREATE EXTENSION howdah_schema SCHEMA public;
CREATE EXTENSION howdah_schema SCHEMA howdah_own;
CREATE EXTENSION howdah_schema;
CREATE EXTENSION IF NOT EXISTS howdah_schema SCHEMA howdah_own;
SELECT nspname, pg_get_userbyid(nspowner) AS owner FROM pg_namespace WHERE nspname LIKE 'howdah%' ORDER BY 1;
-- UPDATE, to a version with more in it
ALTER EXTENSION howdah_bait UPDATE TO '1.2';
SELECT extversion, pg_get_userbyid(extowner) AS owner FROM pg_extension WHERE extname = 'howdah_bait';
SELECT proowner::regrole = 'master'::regrole AS mine FROM pg_proc WHERE proname = 'bait_more';
ALTER EXTENSION howdah_bait UPDATE TO '9';
ALTER EXTENSION howdah_bait UPDATE TO '../x';
ALTER EXTENSION nonesuch UPDATE;
-- SET SCHEMA
ALTER EXTENSION howdah_bait SET SCHEMA public;
SELECT pronamespace::regnamespace AS schema FROM pg_proc WHERE proname = 'bait_more';
ALTER EXTENSION howdah_bait SET SCHEMA pg_catalog;
ALTER EXTENSION pg_trgm SET SCHEMA tools;
-- members stay as the script made them
\set VERBOSITY sqlstate
CREATE OR REPLACE FUNCTION bait_more() RETURNS name LANGUAGE sql AS 'SELECT ''x''::name';
ALTER FUNCTION bait_more() OWNER TO master;
DROP FUNCTION bait_more();
\set VERBOSITY terse
CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1';
ALTER EXTENSION howdah_bait ADD FUNCTION mine();
ALTER EXTENSION howdah_bait DROP FUNCTION bait_more();
DROP FUNCTION mine();
-- only the owner changes an extension; a second master user is not that
\c - master2
ALTER EXTENSION howdah_bait UPDATE TO '1.1';
ALTER EXTENSION howdah_bait SET SCHEMA tools;
DROP EXTENSION howdah_bait;
ALTER EXTENSION plpgsql UPDATE;
DROP EXTENSION plpgsql;
-- nor may everyone create: CREATE on the database, on the schema, the role
CREATE EXTENSION pg_buffercache;
\c - rdsadmin
GRANT CREATE ON DATABASE contrib_regression TO master2, manager;
\c - master2
CREATE EXTENSION pg_buffercache SCHEMA tools;
CREATE EXTENSION pg_buffercache SCHEMA pg_catalog;
CREATE EXTENSION pg_buffercache SCHEMA information_schema;
CREATE EXTENSION pg_buffercache SCHEMA pg_temp;
SET search_path = pg_catalog;
CREATE EXTENSION pg_buffercache;
SET search_path = nonesuch;
CREATE EXTENSION pg_buffercache;
RESET search_path;
CREATE EXTENSION pg_buffercache SCHEMA nonesuch;
CREATE EXTENSION pg_buffercache SCHEMA tools SCHEMA public;
CREATE EXTENSION pg_buffercache VERSION '0.0';
CREATE EXTENSION pg_buffercache;
SELECT extname, pg_get_userbyid(extowner) AS owner FROM pg_extension WHERE extname = 'pg_buffercache';
DROP EXTENSION pg_buffercache;
\c - manager
\set VERBOSITY sqlstate
CREATE EXTENSION pg_buffercache;
CREATE EXTENSION hstore;
CREATE EXTENSION pg_trgm;
DROP EXTENSION pg_trgm;
\set VERBOSITY terse
\c - master
-- also after an error in the middle, user and settings are as before
SELECT current_user, current_setting('search_path');
SET standard_conforming_strings = off;
SET transform_null_equals = on;
SET escape_string_warning = off;
DROP EXTENSION howdah_bait CASCADE;
CREATE EXTENSION howdah_bait;
SHOW standard_conforming_strings;
SELECT literal = 'a\\' AS as_written, nulls FROM bait_seen;
RESET ALL;
-- DROP
DROP EXTENSION howdah_bait, howdah_plain, howdah_schema, citext, pg_stat_statements, amcheck, dblink;
DROP EXTENSION postgres_fdw CASCADE;
DROP EXTENSION cube;
SELECT extname FROM pg_extension ORDER BY 1;
-- what a user owns can be given to another, and be dropped with the user
CREATE EXTENSION pg_buffercache;
\c - rdsadmin
CREATE ROLE leaver LOGIN;
REASSIGN OWNED BY master TO leaver;
SELECT extname, pg_get_userbyid(extowner) AS owner FROM pg_extension WHERE extname = 'pg_buffercache';
REASSIGN OWNED BY leaver TO master;
DROP ROLE leaver;
\c - master
DROP EXTENSION pg_buffercache;
DROP SCHEMA tools, howdah_own;
-- what some host of the database lacks
CREATE EXTENSION tablefunc;
\c - rdsadmin
CREATE EXTENSION tablefunc SCHEMA public;
DROP EXTENSION tablefunc;
-- or has in an older version: not even through another one
\c - master
\set VERBOSITY default
CREATE EXTENSION howdah_late;
\set VERBOSITY terse
CREATE EXTENSION howdah_late VERSION '1.10';
CREATE EXTENSION howdah_needs_late CASCADE;
SELECT extname FROM pg_extension WHERE extname LIKE 'howdah%';
CREATE EXTENSION howdah_late VERSION '1.9';
ALTER EXTENSION howdah_late UPDATE;
CREATE EXTENSION howdah_needs_late;
DROP EXTENSION howdah_needs_late;
ALTER EXTENSION howdah_late UPDATE TO '1.9';
SELECT late();
-- what is newer already is left alone
\c - rdsadmin
ALTER EXTENSION howdah_late UPDATE;
\c - master
ALTER EXTENSION howdah_late UPDATE;
SELECT late();
DROP EXTENSION howdah_late;
