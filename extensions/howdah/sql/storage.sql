-- Where the storage is used up, users may only give some back.
\set VERBOSITY terse
\c - master
CREATE TABLE kept (i int PRIMARY KEY, t text);
INSERT INTO kept SELECT i, 'x' FROM generate_series(1, 10) i;
CREATE TABLE dropped (i int);
CREATE MATERIALIZED VIEW seen AS SELECT count(*) FROM kept;
PREPARE put AS INSERT INTO kept VALUES (11, 'prepared');
PREPARE gone AS DELETE FROM kept WHERE i = 9;
CREATE FUNCTION puts() RETURNS void LANGUAGE sql AS $$INSERT INTO kept VALUES (12, 'function')$$;
CREATE FUNCTION puts_as_owner() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN INSERT INTO kept VALUES (13, 'owner'); END$$;
SELECT lo_create(4711);
SHOW howdah.storage_full;
SET howdah.storage_full = on;
ALTER SYSTEM SET howdah.storage_full = on;
CREATE FUNCTION full_() RETURNS void LANGUAGE c AS 'howdah', 'howdah_storage_full';
\c rdsadmin rdsadmin
CREATE OR REPLACE FUNCTION public.howdah_storage_full(boolean) RETURNS void LANGUAGE c STRICT AS 'howdah', 'howdah_storage_full';
SET ROLE master;
SELECT public.howdah_storage_full(true);
RESET ROLE;
SELECT public.howdah_storage_full(true);
SHOW howdah.storage_full;
\c contrib_regression master
PREPARE put AS INSERT INTO kept VALUES (11, 'prepared');
PREPARE gone AS DELETE FROM kept WHERE i = 9;
-- what takes storage
INSERT INTO kept VALUES (20, 'x');
UPDATE kept SET t = 'y';
WITH w AS (INSERT INTO kept VALUES (21, 'x') RETURNING i) SELECT * FROM w;
COPY kept FROM stdin;
22	x
\.
SELECT i INTO copied FROM kept;
CREATE TABLE copied AS SELECT * FROM kept;
EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) CREATE TABLE copied AS SELECT * FROM kept;
EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) INSERT INTO kept VALUES (23, 'x');
CREATE TABLE more (i int);
CREATE INDEX ON kept (t);
REINDEX TABLE kept;
VACUUM FULL kept;
CLUSTER kept USING kept_pkey;
ALTER TABLE kept ADD COLUMN more int DEFAULT random();
REFRESH MATERIALIZED VIEW seen;
CREATE DATABASE more;
CREATE EXTENSION howdah_plain;
EXECUTE put;
SELECT puts();
SELECT puts_as_owner();
DO $$BEGIN INSERT INTO kept VALUES (24, 'x'); END$$;
-- functions that write for who only reads
SELECT lo_put(4711, 0, 'x');
SELECT lo_creat(-1);
SELECT lo_create(4712);
SELECT lo_from_bytea(4712, 'x');
SELECT lowrite(lo_open(4711, 131072), 'x');
SELECT lo_truncate(lo_open(4711, 131072), 1000000);
DO $$DECLARE o oid; BEGIN o := lo_create(4713); END$$;
SELECT pg_logical_emit_message(false, 'a', repeat('x', 1000));
SELECT pg_logical_emit_message(true, 'a', 'x'::bytea);
SELECT pg_create_logical_replication_slot('s', 'pgoutput');
SELECT lo_get(4711);
\set VERBOSITY default
INSERT INTO kept VALUES (20, 'x');
\set VERBOSITY terse
-- what reads, gives some back, or takes next to nothing
SELECT count(*) FROM kept;
EXPLAIN (COSTS off) INSERT INTO kept VALUES (25, 'x');
COPY (SELECT 1) TO stdout;
BEGIN;
SAVEPOINT s;
DELETE FROM kept WHERE i = 10;
ROLLBACK TO s;
COMMIT;
DELETE FROM kept WHERE i = 10;
EXECUTE gone;
VACUUM kept;
VACUUM (FULL false) kept;
ANALYZE kept;
SET work_mem = '2MB';
ALTER ROLE master SET work_mem = '2MB';
ALTER ROLE master RESET work_mem;
GRANT SELECT ON kept TO plain;
DROP TABLE dropped;
TRUNCATE kept;
SELECT count(*) FROM kept;
-- the platform goes on
\c contrib_regression rdsadmin
CREATE TABLE public.platform (i int);
INSERT INTO public.platform VALUES (1);
DROP TABLE public.platform;
-- far over: reading may take storage, too
\c rdsadmin rdsadmin
CREATE OR REPLACE FUNCTION public.howdah_storage_level(integer) RETURNS void LANGUAGE c STRICT AS 'howdah', 'howdah_storage_level';
SET ROLE master;
SELECT public.howdah_storage_level(0);
RESET ROLE;
SELECT public.howdah_storage_level(3);
\c contrib_regression master
CREATE TABLE dropped (i int);
\c rdsadmin rdsadmin
SELECT public.howdah_storage_level(0);
\c contrib_regression master
CREATE TABLE dropped (i int);
\c rdsadmin rdsadmin
SELECT public.howdah_storage_level(2);
\c contrib_regression master
SHOW howdah.storage_full;
SELECT count(*) FROM kept;
EXPLAIN SELECT 1;
DELETE FROM kept;
VACUUM kept;
NOTIFY channel;
DO $$BEGIN END$$;
COPY (SELECT 1) TO stdout;
BEGIN;
TRUNCATE kept;
DROP TABLE dropped;
COMMIT;
SET work_mem = '2MB';
\c contrib_regression rdsadmin
SELECT count(*) FROM public.kept;
-- over
\c rdsadmin rdsadmin
SELECT public.howdah_storage_full(false);
DROP FUNCTION public.howdah_storage_full(boolean), public.howdah_storage_level(integer);
\c contrib_regression master
SHOW howdah.storage_full;
SELECT lo_unlink(4711);
INSERT INTO kept VALUES (1, 'again');
DROP MATERIALIZED VIEW seen;
DROP TABLE kept;
DROP FUNCTION puts(), puts_as_owner();
