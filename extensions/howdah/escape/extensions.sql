-- What surrounds CREATE, ALTER and DROP EXTENSION: the list, the schema, settings, versions.

-- attempt: extensions that reach files, programs and raw pages
-- as: master
CREATE EXTENSION adminpack;
CREATE EXTENSION file_fdw;
CREATE EXTENSION pageinspect;
CREATE EXTENSION pg_surgery;
CREATE EXTENSION pg_walinspect;
CREATE EXTENSION old_snapshot;
CREATE EXTENSION xml2;
SELECT 'there are ' || count(*) FROM pg_extension WHERE extname <> 'rds_tools';
-- sees: "adminpack" is not supported on this instance
-- sees: there are 1$

-- attempt: untrusted languages
-- as: master
CREATE EXTENSION plperlu;
CREATE LANGUAGE plpython3u;
CREATE EXTENSION pltclu CASCADE;
CREATE EXTENSION hstore_plperlu CASCADE;
CREATE EXTENSION jsonb_plperlu CASCADE;
SELECT 'there are ' || count(*) FROM pg_language;
-- sees: "plperlu" is not supported on this instance
-- sees: there are 4$

-- attempt: one that is not listed, as what another requires
-- as: plain
CREATE EXTENSION hstore_plperlu CASCADE;
CREATE EXTENSION IF NOT EXISTS file_fdw;
-- sees: "hstore_plperlu" is not supported
-- sees: "file_fdw" is not supported

-- attempt: by another spelling of its name
-- as: master
CREATE EXTENSION "FILE_FDW";
CREATE EXTENSION "../../x";
CREATE EXTENSION "citext--1.4";
CREATE EXTENSION "citext, file_fdw";
-- sees: "FILE_FDW" is not supported
-- sees: "../../x" is not supported
-- sees: "citext, file_fdw" is not supported

-- attempt: a script of one's own, by a version that is a path
-- as: master
CREATE EXTENSION hstore VERSION '../../../../tmp/x';
CREATE EXTENSION hstore VERSION '1.4/../x';
CREATE EXTENSION hstore;
ALTER EXTENSION hstore UPDATE TO '../x';
-- sees: invalid extension version name

-- attempt: into the schema where everybody looks first
-- as: master
CREATE EXTENSION hstore SCHEMA pg_catalog;
SET search_path = pg_catalog;
CREATE EXTENSION citext;
CREATE EXTENSION postgres_fdw;
CREATE EXTENSION earthdistance SCHEMA information_schema CASCADE;
ALTER EXTENSION plpgsql SET SCHEMA public;
-- sees: permission denied to place an extension in schema "pg_catalog"
-- sees: permission denied to place an extension in schema "information_schema"
-- sees: must be owner of extension plpgsql|does not support SET SCHEMA

-- attempt: moved there when it is made
-- as: master
CREATE EXTENSION hstore;
ALTER EXTENSION hstore SET SCHEMA pg_catalog;
ALTER EXTENSION hstore SET SCHEMA information_schema;
SELECT 'it is in ' || extnamespace::regnamespace FROM pg_extension WHERE extname = 'hstore';
-- sees: it is in public

-- attempt: at the start of the statement an event trigger moves where it goes
-- as: master
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM set_config('search_path', 'pg_catalog', false); END $$;
CREATE EVENT TRIGGER et ON ddl_command_start EXECUTE FUNCTION et();
CREATE EXTENSION citext;
CREATE EXTENSION postgres_fdw;
SELECT 'there are ' || count(*) FROM pg_extension WHERE extname <> 'rds_tools';
-- sees: permission denied to place an extension in schema "pg_catalog"
-- sees: there are 1$

-- attempt: there already, where an extension may not be
-- as: master
CREATE EXTENSION IF NOT EXISTS plpgsql SCHEMA pg_catalog CASCADE;
CREATE EXTENSION plpgsql;
SET search_path = gone;
CREATE EXTENSION hstore;
SET search_path = gone, pg_catalog;
CREATE EXTENSION dblink;
SELECT 'there are ' || count(*) FROM pg_extension WHERE extname <> 'rds_tools';
-- sees: NOTICE:  extension "plpgsql" already exists, skipping
-- sees: ERROR:  extension "plpgsql" already exists
-- sees: no schema has been selected to create in
-- sees: permission denied to place an extension in schema "pg_catalog"
-- sees: there are 1$

-- attempt: into the schema of another
-- as: plain
CREATE EXTENSION hstore SCHEMA public;
-- as: master
CREATE SCHEMA theirs;
GRANT CREATE ON DATABASE target TO plain;
-- as: plain
CREATE EXTENSION pg_buffercache SCHEMA theirs;
-- sees: permission denied to create extension "hstore"
-- sees: permission denied to create extension "pg_buffercache"

-- attempt: literals that mean something else in the script
-- as: master
SET standard_conforming_strings = off;
SET transform_null_equals = on;
SET array_nulls = off;
SET backslash_quote = on;
CREATE EXTENSION pg_trgm;
CREATE EXTENSION postgres_fdw;
SELECT 'made ' || count(*) FROM pg_extension WHERE extname <> 'rds_tools';
-- sees: made 3

-- attempt: settings of an event trigger at the start, for the script
-- as: master
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('standard_conforming_strings', 'off', false), set_config('session_replication_role', 'replica', false), set_config('role', 'rdsadmin', false); END $$;
CREATE EVENT TRIGGER et ON ddl_command_start EXECUTE FUNCTION et();
CREATE EXTENSION postgres_fdw;
-- sees: permission denied to set role "rdsadmin"

-- attempt: a role that the session took while the extension is made
-- as: master
CREATE ROLE other;
GRANT other TO master;
GRANT CREATE ON DATABASE target TO other;
SET ROLE other;
CREATE EXTENSION postgres_fdw;
RESET ROLE;
CREATE EXTENSION postgres_fdw;
DROP OWNED BY other;
SELECT 'owned by ' || extowner::regrole FROM pg_extension WHERE extname = 'postgres_fdw';
-- sees: permission denied to create extension|permission denied for
-- sees: owned by master

-- attempt: its owner gives it away, and takes another's
-- as: master
CREATE EXTENSION postgres_fdw;
ALTER FOREIGN DATA WRAPPER postgres_fdw OWNER TO master;
ALTER FUNCTION postgres_fdw_handler() OWNER TO master;
DROP EXTENSION plpgsql;
-- as: plain
DROP EXTENSION postgres_fdw;
ALTER EXTENSION postgres_fdw UPDATE;
-- sees: must be (owner of|superuser)|permission denied to change owner
-- sees: must be owner of extension plpgsql
-- sees: must be owner of extension postgres_fdw

-- attempt: a wrapper without its validator
-- as: master
CREATE EXTENSION postgres_fdw;
ALTER FOREIGN DATA WRAPPER postgres_fdw NO VALIDATOR;
ALTER FOREIGN DATA WRAPPER postgres_fdw OPTIONS (ADD x 'y');
ALTER FOREIGN DATA WRAPPER postgres_fdw HANDLER plpgsql_call_handler;
CREATE FOREIGN DATA WRAPPER mine HANDLER postgres_fdw_handler NO VALIDATOR;
-- sees: permission denied to alter foreign-data wrapper "postgres_fdw"
-- sees: permission denied to create foreign-data wrapper "mine"

-- attempt: what an extension keeps from the public
-- as: master
CREATE EXTENSION dblink;
CREATE EXTENSION pg_stat_statements;
SELECT dblink_connect_u('dbname=postgres user=rdsadmin host={socket} port={port}');
GRANT EXECUTE ON FUNCTION dblink_connect_u(text) TO master;
ALTER FUNCTION dblink_connect_u(text) SECURITY INVOKER;
-- sees: permission denied for function dblink_connect_u
-- sees: must be owner of function dblink_connect_u

-- attempt: an aggregate of the user's where a script calls a function
-- as: master
CREATE AGGREGATE public.format_type(oid, int) (SFUNC = int48pl, STYPE = int8, INITCOND = '0');
CREATE AGGREGATE public.max(text) (SFUNC = textcat, STYPE = text);
CREATE EXTENSION citext SCHEMA public;
CREATE EXTENSION cube SCHEMA public;
CREATE EXTENSION seg SCHEMA public;
-- not: as rdsadmin

-- attempt: a cast of the user's in what a script compares
-- as: master
CREATE TYPE public.mine AS (i int);
CREATE FUNCTION public.to_mine(name) RETURNS public.mine LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN NULL; END $$;
CREATE CAST (name AS public.mine) WITH FUNCTION public.to_mine(name) AS IMPLICIT;
CREATE EXTENSION citext SCHEMA public;
CREATE EXTENSION ltree SCHEMA public;
SELECT 'made ' || count(*) FROM pg_extension WHERE extname <> 'rds_tools';
-- sees: made 3

-- attempt: a domain in the place of a type that another extension has
-- as: master
CREATE SCHEMA c;
CREATE SCHEMA e;
CREATE EXTENSION cube SCHEMA c;
CREATE DOMAIN e.cube AS c.cube;
CREATE FUNCTION e.cube_dim(e.cube) RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 3; END $$;
CREATE EXTENSION earthdistance SCHEMA e;
SELECT e.ll_to_earth(1, 1) IS NOT NULL AS lives;
DROP EXTENSION IF EXISTS earthdistance;
-- not: SUPERUSER

-- attempt: a function in the place of one that another extension has
-- as: master
CREATE SCHEMA c;
CREATE SCHEMA e;
CREATE EXTENSION cube SCHEMA c;
CREATE FUNCTION e.cube_is_point(c.cube) RETURNS bool LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM set_config('search_path', 'e', false); RETURN true; END $$;
CREATE EXTENSION earthdistance SCHEMA e;
DROP EXTENSION IF EXISTS earthdistance;
-- not: superuser rights$

-- attempt: a plan of the script's function that was made before
-- as: master
CREATE EXTENSION hstore VERSION '1.4';
PREPARE p AS SELECT hstore('a', 'b') -> 'a';
EXECUTE p; EXECUTE p; EXECUTE p; EXECUTE p; EXECUTE p; EXECUTE p;
CREATE FUNCTION public.fetchval(hstore, unknown) RETURNS text LANGUAGE sql AS 'SELECT current_user::text';
ALTER EXTENSION hstore UPDATE;
EXECUTE p;
-- not: rdsadmin

-- attempt: nested in a function of the user's with other rights
-- as: master
CREATE FUNCTION nested() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$ BEGIN CREATE EXTENSION postgres_fdw; END $$;
GRANT EXECUTE ON FUNCTION nested TO plain;
-- as: plain
SELECT public.nested();
-- sees: permission denied to place an extension in schema "pg_catalog"

-- attempt: broken off in the middle, and gone on with
-- as: master
BEGIN;
CREATE EXTENSION postgres_fdw;
SAVEPOINT s;
CREATE EXTENSION file_fdw;
ROLLBACK TO s;
CREATE ROLE other SUPERUSER;
ROLLBACK TO s;
SELECT 'still ' || current_user || ', ' || current_setting('is_superuser');
COMMIT;
-- sees: still master, off

-- attempt: cancelled in the middle, and gone on with
-- as: master
SET statement_timeout = '1ms';
CREATE EXTENSION hstore;
CREATE EXTENSION postgres_fdw;
CREATE EXTENSION isn;
SET statement_timeout = 0;
ALTER ROLE master SUPERUSER;
COPY (SELECT 1) TO PROGRAM 'touch {dir}/escaped';
SELECT 'still ' || current_user;
-- sees: permission denied to give a role the attribute SUPERUSER
-- sees: still master
