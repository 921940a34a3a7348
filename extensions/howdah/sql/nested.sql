-- The guards hold wherever a statement comes from.
\set VERBOSITY terse
\c - master
DO $$ BEGIN EXECUTE 'GRANT pg_execute_server_program TO master'; END $$;
DO $$ BEGIN EXECUTE 'CREATE EXTENSION file_fdw'; END $$;
CREATE FUNCTION attempt(command text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE command;
	RETURN 'done';
EXCEPTION WHEN OTHERS THEN
	RETURN sqlerrm;
END $$;
SELECT attempt('GRANT pg_read_server_files TO master');
SELECT attempt('ALTER ROLE rdsmon PASSWORD ''known''');
SELECT attempt('CREATE EXTENSION file_fdw');
SELECT attempt('DROP DATABASE rdsadmin');
SELECT attempt('DO $q$ BEGIN EXECUTE ''GRANT rdsrepladmin TO master''; END $q$');
SELECT attempt('SELECT attempt(''GRANT rdsrepladmin TO master'')');
-- also with the rights of another user
ALTER FUNCTION attempt(text) SECURITY DEFINER;
\c - plain
SELECT attempt('GRANT pg_read_server_files TO plain');
SELECT attempt('GRANT rds_iam TO plain');
SELECT pg_has_role('plain', 'rds_iam', 'member');
SELECT attempt('REVOKE rds_iam FROM plain');
\c - master
ALTER FUNCTION attempt(text) SECURITY INVOKER;
-- CREATE SCHEMA with elements, procedures, triggers, prepared statements
\set VERBOSITY sqlstate
CREATE SCHEMA AUTHORIZATION rdsadmin;
CREATE SCHEMA AUTHORIZATION rdsadmin CREATE TABLE t (i int);
CREATE SCHEMA mine CREATE TABLE t (i int) GRANT SELECT ON pg_authid TO master;
\set VERBOSITY terse
CREATE PROCEDURE attempt_p() LANGUAGE plpgsql AS $$
BEGIN
	COMMIT;
	EXECUTE 'GRANT pg_execute_server_program TO master';
END $$;
CALL attempt_p();
CREATE TABLE t (i int);
CREATE FUNCTION attempt_t() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	GRANT pg_execute_server_program TO master;
	RETURN new;
END $$;
CREATE TRIGGER attempt BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION attempt_t();
INSERT INTO t VALUES (1);
CREATE FUNCTION attempt_s() RETURNS void LANGUAGE sql AS 'GRANT pg_execute_server_program TO master';
SELECT attempt_s();
CREATE FUNCTION attempt_a() RETURNS void LANGUAGE sql BEGIN ATOMIC SELECT attempt('GRANT rdsmon TO master'); END;
SELECT attempt_a();
PREPARE p AS SELECT attempt('GRANT rdsmon TO master');
EXECUTE p;
-- several statements in one query, pipelines, after errors
SELECT 1 \; GRANT rdsmon TO master;
BEGIN;
SELECT 1/0;
GRANT rdsmon TO master;
ROLLBACK;
SAVEPOINT none;
BEGIN;
SAVEPOINT s;
GRANT rdsmon TO master;
ROLLBACK TO s;
GRANT rds_iam TO plain;
ROLLBACK;
SELECT current_user, pg_has_role('plain', 'rds_iam', 'member');
SELECT rolname FROM pg_roles r JOIN pg_auth_members m ON m.roleid = r.oid WHERE m.member = 'master'::regrole AND r.rolname LIKE 'pg%' ORDER BY 1;
DROP TABLE t;
DROP FUNCTION attempt_t, attempt_s, attempt_a;
DROP FUNCTION attempt;
DROP PROCEDURE attempt_p;
