-- Things of a user's by the names that an extension's script makes: it must neither take
-- them over nor call them (CVE-2022-2625 and its kin), for every extension of the list.

-- attempt: a function by a name that the script makes
-- each: extension with functions
-- as: master
CREATE FUNCTION public.{function} RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 1; END $$;
CREATE EXTENSION {extension} SCHEMA public CASCADE;
SELECT 'made ' || count(*) FROM pg_extension WHERE extname = '{name}';
-- sees: already exists|is not a member of extension|is already installed in schema|cannot change return type of existing function|cannot change name of input parameter
-- sees: made 0

-- attempt: functions of all its names in the schema of what it requires
-- each: extension that requires another
-- as: master
SET client_min_messages = error;
CREATE SCHEMA trap;
{decoys}
SET search_path = trap, public;
CREATE EXTENSION {extension} {into} CASCADE;
SELECT 'made ' || count(*) FROM pg_extension WHERE extname = '{name}';
-- sees: made 1|is already installed in schema|type "geometry" does not exist

-- attempt: a function that the update would make
-- each: updated extension
-- as: master
SET client_min_messages = error;
CREATE SCHEMA trap;
CREATE EXTENSION {extension} {trap} VERSION '{oldest}' CASCADE;
{decoys}
ALTER EXTENSION {extension} UPDATE;
SELECT 'there ' || count(*) FROM pg_extension WHERE extname = '{name}';
-- sees: there 1

-- attempt: its functions, replaced when they are there
-- each: extension with functions
-- as: master
SET client_min_messages = error;
CREATE SCHEMA trap;
CREATE EXTENSION {extension} SCHEMA trap CASCADE;
CREATE OR REPLACE FUNCTION trap.{function} RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN 1; END $$;
ALTER FUNCTION trap.{function} OWNER TO master;
ALTER FUNCTION trap.{function} SECURITY DEFINER;
SELECT prosecdef || ' of ' || proowner::regrole FROM pg_proc WHERE oid = 'trap.{function}'::regprocedure;
-- sees: ERROR:  must be owner of function
-- sees: of rdsadmin

-- attempt: an operator by the name of one of a script's
-- as: master
CREATE FUNCTION public.yes(text, text) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
CREATE OPERATOR public.% (LEFTARG = text, RIGHTARG = text, FUNCTION = public.yes);
CREATE EXTENSION pg_trgm SCHEMA public;
-- sees: ERROR:  operator .* already exists|must be owner of operator|operator % already exists

-- attempt: a type by the name of one of a script's
-- as: master
CREATE DOMAIN public.hstore AS text CHECK (VALUE <> 'x');
CREATE EXTENSION hstore SCHEMA public;
-- sees: ERROR:  type "hstore" already exists

-- attempt: a shell type, which a script would fill
-- as: master
CREATE TYPE public.cube;
CREATE EXTENSION cube SCHEMA public;
-- sees: permission denied|must be superuser|already exists|is not a member

-- attempt: a table with the row type of a script's name
-- as: master
CREATE TABLE public.tablefunc_crosstab_2 (row_name text);
CREATE EXTENSION tablefunc SCHEMA public;
-- sees: ERROR:  type "tablefunc_crosstab_2" already exists|ERROR:  relation "tablefunc_crosstab_2" already exists

-- attempt: a view that a script makes
-- as: master
CREATE VIEW public.pg_buffercache AS SELECT 1 AS bufferid;
CREATE EXTENSION pg_buffercache SCHEMA public;
-- sees: is not a member of extension|already exists

-- attempt: a view that an update replaces
-- as: master
CREATE SCHEMA s;
CREATE EXTENSION pg_stat_statements SCHEMA s VERSION '1.4';
CREATE OR REPLACE VIEW s.pg_stat_statements AS SELECT 1;
DROP VIEW s.pg_stat_statements;
-- sees: must be owner of view pg_stat_statements
-- sees: must be owner of view pg_stat_statements|cannot drop view

-- attempt: one's own put into an extension, to be replaced by its update
-- as: master
CREATE EXTENSION pg_stat_statements VERSION '1.8';
CREATE FUNCTION public.pg_stat_statements_info(OUT dealloc bigint, OUT stats_reset timestamptz) RETURNS record LANGUAGE sql AS 'SELECT 1, now()';
ALTER EXTENSION pg_stat_statements ADD FUNCTION public.pg_stat_statements_info();
ALTER EXTENSION pg_stat_statements UPDATE;
-- sees: permission denied to change the members of extension
-- sees: already exists|not a member

-- attempt: members taken out of an extension
-- as: master
CREATE EXTENSION postgres_fdw;
ALTER EXTENSION postgres_fdw DROP FUNCTION postgres_fdw_validator(text[], oid);
ALTER EXTENSION postgres_fdw DROP FOREIGN DATA WRAPPER postgres_fdw;
DROP FUNCTION postgres_fdw_validator(text[], oid);
-- sees: permission denied to change the members of extension
-- sees: must be owner of function|cannot drop function

-- attempt: a better fit for a call of the script, in its schema
-- as: master
CREATE FUNCTION public.format_type(oid, int) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT 1::text';
CREATE FUNCTION public.array_lower(text[], int) RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1';
CREATE FUNCTION public.to_regtype(name) RETURNS regtype LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN ALTER ROLE master SUPERUSER; END $$;
CREATE EXTENSION citext SCHEMA public;
CREATE EXTENSION ltree SCHEMA public;
SELECT 'made ' || count(*) FROM pg_extension WHERE extname IN ('citext', 'ltree');
-- sees: made 2

-- attempt: operators that fit the updates of catalogs in scripts
-- as: master
CREATE FUNCTION public.both(oid, regtype) RETURNS bool LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM set_config('search_path', 'evil', false); RETURN true; END $$;
CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = regtype, FUNCTION = public.both);
CREATE FUNCTION public.both(name, text) RETURNS bool LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM set_config('search_path', 'evil', false); RETURN true; END $$;
CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = text, FUNCTION = public.both);
CREATE EXTENSION citext SCHEMA public VERSION '1.4';
ALTER EXTENSION citext UPDATE;
CREATE EXTENSION btree_gist SCHEMA public VERSION '1.2';
ALTER EXTENSION btree_gist UPDATE;
CREATE EXTENSION seg SCHEMA public;
CREATE EXTENSION intarray SCHEMA public;
SHOW search_path;
-- sees: "\$user", public
