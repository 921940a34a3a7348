-- Code that is not SQL: libraries, languages, and what trusted languages hold back.

-- attempt: a function of a library
-- as: master
CREATE FUNCTION sys(cstring) RETURNS int LANGUAGE c STRICT AS '/lib/x86_64-linux-gnu/libc.so.6', 'system';
CREATE FUNCTION sys(text) RETURNS text LANGUAGE internal AS 'pg_read_file';
CREATE OR REPLACE FUNCTION sys(text) RETURNS text LANGUAGE c AS '$libdir/dblink', 'dblink_connect';
CREATE PROCEDURE sys() LANGUAGE c AS '$libdir/plpgsql', 'plpgsql_call_handler';
-- sees: permission denied for language c
-- sees: permission denied for language internal

-- attempt: the same by a plain user
-- as: plain
CREATE FUNCTION pg_temp.sys(text) RETURNS text LANGUAGE internal AS 'pg_read_file';
CREATE FUNCTION pg_temp.sys(cstring) RETURNS int LANGUAGE c AS 'libc.so.6', 'system';
-- sees: permission denied for language internal

-- attempt: to load a library
-- as: master
LOAD '/lib/x86_64-linux-gnu/libc.so.6';
LOAD '$libdir/dblink';
LOAD '$libdir/plugins/../dblink';
LOAD '/proc/self/fd/1';
-- sees: access to library .* is not allowed

-- attempt: to have a library loaded at the next login
-- as: master
ALTER ROLE master SET session_preload_libraries = '/tmp/x';
ALTER DATABASE target SET session_preload_libraries = '/tmp/x';
ALTER ROLE master SET local_preload_libraries = '../../../tmp/x';
SET dynamic_library_path = '/tmp';
ALTER ROLE master SET dynamic_library_path = '/tmp';
ALTER SYSTEM SET shared_preload_libraries = '/tmp/x';
-- as: master
SELECT 'in';
-- sees: permission denied to set parameter "session_preload_libraries"
-- sees: permission denied to set parameter "dynamic_library_path"

-- attempt: a language of one's own
-- as: master
CREATE LANGUAGE mine HANDLER plpgsql_call_handler;
CREATE TRUSTED LANGUAGE mine HANDLER plpgsql_call_handler;
ALTER LANGUAGE plpgsql OWNER TO master;
ALTER LANGUAGE c OWNER TO master;
GRANT USAGE ON LANGUAGE c TO master;
GRANT USAGE ON LANGUAGE internal TO PUBLIC;
-- sees: must be superuser to create custom procedural language
-- sees: must be owner of language c
-- sees: language "c" is not trusted

-- attempt: support functions and LEAKPROOF
-- as: master
CREATE FUNCTION leak(int) RETURNS boolean LANGUAGE sql LEAKPROOF AS 'SELECT true';
CREATE FUNCTION f(int) RETURNS boolean LANGUAGE sql AS 'SELECT true';
ALTER FUNCTION f(int) LEAKPROOF;
ALTER FUNCTION f(int) SUPPORT array_unnest_support;
CREATE FUNCTION g(int) RETURNS boolean LANGUAGE sql SUPPORT array_unnest_support AS 'SELECT true';
-- sees: only superuser can define a leakproof function
-- sees: must be superuser to specify a support function

-- attempt: plperl without its mask
-- as: master
CREATE EXTENSION plperl;
CREATE FUNCTION p() RETURNS text LANGUAGE plperl AS 'return `id`;';
CREATE FUNCTION p2() RETURNS text LANGUAGE plperl AS 'open(my $f, ">", "{dir}/escaped"); return 1;';
CREATE FUNCTION p3() RETURNS text LANGUAGE plperl AS 'use POSIX; return POSIX::getpid();';
CREATE FUNCTION p4() RETURNS text LANGUAGE plperl AS 'return eval { require IO::File; 1 } || $@;';
CREATE FUNCTION p5() RETURNS text LANGUAGE plperlu AS 'return `id`;';
CREATE FUNCTION p6() RETURNS text LANGUAGE plperl AS '$_TD; BEGIN { system("touch {dir}/escaped"); } 1;';
SELECT p4();
-- sees: trapped by operation mask|extension "plperl" is not available
-- sees: language "plperlu" does not exist
-- not: uid=

-- attempt: plperl's settings
-- as: master
SET plperl.on_init = 'system("touch {dir}/escaped")';
SET plperl.on_plperlu_init = 'system("touch {dir}/escaped")';
SET plperl.on_plperl_init = 'system("touch {dir}/escaped")';
CREATE EXTENSION plperl;
CREATE FUNCTION p() RETURNS text LANGUAGE plperl AS 'return 1;';
SELECT p();
ALTER ROLE master SET plperl.on_plperl_init = 'system("touch {dir}/escaped")';
-- sees: permission denied to set parameter "plperl.on_|cannot be changed now|is not available

-- attempt: Perl in the middle of an elevated script
-- as: master
CREATE EXTENSION plperl;
CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plperl SECURITY DEFINER AS 'spi_exec_query("SELECT set_config(''search_path'', ''evil'', false)");';
CREATE EVENT TRIGGER et ON ddl_command_end WHEN tag IN ('CREATE FUNCTION') EXECUTE FUNCTION et();
CREATE EXTENSION postgres_fdw;
SHOW search_path;
-- sees: "\$user", public

-- attempt: Tcl without its safe interpreter
-- as: master
CREATE EXTENSION pltcl;
CREATE FUNCTION t() RETURNS text LANGUAGE pltcl AS 'return [exec id]';
CREATE FUNCTION t2() RETURNS text LANGUAGE pltcl AS 'return [open "{dir}/escaped" w]';
SELECT t();
SELECT t2();
SET pltcl.start_proc = 't';
SET pltclu.start_proc = 't';
-- sees: invalid command name "exec"|extension "pltcl" is not available
-- not: uid=

-- attempt: handlers and validators called by hand
-- as: master
SELECT plpgsql_call_handler();
SELECT plpgsql_validator(1);
SELECT fmgr_sql_validator(1);
SELECT fmgr_c_validator(1);
CREATE EXTENSION postgres_fdw;
SELECT postgres_fdw_handler();
SELECT postgres_fdw_validator(ARRAY['password_required=false'], 'pg_user_mapping'::regclass);
-- sees: ERROR
-- not: server closed the connection

-- attempt: functions of modules, called with what they do not expect
-- as: master
CREATE EXTENSION refint;
CREATE EXTENSION moddatetime;
CREATE TABLE a (i int);
CREATE TRIGGER x BEFORE INSERT ON a FOR EACH ROW EXECUTE FUNCTION check_primary_key('i', 'a; ALTER ROLE master SUPERUSER; --', 'i');
INSERT INTO a VALUES (1);
CREATE EXTENSION tcn;
CREATE EXTENSION lo;
-- sees: ERROR
-- not: server closed the connection
