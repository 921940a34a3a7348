-- log_fdw, where somebody wants another file than the server's log.

-- attempt: the configuration and the catalogs by the name of a log file
-- as: master
CREATE EXTENSION log_fdw;
CREATE SERVER logs FOREIGN DATA WRAPPER log_fdw;
SELECT create_foreign_table_for_log_file('t', 'logs', '../postgresql.conf');
CREATE FOREIGN TABLE u (log_entry text) SERVER logs OPTIONS (filename '../../../../../../etc/passwd');
CREATE FOREIGN TABLE v (log_entry text) SERVER logs OPTIONS (filename 'postgresql.log.2026-01-01-00');
ALTER FOREIGN TABLE v OPTIONS (SET filename '../global/1260');
ALTER FOREIGN TABLE v OPTIONS (DROP filename);
-- sees: no log file has the name "\.\./postgresql\.conf"
-- sees: no log file has the name "\.\./global/1260"
-- not: root:

-- attempt: another wrapper with the handler of log_fdw, or one without its validator
-- as: master
CREATE EXTENSION log_fdw;
CREATE FOREIGN DATA WRAPPER mine HANDLER log_fdw_handler;
ALTER FOREIGN DATA WRAPPER log_fdw NO VALIDATOR;
-- sees: permission denied to create foreign-data wrapper
-- sees: must be owner of foreign-data wrapper|permission denied to alter foreign-data wrapper

-- attempt: another directory of logs
-- as: master
SET log_directory = '{dir}';
ALTER ROLE master SET log_directory = '{dir}';
-- sees: cannot be changed now

-- attempt: a scan that outlives the subtransaction it began in, and another file by then
-- as: rdsadmin
\! mkdir -p {data}/log
COPY (SELECT 'line ' || n || ' ' || repeat('y', 60000) FROM generate_series(1, 9) n) TO '{data}/log/postgresql.log.2026-01-01-00';
-- as: master
CREATE EXTENSION log_fdw;
CREATE SERVER logs FOREIGN DATA WRAPPER log_fdw;
SELECT create_foreign_table_for_log_file('lg', 'logs', 'postgresql.log.2026-01-01-00');
CREATE FUNCTION f(int) RETURNS SETOF text LANGUAGE sql VOLATILE AS 'SELECT log_entry FROM lg LIMIT 2';
BEGIN;
DECLARE c CURSOR FOR SELECT x, left(f(x), 8) FROM generate_series(1, 3) x;
FETCH 2 FROM c;
SAVEPOINT s;
FETCH 1 FROM c;
ROLLBACK TO s;
SELECT pg_logical_emit_message(false, 'x', repeat('z', 6000000)) IS NOT NULL;
FETCH 3 FROM c;
COMMIT;
SELECT pg_logical_emit_message(false, 'x', repeat('z', 6000000)) IS NOT NULL;
-- sees: ^2\|line 2 y$
-- sees: ^3\|line 2 y$
-- not: WARNING|PANIC|ERROR|server closed
