-- log_fdw: no file but the server's log.
\c - master
\set VERBOSITY terse
CREATE EXTENSION log_fdw;
SELECT pg_get_userbyid(extowner) AS owner FROM pg_extension WHERE extname = 'log_fdw';
CREATE SERVER logs FOREIGN DATA WRAPPER log_fdw;
CREATE SERVER other FOREIGN DATA WRAPPER log_fdw OPTIONS (filename 'postgresql.log.2026-01-01-00');
SELECT create_foreign_table_for_log_file('an hour', 'logs', 'postgresql.log.2026-01-01-00');
SELECT attname, atttypid::regtype FROM pg_attribute WHERE attrelid = '"an hour"'::regclass AND attnum > 0;
SELECT * FROM "an hour";
EXPLAIN (COSTS off) SELECT * FROM "an hour";
-- other names
SELECT create_foreign_table_for_log_file('t', 'logs', '../postgresql.conf');
SELECT create_foreign_table_for_log_file('t', 'logs', '/etc/passwd');
SELECT create_foreign_table_for_log_file('t', 'logs', 'postgresql.log.2026-01-01-00/../../pg_hba.conf');
SELECT create_foreign_table_for_log_file('t', 'logs', 'postgresql.log.2026-01-01-0a');
SELECT create_foreign_table_for_log_file('t', 'logs', 'patroni.log');
SELECT create_foreign_table_for_log_file('t', 'logs', '');
SELECT create_foreign_table_for_log_file('t', 'logs', E'postgresql.log.2026-01-01-00\n');
SELECT create_foreign_table_for_log_file('t', 'logs" OPTIONS (filename ''/etc/passwd'') --', 'postgresql.log.2026-01-01-00');
SELECT create_foreign_table_for_log_file(NULL, 'logs', 'postgresql.log.2026-01-01-00');
CREATE FOREIGN TABLE t (log_entry text) SERVER logs;
CREATE FOREIGN TABLE t (log_entry text) SERVER logs OPTIONS (filename 'postgresql.log.2026-01-01-00', program 'id');
CREATE FOREIGN TABLE t (log_entry text OPTIONS (filename 'postgresql.log.2026-01-01-00')) SERVER logs OPTIONS (filename 'postgresql.log.2026-01-01-00');
CREATE FOREIGN TABLE t (a int, b int) SERVER logs OPTIONS (filename 'postgresql.log.2026-01-01-00');
SELECT * FROM t;
ALTER FOREIGN TABLE t OPTIONS (SET filename '/etc/passwd');
CREATE USER MAPPING FOR master SERVER logs OPTIONS (filename 'x');
INSERT INTO "an hour" VALUES ('x');
-- not for everybody
\c - plain
SELECT * FROM list_postgres_log_files();
SELECT create_foreign_table_for_log_file('t', 'logs', 'postgresql.log.2026-01-01-00');
CREATE SERVER mine FOREIGN DATA WRAPPER log_fdw;
CREATE FOREIGN TABLE pg_temp.t (log_entry text) SERVER logs OPTIONS (filename 'postgresql.log.2026-01-01-00');
\c - master
GRANT EXECUTE ON FUNCTION list_postgres_log_files() TO plain;
\c - plain
SELECT has_function_privilege('list_postgres_log_files()', 'EXECUTE');
\c - master
DROP EXTENSION log_fdw CASCADE;
