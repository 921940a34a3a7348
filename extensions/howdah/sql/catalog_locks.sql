-- No user makes a statement wait for a strong lock of a system catalog. A transaction of
-- the platform holds locks of the catalogs that every login reads, which let readers
-- pass: whoever asks for more waits, and then says 55P03.
\c - rdsadmin
CREATE SCHEMA tenant AUTHORIZATION plain;
GRANT CREATE ON DATABASE contrib_regression TO plain;
BEGIN;
LOCK TABLE pg_catalog.pg_database, pg_catalog.pg_authid, pg_catalog.pg_db_role_setting IN SHARE ROW EXCLUSIVE MODE;
SET LOCAL enable_seqscan = off;
SELECT count(*) FROM pg_database WHERE oid = 1;
PREPARE TRANSACTION 'holder';
\c - plain
SET search_path = tenant;
SET lock_timeout = '300ms';
CREATE TABLE t (oid oid, datname name);
CREATE TABLE parts (oid oid, datname name) PARTITION BY RANGE (oid);
CREATE INDEX parts_index ON parts (oid);
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
-- readers pass
SELECT count(*) > 0 FROM pg_database;
CREATE TABLE like_catalog (LIKE pg_catalog.pg_database INCLUDING ALL);
CREATE VIEW reads_catalog AS SELECT datname FROM pg_database;
CREATE TABLE copy_of_catalog AS SELECT datname FROM pg_database;
COPY (SELECT count(*) > 0 FROM pg_database) TO STDOUT;
BEGIN;
LOCK TABLE pg_database IN ACCESS SHARE MODE;
COMMIT;
EXPLAIN (COSTS OFF) SELECT FROM pg_tablespace;
\set VERBOSITY sqlstate
-- rules, triggers, policies, indexes, statistics
CREATE RULE r AS ON INSERT TO pg_catalog.pg_database DO INSTEAD NOTHING;
CREATE RULE r AS ON INSERT TO pg_database DO INSTEAD NOTHING;
CREATE OR REPLACE RULE r AS ON DELETE TO pg_authid DO INSTEAD NOTHING;
CREATE RULE r AS ON INSERT TO contrib_regression.pg_catalog.pg_database DO INSTEAD NOTHING;
CREATE RULE r AS ON INSERT TO pg_toast.pg_toast_1262 DO INSTEAD NOTHING;
COMMENT ON COLUMN contrib_regression.pg_catalog.pg_database.datname IS '';
ALTER RULE r ON pg_database RENAME TO r2;
DROP RULE r ON pg_database;
DROP RULE IF EXISTS r ON pg_catalog.pg_database;
COMMENT ON RULE r ON pg_database IS '';
CREATE TRIGGER r AFTER INSERT ON pg_database EXECUTE FUNCTION f();
CREATE CONSTRAINT TRIGGER r AFTER INSERT ON t FROM pg_database FOR EACH ROW EXECUTE FUNCTION f();
ALTER TRIGGER r ON pg_database RENAME TO r2;
ALTER TRIGGER r ON pg_database DEPENDS ON EXTENSION plpgsql;
DROP TRIGGER r ON pg_database;
COMMENT ON TRIGGER r ON pg_database IS '';
CREATE POLICY r ON pg_database;
ALTER POLICY r ON pg_database USING (true);
ALTER POLICY r ON pg_database RENAME TO r2;
DROP POLICY r ON pg_database;
COMMENT ON POLICY r ON pg_database IS '';
CREATE INDEX ON pg_database (datname);
CREATE INDEX CONCURRENTLY ON pg_database (datname);
CREATE STATISTICS r ON oid, datname FROM pg_database;
-- tables and indexes
ALTER TABLE pg_database ADD COLUMN c int;
ALTER TABLE IF EXISTS pg_catalog.pg_database SET (fillfactor = 50);
ALTER TABLE pg_database RENAME TO d;
ALTER TABLE pg_database RENAME COLUMN datname TO d;
ALTER TABLE pg_database RENAME CONSTRAINT r TO d;
ALTER TABLE pg_database SET SCHEMA tenant;
ALTER TABLE pg_database OWNER TO plain;
ALTER TABLE pg_database ENABLE ROW LEVEL SECURITY;
ALTER VIEW pg_database SET (security_barrier);
ALTER SEQUENCE pg_database RESTART;
ALTER TYPE pg_catalog.pg_database ADD ATTRIBUTE c int;
ALTER INDEX pg_catalog.pg_database_oid_index DEPENDS ON EXTENSION plpgsql;
ALTER INDEX pg_database_oid_index NO DEPENDS ON EXTENSION plpgsql;
ALTER INDEX pg_database_oid_index RENAME TO d;
ALTER INDEX pg_database_oid_index SET (fillfactor = 50);
ALTER MATERIALIZED VIEW pg_database DEPENDS ON EXTENSION plpgsql;
COMMENT ON TABLE pg_database IS '';
COMMENT ON COLUMN pg_catalog.pg_database.datname IS '';
COMMENT ON INDEX pg_database_oid_index IS '';
COMMENT ON CONSTRAINT r ON pg_database IS '';
COMMENT ON VIEW pg_database IS '';
COMMENT ON SEQUENCE pg_database IS '';
COMMENT ON MATERIALIZED VIEW pg_database IS '';
COMMENT ON FOREIGN TABLE pg_database IS '';
SECURITY LABEL ON TABLE pg_database IS '';
SECURITY LABEL ON COLUMN pg_database.datname IS '';
ALTER EXTENSION plpgsql ADD TABLE pg_database;
ALTER EXTENSION plpgsql DROP TABLE pg_database;
DROP TABLE pg_database;
DROP TABLE IF EXISTS t2, pg_catalog.pg_database CASCADE;
DROP INDEX pg_database_oid_index;
DROP VIEW pg_database;
DROP SEQUENCE pg_database;
TRUNCATE pg_database;
TRUNCATE t, pg_database;
BEGIN; LOCK TABLE pg_database; ROLLBACK;
BEGIN; LOCK TABLE pg_database IN SHARE MODE; ROLLBACK;
BEGIN; LOCK TABLE pg_database IN ROW EXCLUSIVE MODE; ROLLBACK;
CLUSTER pg_database;
CLUSTER pg_database USING pg_database_oid_index;
REINDEX TABLE pg_database;
REINDEX INDEX pg_database_oid_index;
REFRESH MATERIALIZED VIEW pg_database;
COPY pg_database FROM STDIN;
\.
-- as another's part, parent, or target of a reference
ALTER TABLE parts ATTACH PARTITION pg_catalog.pg_database DEFAULT;
ALTER TABLE parts DETACH PARTITION pg_catalog.pg_database;
ALTER TABLE parts DETACH PARTITION pg_database CONCURRENTLY;
ALTER INDEX parts_index ATTACH PARTITION pg_catalog.pg_database_oid_index;
ALTER TABLE t INHERIT pg_database;
ALTER TABLE t NO INHERIT pg_database;
ALTER TABLE t ADD FOREIGN KEY (oid) REFERENCES pg_database;
ALTER TABLE t ADD COLUMN c oid REFERENCES pg_database;
ALTER TABLE t OF pg_database;
ALTER TABLE t ENABLE TRIGGER USER, ADD CONSTRAINT c FOREIGN KEY (oid) REFERENCES pg_catalog.pg_database (oid);
CREATE TABLE t2 (oid oid REFERENCES pg_database);
CREATE TABLE t2 (oid oid, FOREIGN KEY (oid) REFERENCES pg_database (oid));
CREATE TABLE t2 () INHERITS (pg_database);
CREATE TABLE t2 PARTITION OF pg_database DEFAULT;
CREATE TABLE t2 PARTITION OF parts (oid REFERENCES pg_database) DEFAULT;
CREATE SCHEMA tenant2 CREATE TABLE t2 (oid oid REFERENCES pg_database);
CREATE SEQUENCE s OWNED BY pg_database.oid;
CREATE PUBLICATION p FOR TABLE pg_database;
DO $$ BEGIN EXECUTE 'CREATE RULE r AS ON INSERT TO pg_database DO INSTEAD NOTHING'; END $$;
ALTER PUBLICATION nobodys ADD TABLE pg_database;
-- what is only warned of
ANALYZE pg_database;
GRANT SELECT ON pg_database TO PUBLIC;
-- a name without a schema means the catalog, whatever search_path says
\set VERBOSITY terse
CREATE TABLE tenant.pg_database (oid oid);
SET search_path = tenant, pg_catalog;
CREATE RULE r AS ON INSERT TO pg_database DO INSTEAD NOTHING;
COMMENT ON TABLE pg_database IS 'mine';
-- and users' own relations of such a name are theirs
CREATE RULE r AS ON INSERT TO tenant.pg_database DO INSTEAD NOTHING;
COMMENT ON TABLE tenant.pg_database IS 'mine';
COMMENT ON COLUMN tenant.pg_database.oid IS 'mine';
DROP TABLE tenant.pg_database;
-- a schema is locked for its owner before it is renamed
ALTER SCHEMA tenant RENAME TO lodger;
ALTER SCHEMA lodger RENAME TO tenant;
\c - rdsadmin
ROLLBACK PREPARED 'holder';
DROP SCHEMA tenant CASCADE;
REVOKE CREATE ON DATABASE contrib_regression FROM plain;
