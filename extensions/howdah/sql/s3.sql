-- aws_s3 where no agent works: what is refused before anybody is asked.
\c - master
\set VERBOSITY terse
CREATE EXTENSION aws_s3;
CREATE EXTENSION aws_s3 CASCADE;
SELECT extname, extversion, pg_get_userbyid(extowner) AS owner, extnamespace::regnamespace AS schema, pg_get_userbyid(nspowner) AS schema_owner
FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname ~ '^aws' ORDER BY 1;
SELECT p.oid::regprocedure AS function, pg_get_userbyid(proowner) AS owner, prosecdef AS definer
FROM pg_proc p WHERE pronamespace IN ('aws_s3'::regnamespace, 'aws_commons'::regnamespace) ORDER BY p.oid::regprocedure::text COLLATE "C";
SELECT aws_commons.create_s3_uri('b', 'f', 'r'), (aws_commons.create_s3_uri('b', 'f', 'r')).file_path;
CREATE TABLE t (a int, b text);
-- no agent
SELECT aws_s3.query_export_to_s3('SELECT 1', 'b', 'f');
SELECT * FROM aws_s3.query_export_to_s3('SELECT 1', aws_commons.create_s3_uri('b', 'f', 'r'), options := 'format csv');
SELECT aws_s3.table_import_from_s3('t', '', '(format csv)', aws_commons.create_s3_uri('b', 'f', 'r'));
SET howdah.agent_socket = '/tmp/x';
-- arguments
SELECT aws_s3.query_export_to_s3(NULL, 'b', 'f');
SELECT aws_s3.query_export_to_s3('SELECT 1', 'b', 'f', kms_key := 'k');
SELECT aws_s3.table_import_from_s3('t', '', '', 'b', 'f', 'r', 'AK', 'SK');
SELECT aws_s3.table_import_from_s3('', '', '', 'b', 'f', 'r');
SELECT aws_s3.table_import_from_s3('t', 'a b', '', 'b', 'f', 'r');
-- options are options and nothing else
SELECT aws_s3.query_export_to_s3('SELECT 1', 'b', 'f', 'r', 'format csv) TO PROGRAM ''id');
SELECT aws_s3.query_export_to_s3('SELECT 1', 'b', 'f', 'r', 'format csv); DROP ROLE plain; --');
SELECT aws_s3.query_export_to_s3('SELECT 1', 'b', 'f', 'r', '(format csv); DROP ROLE plain');
SELECT aws_s3.table_import_from_s3('t', '', '(format csv) WHERE true', 'b', 'f', 'r');
SELECT aws_s3.table_import_from_s3('t', '', '(format csv); DROP ROLE plain', 'b', 'f', 'r');
-- the query, and the target, before anybody is asked
SELECT aws_s3.query_export_to_s3('SELECT 1; DROP TABLE t', 'b', 'f');
SELECT aws_s3.query_export_to_s3('DROP TABLE t', 'b', 'f');
SELECT aws_s3.query_export_to_s3('COPY t TO PROGRAM ''id''', 'b', 'f');
SELECT aws_s3.query_export_to_s3('', 'b', 'f');
SELECT aws_s3.table_import_from_s3('pg_authid', '', '', 'b', 'f', 'r');
SELECT aws_s3.table_import_from_s3('pg_catalog.pg_authid', '', '', 'b', 'f', 'r');
SELECT aws_s3.table_import_from_s3('information_schema.sql_parts', '', '', 'b', 'f', 'r');
SELECT aws_s3.table_import_from_s3('nothing', '', '', 'b', 'f', 'r');
SELECT aws_s3.table_import_from_s3('t', 'c', '', 'b', 'f', 'r');
BEGIN READ ONLY;
SELECT aws_s3.table_import_from_s3('t', '', '', 'b', 'f', 'r');
ROLLBACK;
CREATE TABLE rows_of (a int);
ALTER TABLE rows_of ENABLE ROW LEVEL SECURITY;
ALTER TABLE rows_of FORCE ROW LEVEL SECURITY;
SELECT aws_s3.table_import_from_s3('rows_of', '', '', 'b', 'f', 'r');
\c - rdsadmin
CREATE FUNCTION pg_temp.set_full(boolean) RETURNS void LANGUAGE c AS 'howdah', 'howdah_storage_full';
SELECT pg_temp.set_full(true);
\c - master
SELECT aws_s3.table_import_from_s3('t', '', '', 'b', 'f', 'r');
\c - rdsadmin
CREATE FUNCTION pg_temp.set_full(boolean) RETURNS void LANGUAGE c AS 'howdah', 'howdah_storage_full';
SELECT pg_temp.set_full(false);
\c - master
-- only who the owner lets in
CREATE ROLE exporter LOGIN;
\c - exporter
SELECT aws_s3.query_export_to_s3('SELECT 1', 'b', 'f');
\c - master
GRANT USAGE ON SCHEMA aws_s3 TO exporter;
GRANT EXECUTE ON FUNCTION aws_s3.query_export_to_s3(text, text, text, text, text, text) TO exporter;
\c - exporter
SELECT aws_s3.query_export_to_s3('SELECT 1', 'b', 'f');
-- not the platform
\c - rdsadmin
SELECT aws_s3.query_export_to_s3('TABLE pg_authid', 'b', 'f');
SELECT aws_s3.table_import_from_s3('pg_authid', '', '', 'b', 'f', 'r');
SET ROLE master;
SELECT aws_s3.query_export_to_s3('SELECT 1', 'b', 'f');
\c - master
DROP EXTENSION aws_s3;
DROP EXTENSION aws_commons;
DROP SCHEMA aws_s3;
DROP SCHEMA aws_commons;
DROP ROLE exporter;
DROP TABLE t, rows_of;
