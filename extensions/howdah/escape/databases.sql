-- Other databases: the platform's, templates, and names that are more than names.

-- attempt: into the platform's database
-- in: rdsadmin
-- as: master
SELECT 'in';
-- in: rdsadmin
-- as: plain
SELECT 'in';
-- sees: pg_hba.conf rejects connection|permission denied for database "rdsadmin"
-- not: ^in$

-- attempt: the platform's database changed
-- as: master
ALTER DATABASE rdsadmin OWNER TO master;
ALTER DATABASE rdsadmin RENAME TO other;
ALTER DATABASE rdsadmin SET search_path = evil;
ALTER DATABASE rdsadmin CONNECTION LIMIT 0;
ALTER DATABASE rdsadmin WITH ALLOW_CONNECTIONS false;
ALTER DATABASE rdsadmin IS_TEMPLATE true;
COMMENT ON DATABASE rdsadmin IS 'mine';
DROP DATABASE rdsadmin;
DROP DATABASE rdsadmin WITH (FORCE);
GRANT CONNECT ON DATABASE rdsadmin TO master;
-- sees: permission denied to alter database "rdsadmin"
-- sees: permission denied to rename database "rdsadmin"
-- sees: permission denied to drop database "rdsadmin"

-- attempt: a copy of the platform's database
-- as: master
CREATE DATABASE mine TEMPLATE rdsadmin;
CREATE DATABASE mine TEMPLATE "rdsadmin" STRATEGY file_copy;
-- sees: permission denied to copy database "rdsadmin"

-- attempt: a database by its name
-- as: master
ALTER DATABASE target RENAME TO rdsadmin;
CREATE DATABASE rdsadmin;
-- sees: permission denied to create database "rdsadmin"

-- attempt: a trap in the template, for databases that the platform makes
-- in: template1
-- as: master
CREATE FUNCTION public.et() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; END $$;
CREATE EVENT TRIGGER et ON ddl_command_end EXECUTE FUNCTION public.et();
ALTER DATABASE template1 SET search_path = evil;
-- in: postgres
-- as: rdsadmin
CREATE DATABASE made TEMPLATE template1;
-- in: made
-- as: rdsadmin
CREATE TABLE public.t (i int);
SHOW search_path;
-- in: template1
-- as: master
DROP EVENT TRIGGER et;
DROP FUNCTION public.et();
ALTER DATABASE template1 RESET ALL;
-- sees: pg_catalog, pg_temp

-- attempt: the untouched template
-- in: template0
-- as: master
SELECT 'in';
-- as: master
-- in: target
ALTER DATABASE template0 ALLOW_CONNECTIONS true;
DROP DATABASE template0;
-- not: ^in$

-- attempt: a database owned by the platform
-- as: master
CREATE DATABASE mine OWNER rdsadmin;
ALTER DATABASE target OWNER TO rds_superuser;
ALTER DATABASE postgres OWNER TO rdsadmin;
-- sees: must be (member of role|able to SET ROLE) "rdsadmin"

-- attempt: names that are connection strings
-- as: master
CREATE DATABASE "host={dir} user=rdsadmin";
CREATE DATABASE "postgresql://rdsadmin@/postgres";
CREATE DATABASE E'x\n\\! touch {dir}/escaped';
CREATE ROLE E'x\n\\! touch {dir}/escaped';
CREATE DATABASE "$(touch {dir}/escaped)";
-- not: server closed the connection

-- attempt: names and comments that a dump would run
-- as: master
CREATE TABLE E't\n\\! touch {dir}/escaped\n' (E'c\n\\! touch {dir}/escaped' int);
COMMENT ON TABLE E't\n\\! touch {dir}/escaped\n' IS E'x\n\\! touch {dir}/escaped';
CREATE FUNCTION E'f\n\\! touch {dir}/escaped'() RETURNS int LANGUAGE sql AS 'SELECT 1';
-- as: rdsadmin
\set ECHO errors
\! pg_dump -h '{socket}' -p {port} -U rdsadmin --no-sync -d 'dbname=target application_name=howdah-escape-suite' > '{dir}.sql' 2>&1
CREATE DATABASE restored;
\c 'dbname=restored application_name=howdah-escape-suite'
\i {dir}.sql
-- not: uid=

-- attempt: a table that a dump reads through functions of the user's
-- as: master
CREATE FUNCTION public.f(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 1; END $$;
CREATE TABLE public.t (i int, g int);
CREATE VIEW public.v AS SELECT public.f(1) AS f;
CREATE POLICY p ON public.t USING (public.f(i) = 1);
ALTER TABLE public.t ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.t FORCE ROW LEVEL SECURITY;
INSERT INTO public.t VALUES (1);
-- as: rdsadmin
\! pg_dump -h '{socket}' -p {port} -U rdsadmin --no-sync -d 'dbname=target application_name=howdah-escape-suite' | grep -c 'CREATE TABLE'
-- sees: ^1$

-- attempt: a table turned into a view while it is dumped
-- as: master
CREATE SEQUENCE public.s;
CREATE TABLE public.t (i int DEFAULT nextval('public.s'));
CREATE FUNCTION public.f() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 1; END $$;
DROP TABLE public.t; DROP SEQUENCE public.s;
CREATE VIEW public.s AS SELECT public.f() AS last_value, true AS is_called, 0 AS log_cnt;
-- as: rdsadmin
SELECT last_value FROM public.s;
-- sees: function public.f\(\) may not run with superuser rights
