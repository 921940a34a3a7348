-- Event triggers of users, which would fire inside of what the platform does.

-- attempt: another schema in front in the middle of a script, for a validator that allows all
-- as: master
CREATE SCHEMA evil;
CREATE FUNCTION evil.postgres_fdw_validator(text[], oid) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN END $$;
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
	IF to_regprocedure('public.postgres_fdw_validator(text[],oid)') IS NOT NULL THEN PERFORM set_config('search_path', 'evil,pg_catalog,public', false); END IF;
END $$;
CREATE EVENT TRIGGER et ON ddl_command_end EXECUTE FUNCTION et();
CREATE EXTENSION postgres_fdw SCHEMA public;
DROP EVENT TRIGGER et;
CREATE SERVER self FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{socket}', port '{port}', dbname 'postgres');
CREATE USER MAPPING FOR master SERVER self OPTIONS (user 'rdsadmin', password_required 'false');
CREATE FOREIGN TABLE pa (oid oid, rolname name, rolsuper bool) SERVER self OPTIONS (schema_name 'pg_catalog', table_name 'pg_authid');
UPDATE pa SET rolsuper = true WHERE rolname = 'master';
-- sees: password_required=false is superuser-only
-- sees: user mapping not found

-- attempt: the same at the start of each command
-- as: master
CREATE SCHEMA evil;
CREATE FUNCTION evil.postgres_fdw_validator(text[], oid) RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$;
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
	IF tg_tag = 'CREATE FOREIGN DATA WRAPPER' THEN PERFORM set_config('search_path', 'evil,pg_catalog,public', false); END IF;
END $$;
CREATE EVENT TRIGGER et ON ddl_command_start EXECUTE FUNCTION et();
CREATE EXTENSION postgres_fdw SCHEMA public;
SELECT 'validated by ' || fdwvalidator::regproc::text || ' of ' || pronamespace::regnamespace FROM pg_foreign_data_wrapper JOIN pg_proc p ON p.oid = fdwvalidator;
-- sees: validated by postgres_fdw_validator of public

-- attempt: the same for the wrapper of dblink
-- as: master
CREATE SCHEMA evil;
CREATE FUNCTION evil.dblink_fdw_validator(text[], oid) RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$;
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM set_config('search_path', 'evil,pg_catalog,public', false); END $$;
CREATE EVENT TRIGGER et ON ddl_command_end WHEN tag IN ('CREATE FUNCTION', 'REVOKE') EXECUTE FUNCTION et();
CREATE EXTENSION dblink SCHEMA public;
SELECT 'of ' || pronamespace::regnamespace FROM pg_foreign_data_wrapper JOIN pg_proc p ON p.oid = fdwvalidator;
-- sees: of public

-- attempt: with the rights of whoever fires it, in the script of an extension that the platform runs
-- as: master
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'ALTER ROLE master SUPERUSER'; EXCEPTION WHEN insufficient_privilege THEN NULL; END $$;
CREATE EVENT TRIGGER et ON ddl_command_end EXECUTE FUNCTION et();
CREATE EXTENSION postgres_fdw;
SELECT 'made ' || count(*) FROM pg_extension WHERE extname = 'postgres_fdw';
-- sees: made 1

-- attempt: the same in the script of a trusted extension
-- as: master
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'ALTER ROLE master SUPERUSER'; EXCEPTION WHEN insufficient_privilege THEN NULL; END $$;
CREATE EVENT TRIGGER et ON ddl_command_start EXECUTE FUNCTION et();
CREATE EXTENSION hstore;
SELECT 'made ' || count(*) FROM pg_extension WHERE extname = 'hstore';
-- sees: made 1

-- attempt: a plain user waits with a trusted extension for the trigger of another
-- as: master
GRANT CREATE ON DATABASE target TO plain;
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'as %', current_user; GRANT pg_read_server_files TO plain; EXCEPTION WHEN insufficient_privilege THEN NULL; END $$;
CREATE EVENT TRIGGER et ON ddl_command_end EXECUTE FUNCTION et();
-- as: plain
CREATE SCHEMA mine;
CREATE EXTENSION citext SCHEMA mine;
-- sees: NOTICE:  as plain
-- not: as rdsadmin

-- attempt: on what a script drops
-- as: master
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM set_config('search_path', 'evil', false); END $$;
CREATE EVENT TRIGGER et ON sql_drop EXECUTE FUNCTION et();
CREATE EXTENSION pg_stat_statements VERSION '1.8';
ALTER EXTENSION pg_stat_statements UPDATE;
SHOW search_path;
-- sees: "\$user", public

-- attempt: on tables that a script rewrites, and of every kind at once
-- as: master
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN IF tg_tag NOT LIKE '%EXTENSION' THEN PERFORM set_config('search_path', 'evil', false); END IF; END $$;
CREATE EVENT TRIGGER a ON sql_drop EXECUTE FUNCTION et();
CREATE EVENT TRIGGER b ON table_rewrite EXECUTE FUNCTION et();
CREATE EVENT TRIGGER c ON ddl_command_start EXECUTE FUNCTION et();
ALTER EVENT TRIGGER a ENABLE ALWAYS;
ALTER EVENT TRIGGER b ENABLE REPLICA;
SET session_replication_role = replica;
CREATE EXTENSION pg_trgm;
ALTER EXTENSION pg_trgm SET SCHEMA pg_temp;
SHOW search_path;
-- sees: permission denied
-- sees: "\$user", public

-- attempt: in sessions of the platform
-- as: master
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; END $$;
CREATE EVENT TRIGGER et ON ddl_command_end EXECUTE FUNCTION et();
-- as: rdsadmin
CREATE TABLE public.t (i int);
DROP TABLE public.t;
-- as: rdsmon
CREATE TEMP TABLE t (i int);
SELECT 'the platform works';
-- sees: the platform works
-- not: ERROR

-- attempt: with its owner's rights in a session of the platform, to leave a search_path
-- as: master
CREATE SCHEMA evil;
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM set_config('search_path', 'evil', false); END $$;
CREATE EVENT TRIGGER et ON ddl_command_start EXECUTE FUNCTION et();
-- as: rdsadmin
CREATE TABLE public.t (i int);
SHOW search_path;
DROP TABLE public.t;
-- sees: pg_catalog, pg_temp

-- attempt: at a role that the platform took
-- as: master
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RESET ROLE; RESET SESSION AUTHORIZATION; ALTER ROLE master SUPERUSER; END $$;
CREATE EVENT TRIGGER et ON ddl_command_end EXECUTE FUNCTION et();
-- as: rdsadmin
SET ROLE master;
CREATE TABLE public.t1 (i int);
RESET ROLE;
SET SESSION AUTHORIZATION master;
CREATE TABLE public.t2 (i int);
SELECT 'still ' || current_user;
-- sees: still master
-- not: ERROR

-- attempt: settings of the function instead of what it does
-- as: master
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql SET search_path = evil AS 'BEGIN END';
CREATE FUNCTION et2() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
ALTER FUNCTION et2() SET search_path = evil;
-- sees: functions of event triggers cannot have SET clauses

-- attempt: the event trigger of another, with a function changed under it
-- as: plain
CREATE FUNCTION pg_temp.et() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
CREATE EVENT TRIGGER et ON ddl_command_end EXECUTE FUNCTION pg_temp.et();
-- sees: permission denied to create event trigger

-- attempt: owned by the platform for the asking
-- as: master
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
CREATE EVENT TRIGGER et ON ddl_command_end EXECUTE FUNCTION et();
ALTER EVENT TRIGGER et OWNER TO master;
ALTER FUNCTION et() OWNER TO rdsadmin;
-- sees: permission denied to change owner of event trigger|must be owner of event trigger
-- sees: must be (member of role|able to SET ROLE) "rdsadmin"

-- attempt: at login, for those who repair it
-- since: 17
-- as: master
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; END $$;
CREATE EVENT TRIGGER et ON login EXECUTE FUNCTION et();
ALTER EVENT TRIGGER et ENABLE ALWAYS;
-- as: rdsadmin
SELECT 'in as ' || current_user;
-- as: rdsmon
SELECT 'in as ' || current_user;
-- sees: in as rdsadmin
-- sees: in as rdsmon

-- attempt: another schema in front at each command of any extension's script
-- each: extension
-- as: master
SET client_min_messages = error;
CREATE SCHEMA trap;
{decoys}
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN IF tg_tag <> 'CREATE EXTENSION' THEN PERFORM set_config('search_path', 'trap, pg_catalog', false); END IF; END $$;
CREATE EVENT TRIGGER a ON ddl_command_start EXECUTE FUNCTION et();
CREATE EVENT TRIGGER b ON ddl_command_end EXECUTE FUNCTION et();
SET search_path = public;
CREATE EXTENSION {extension} CASCADE;
SELECT 'made ' || extname FROM pg_extension WHERE extname = '{name}';
SHOW search_path;
-- sees: made {name}|is already installed in schema|is not a member of extension "pgtap"
-- sees: ^public$|^"\$user", public, topology$
