-- Files and programs of the server.

-- attempt: programs by COPY
-- as: master
COPY (SELECT 1) TO PROGRAM 'touch {dir}/escaped';
CREATE TABLE t (l text);
COPY t FROM PROGRAM 'touch {dir}/escaped';
DO $$ BEGIN EXECUTE 'COPY t FROM PROGRAM ''touch {dir}/escaped'''; END $$;
-- sees: permission denied to COPY to or from an external program|must be superuser or (have privileges of|a member of) the pg_execute_server_program

-- attempt: programs by COPY, by a plain user, in a prepared statement and a function
-- as: plain
CREATE FUNCTION pg_temp.f() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN COPY (SELECT 1) TO PROGRAM 'touch {dir}/escaped'; END $$;
SELECT pg_temp.f();
BEGIN; COPY (SELECT 1) TO PROGRAM 'touch {dir}/escaped'; COMMIT;
-- sees: pg_execute_server_program

-- attempt: files by COPY
-- as: master
CREATE TABLE t (l text);
COPY t FROM '/etc/passwd';
COPY t FROM '{data}/pg_hba.conf';
COPY (SELECT 1) TO '{dir}/escaped';
COPY t TO '{data}/postgresql.auto.conf';
COPY t FROM '/proc/self/environ';
SELECT 'lines: ' || count(*) FROM t;
-- sees: pg_read_server_files
-- sees: pg_write_server_files
-- sees: lines: 0

-- attempt: files by functions
-- as: master
SELECT pg_read_file('/etc/passwd');
SELECT pg_read_binary_file('PG_VERSION');
SELECT pg_stat_file('PG_VERSION');
SELECT pg_ls_dir('.');
SELECT pg_current_logfile();
SELECT pg_ls_dir('{dir}');
-- sees: permission denied for function pg_read_file
-- sees: permission denied for function pg_ls_dir

-- attempt: files by large objects
-- as: master
SELECT lo_import('/etc/passwd');
SELECT lo_import('{data}/pg_hba.conf', 4711);
SELECT lo_from_bytea(4712, 'mine');
SELECT lo_export(4712, '{dir}/escaped');
SELECT lo_export(4712, '{data}/postgresql.auto.conf');
SELECT lo_unlink(4712);
-- sees: permission denied for function lo_import
-- sees: permission denied for function lo_export

-- attempt: files by functions that only superusers have
-- as: master
SELECT pg_file_write('{dir}/escaped', 'x', false);
SELECT pg_logdir_ls();
SELECT pg_rotate_logfile();
SELECT pg_reload_conf();
SELECT pg_file_unlink('PG_VERSION');
-- sees: function pg_file_write.* does not exist
-- sees: permission denied for function pg_rotate_logfile

-- attempt: files by the list of what is there
-- as: plain
SELECT pg_ls_logdir();
SELECT pg_ls_waldir();
SELECT pg_ls_tmpdir();
SELECT pg_show_all_file_settings();
SELECT pg_hba_file_rules();
SELECT pg_tablespace_location(1663);
-- sees: permission denied for function pg_ls_logdir
-- sees: permission denied for function pg_hba_file_rules

-- attempt: programs and files by what XML includes
-- as: master
SELECT xmlparse(document '<!DOCTYPE x [<!ENTITY y SYSTEM "file:///etc/passwd">]><x>&y;</x>');
SELECT xpath('/x', '<!DOCTYPE x [<!ENTITY y SYSTEM "{data}/PG_VERSION">]><x>&y;</x>');
SELECT xmlparse(content '<!DOCTYPE x SYSTEM "http://127.0.0.1:1/x"><x/>');
-- not: root:

-- attempt: a tablespace in somebody's directory
-- as: master
CREATE TABLESPACE mine LOCATION '{dir}';
CREATE TABLESPACE mine LOCATION '';
CREATE TABLE t (i int) TABLESPACE pg_global;
ALTER DATABASE target SET TABLESPACE pg_global;
ALTER TABLESPACE pg_default OWNER TO master;
ALTER TABLESPACE pg_default RENAME TO x;
-- sees: tablespaces are not available on this instance
-- sees: must be owner of tablespace pg_default

-- attempt: what is written down as a statement is logged
-- as: master
SET log_directory = '{dir}';
ALTER SYSTEM SET log_directory = '{dir}';
ALTER SYSTEM SET log_filename = 'x.so';
ALTER DATABASE target SET log_destination = 'csvlog';
ALTER SYSTEM RESET ALL;
-- sees: parameter "log_directory" cannot be changed now
-- sees: permission denied to set parameter "log_directory"|must be superuser to execute ALTER SYSTEM
