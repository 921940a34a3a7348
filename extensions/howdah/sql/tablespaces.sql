-- Tablespaces of master users are kept in the data directory.
\set VERBOSITY terse
\c - master
CREATE TABLESPACE mine LOCATION '/anything';
SELECT spcname, pg_get_userbyid(spcowner) AS owner,
	pg_tablespace_location(oid) = 'pg_tblspc/' || oid AS in_place
FROM pg_tablespace WHERE spcname = 'mine';
CREATE TABLE stored (i int) TABLESPACE mine;
INSERT INTO stored SELECT generate_series(1, 100);
SELECT count(*) FROM stored;
CREATE TABLESPACE mine LOCATION '/anything';
-- options, owners
CREATE ROLE app;
GRANT app TO master;
CREATE TABLESPACE apps OWNER app LOCATION '' WITH (random_page_cost = 1.5);
SELECT pg_get_userbyid(spcowner) AS owner, spcoptions FROM pg_tablespace WHERE spcname = 'apps';
CREATE TABLESPACE theirs OWNER rdsadmin LOCATION '/x';
CREATE TABLESPACE theirs OWNER manager LOCATION '/x';
CREATE TABLESPACE pg_mine LOCATION '/x';
-- never as part of something else
BEGIN;
CREATE TABLESPACE inside LOCATION '/x';
ROLLBACK;
DO $$ BEGIN EXECUTE $q$CREATE TABLESPACE inside LOCATION '/x'$q$; END $$;
SELECT current_user;
-- what owners may
ALTER TABLESPACE mine RENAME TO mine2;
ALTER TABLESPACE mine2 SET (seq_page_cost = 2);
GRANT CREATE ON TABLESPACE mine2 TO plain;
DROP TABLESPACE mine2;
DROP TABLE stored;
DROP TABLESPACE mine2;
DROP TABLESPACE apps;
DROP ROLE app;
-- only master users
\set VERBOSITY sqlstate
\c - manager
CREATE TABLESPACE x LOCATION '/x';
\c - plain
CREATE TABLESPACE x LOCATION '';
\c - master
DROP TABLESPACE pg_default;
ALTER TABLESPACE pg_global OWNER TO master;
