-- Becoming somebody else in a session: roles, owners, SECURITY DEFINER.

-- attempt: the platform's roles by SET
-- as: master
SET ROLE rdsadmin;
SET ROLE rdsrepladmin;
SET ROLE pg_execute_server_program;
SET SESSION AUTHORIZATION rdsadmin;
SELECT set_config('role', 'rdsadmin', false);
SELECT set_config('session_authorization', 'rdsadmin', false);
SELECT set_config('is_superuser', 'on', false);
SELECT 'still ' || current_user || ', ' || current_setting('is_superuser');
-- sees: permission denied to set role "rdsadmin"
-- sees: permission denied to set session authorization
-- sees: parameter "is_superuser" cannot be changed
-- sees: still master, off

-- attempt: the same by a plain user
-- as: plain
SET ROLE rdsadmin;
SET ROLE master;
SET ROLE rds_superuser;
SET SESSION AUTHORIZATION rdsmon;
-- sees: permission denied to set role "rdsadmin"
-- sees: permission denied to set role "master"
-- sees: permission denied to set role "rds_superuser"

-- attempt: a role that a function is to run with
-- as: master
CREATE FUNCTION become() RETURNS name LANGUAGE sql SET role = rdsadmin AS 'SELECT current_user';
CREATE FUNCTION become2() RETURNS name LANGUAGE sql SET session_authorization = rdsadmin AS 'SELECT current_user';
CREATE FUNCTION become3() RETURNS name LANGUAGE plpgsql AS 'BEGIN SET LOCAL ROLE rdsadmin; RETURN current_user; END';
SELECT become();
SELECT become2();
SELECT become3();
-- sees: permission denied to set role "rdsadmin"
-- not: ^ *rdsadmin$

-- attempt: a role of the database, or of the user, for the next session
-- as: master
ALTER DATABASE target SET role = 'rdsadmin';
ALTER ROLE master SET role = 'rdsadmin';
ALTER ROLE master SET session_authorization = 'rdsadmin';
-- as: master
SELECT 'still ' || current_user;
-- sees: still master

-- attempt: a function given to the platform, to run with its rights
-- as: master
CREATE FUNCTION f() RETURNS name LANGUAGE sql SECURITY DEFINER AS 'SELECT current_user';
ALTER FUNCTION f() OWNER TO rdsadmin;
ALTER FUNCTION f() OWNER TO rds_superuser;
ALTER FUNCTION f() OWNER TO pg_execute_server_program;
ALTER ROUTINE f() OWNER TO rdsmon;
SELECT 'runs as ' || f();
-- sees: must be (member of role|able to SET ROLE) "rdsadmin"
-- sees: runs as (master|rds_superuser)

-- attempt: a table with a trigger, or a view, given to the platform
-- as: master
CREATE TABLE t (i int);
CREATE VIEW v AS SELECT * FROM pg_authid;
CREATE MATERIALIZED VIEW m AS SELECT 1;
ALTER TABLE t OWNER TO rdsadmin;
ALTER VIEW v OWNER TO rdsadmin;
ALTER MATERIALIZED VIEW m OWNER TO rdsadmin;
ALTER SCHEMA public OWNER TO rdsadmin;
ALTER DATABASE target OWNER TO rdsadmin;
SELECT * FROM v;
-- sees: must be (member of role|able to SET ROLE) "rdsadmin"
-- sees: permission denied for table pg_authid

-- attempt: a schema made for the platform
-- as: master
CREATE SCHEMA AUTHORIZATION rdsadmin;
CREATE SCHEMA x AUTHORIZATION rdsadmin CREATE TABLE t (i int);
CREATE SCHEMA x CREATE VIEW v AS SELECT rolpassword FROM pg_authid GRANT SELECT ON v TO plain;
SELECT * FROM x.v;
ALTER DEFAULT PRIVILEGES FOR ROLE rdsadmin GRANT ALL ON TABLES TO master;
-- sees: must be (member of role|able to SET ROLE) "rdsadmin"
-- sees: permission denied (for table pg_authid|to change default privileges)

-- attempt: a policy, a rule or a trigger where the platform reads
-- as: master
CREATE POLICY p ON pg_authid USING (true);
CREATE RULE r AS ON SELECT TO pg_roles DO INSTEAD SELECT 1;
CREATE TRIGGER tr BEFORE INSERT ON pg_authid EXECUTE FUNCTION suppress_redundant_updates_trigger();
ALTER TABLE pg_class DISABLE ROW LEVEL SECURITY;
-- sees: "pg_authid" is a system catalog
-- sees: "pg_roles" is a system catalog

-- attempt: back to the platform in a function of the user's that the platform's functions call
-- as: rdsadmin
CREATE FUNCTION public.careless(text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN lower($1); END $$;
-- as: master
CREATE FUNCTION public.lower(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 'x'; END $$;
SET search_path = public, pg_catalog;
SELECT careless('A');
-- as: rdsadmin
DROP FUNCTION public.careless;
-- sees: function public.lower\(pg_catalog.text\) may not run with superuser rights

-- attempt: the same with its owner's rights, to change what comes next
-- as: rdsadmin
CREATE FUNCTION public.careless(text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$ BEGIN RETURN public.given($1) || lower('A'); END $$;
-- as: master
CREATE FUNCTION public.given(text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM set_config('search_path', 'evil', false); RETURN 'x'; END $$;
SELECT careless('A');
-- as: rdsadmin
DROP FUNCTION public.careless;
-- sees: function public.given\(pg_catalog.text\) may not run with superuser rights

-- attempt: an operator in a function of the platform's
-- as: rdsadmin
CREATE FUNCTION public.careless(int) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN $1 OPERATOR(public.<+>) 1; END $$;
-- as: master
CREATE FUNCTION public.plus(int, int) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM set_config('search_path', 'evil', false); RETURN true; END $$;
CREATE OPERATOR public.<+> (LEFTARG = int, RIGHTARG = int, FUNCTION = public.plus);
SELECT careless(1);
-- as: rdsadmin
DROP FUNCTION public.careless;
-- sees: function public.plus\(integer,integer\) may not run with superuser rights

-- attempt: a sort, a default and a domain in a function of the platform's
-- as: master
CREATE FUNCTION public.yes(text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM set_config('search_path', 'evil', false); RETURN true; END $$;
CREATE DOMAIN public.checked AS text CHECK (public.yes(VALUE));
CREATE TABLE public.t (c public.checked DEFAULT 'x', b boolean DEFAULT public.yes('x'));
GRANT ALL ON public.t TO PUBLIC;
-- as: rdsadmin
INSERT INTO public.t DEFAULT VALUES;
SELECT 'x'::public.checked;
SHOW search_path;
-- sees: function public.yes\(pg_catalog.text\) may not run with superuser rights
-- sees: pg_catalog, pg_temp
