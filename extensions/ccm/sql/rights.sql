-- Who may do what. A tenant's master user may be the owner of the database and
-- hand out every role that is no superuser's.
CREATE ROLE tenant LOGIN CREATEROLE CREATEDB;
CREATE ROLE monitor LOGIN IN ROLE pg_monitor;
CREATE ROLE asks LOGIN REPLICATION IN ROLE ccm_reader;
CREATE ROLE replicates LOGIN REPLICATION;
GRANT ALL ON DATABASE contrib_regression TO tenant;
\set VERBOSITY sqlstate

\c - tenant
SELECT count(*) FROM aurora_ccm_status();
SELECT ccm.filter(0, 1, 0);
SELECT ccm.pull('', 0, 1, 3, 1, 0);
SELECT ccm.contains('', 1, 1, 1, 0, 1);
SELECT ccm.status();
SELECT ccm.reader_status();
SET ccm.enabled = off;
ALTER SYSTEM SET ccm.enabled = off;
ALTER ROLE tenant SET ccm.rate = 0;
SET ccm.unknown = 1;
SHOW ccm.upstream_conninfo;
CREATE FUNCTION ccm.pull(bytea) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE OR REPLACE FUNCTION pg_catalog.aurora_ccm_status() RETURNS int LANGUAGE sql AS 'SELECT 1';
DROP EXTENSION ccm;
DROP SCHEMA ccm CASCADE;

-- membership is not enough, whoever has given it
\c - postgres
GRANT ccm_reader TO tenant;
\c - tenant
SELECT ccm.filter(0, 1, 0);
SELECT ccm.pull('', 0, 1, 3, 1, 0);
SELECT ccm.contains('', 1, 1, 1, 0, 1);
ALTER ROLE tenant REPLICATION;

-- and what a replication login may do anyway is not, either
\c - replicates
SELECT ccm.pull('', 0, 1, 3, 1, 0);

\c - monitor
SELECT count(*) FROM ccm.status();
SELECT count(*) FROM ccm.reader_status();
SELECT ccm.filter(0, 1, 0);

\c - asks
SELECT length(ccm.filter(0, 1, 0)) > 64 AS filter;
SELECT found >= 0 AS pull FROM ccm.pull(ccm.filter(0, 1, 0), 0, 1, 3, 1, 0);

-- a tenant's code in a session of somebody who may ask: as the rights of
-- another, by a function with its owner's rights, in a restricted operation
\c - postgres
GRANT ccm_reader TO monitor;
SET ROLE monitor;
SELECT ccm.filter(0, 1, 0);
RESET ROLE;
CREATE FUNCTION definer() RETURNS bytea LANGUAGE sql SECURITY DEFINER AS 'SELECT ccm.filter(0, 1, 0)';
GRANT ALL ON SCHEMA public TO monitor;
ALTER FUNCTION definer OWNER TO monitor;
SELECT definer();
CREATE FUNCTION innocent(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'SELECT ccm.filter(0, 1, 0)';
  RETURN $1;
END $$;
CREATE TABLE bait AS SELECT 1 AS i;
CREATE INDEX ON bait (innocent(i));
DROP TABLE bait;
DROP FUNCTION innocent(int), definer();
REVOKE ALL ON SCHEMA public FROM monitor;

REVOKE ALL ON DATABASE contrib_regression FROM tenant;
DROP ROLE tenant, monitor, asks, replicates;
-- A schema of this name that somebody else has made stops the extension.
DROP EXTENSION ccm;
CREATE SCHEMA ccm;
\set VERBOSITY terse
CREATE EXTENSION ccm;
DROP SCHEMA ccm;
CREATE EXTENSION ccm;
SELECT count(*) FROM pg_roles WHERE rolname = 'ccm_reader';

-- Nor does a role that can log in, which somebody has made for this, get rights.
DROP EXTENSION ccm;
ALTER ROLE ccm_reader LOGIN;
CREATE EXTENSION ccm;
SELECT has_schema_privilege('ccm_reader', 'ccm', 'USAGE'), has_function_privilege('ccm_reader', 'ccm.pull(bytea,int,int,int,int,int)', 'EXECUTE');
DROP EXTENSION ccm;
ALTER ROLE ccm_reader NOLOGIN;
CREATE EXTENSION ccm;
SELECT has_schema_privilege('ccm_reader', 'ccm', 'USAGE'), has_function_privilege('ccm_reader', 'ccm.pull(bytea,int,int,int,int,int)', 'EXECUTE');
