-- bootstrap.sql: the platform's roles and what they may do.
--
-- Run by the bootstrap superuser rdsadmin, once in each database that is there
-- when an instance is made (template1 and postgres; new databases are copies),
-- and again at any time: running it twice changes nothing. Make the database
-- rdsadmin first: CREATE DATABASE cannot be made conditional in SQL.
--
-- Every statement ends in a semicolon and an empty line, and contains neither
-- that pair nor a psql command, so all of these read it:
--   postgres --single -j -D DATA template1 < bootstrap.sql
--   psql -X -v ON_ERROR_STOP=1 -f bootstrap.sql
--   one simple-protocol query over a connection (it is then one transaction)
-- postgres --single goes on after an error and exits with 0: look for ERROR in
-- what it prints. Without -j it reads line by line, and this file will not do.

DO $$
BEGIN
	IF current_user <> 'rdsadmin'
		OR NOT (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
		RAISE EXCEPTION 'bootstrap.sql must be run by the superuser rdsadmin';
	END IF;
END
$$;

-- Roles. None of them has a password: rdsadmin logs in by the local socket,
-- rdsrepladmin and rdsmon by certificate, the others not at all.
DO $$
DECLARE
	want record;
BEGIN
	FOR want IN SELECT * FROM (VALUES
		('rdsrepladmin', 'LOGIN REPLICATION'),
		('rdsmon', 'LOGIN'),
		('rds_superuser', 'NOLOGIN'),
		('rds_replication', 'NOLOGIN'),
		('rds_iam', 'NOLOGIN'),
		('rds_password', 'NOLOGIN')) AS v (name, attributes)
	LOOP
		IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = want.name) THEN
			EXECUTE pg_catalog.format('CREATE ROLE %I', want.name);
		END IF;
		EXECUTE pg_catalog.format('ALTER ROLE %I WITH INHERIT NOCREATEROLE NOCREATEDB %s PASSWORD NULL',
			want.name, want.attributes);
	END LOOP;
END
$$;

-- What master users may see and do beyond their own: everybody's statements
-- and statistics, ending sessions (not the platform's: src/trust.c), CHECKPOINT;
-- and hand it on.
GRANT pg_monitor, pg_signal_backend, pg_checkpoint TO rds_superuser WITH ADMIN OPTION;

-- From 16 on, what a role with CREATEROLE may hand out takes ADMIN OPTION:
-- let master users hand out reading and writing of all data without having it
-- themselves, as CREATEROLE alone lets them in 15. Subscriptions are sound for
-- users from 16 on.
DO $$
BEGIN
	IF pg_catalog.current_setting('server_version_num')::int >= 160000 THEN
		EXECUTE 'GRANT pg_read_all_data, pg_write_all_data TO rds_superuser'
			' WITH ADMIN TRUE, INHERIT FALSE, SET FALSE';
		EXECUTE 'GRANT pg_create_subscription TO rds_superuser WITH ADMIN OPTION';
	END IF;
	-- From 18 on autovacuum workers, which may stand in the way of DDL, are not
	-- among the sessions that pg_signal_backend ends.
	IF pg_catalog.current_setting('server_version_num')::int >= 180000 THEN
		EXECUTE 'GRANT pg_signal_autovacuum_worker TO rds_superuser WITH ADMIN OPTION';
	END IF;
END
$$;

-- The monitoring login reads statistics, and nothing else.
GRANT pg_monitor TO rdsmon;

-- Settings that only superusers may change elsewhere. None of these loads
-- code, changes what SQL means, reaches files or weakens durability. Names
-- that this release lacks are passed over; those with a point belong to
-- modules that may be loaded later.
DO $$
DECLARE
	setting text;
BEGIN
	FOREACH setting IN ARRAY ARRAY[
		'auto_explain.log_analyze', 'auto_explain.log_buffers',
		'auto_explain.log_format', 'auto_explain.log_level',
		'auto_explain.log_min_duration', 'auto_explain.log_nested_statements',
		'auto_explain.log_parameter_max_length', 'auto_explain.log_settings',
		'auto_explain.log_timing', 'auto_explain.log_triggers',
		'auto_explain.log_verbose', 'auto_explain.log_wal',
		'auto_explain.sample_rate',
		'compute_query_id', 'deadlock_timeout', 'log_duration',
		'log_error_verbosity', 'log_executor_stats', 'log_lock_waits',
		'log_min_duration_sample', 'log_min_duration_statement',
		'log_min_error_statement', 'log_parameter_max_length',
		'log_parser_stats', 'log_planner_stats', 'log_statement',
		'log_statement_sample_rate', 'log_statement_stats', 'log_temp_files',
		'log_transaction_sample_rate',
		'pg_stat_statements.track', 'pg_stat_statements.track_planning',
		'pg_stat_statements.track_utility',
		'pgaudit.log', 'pgaudit.log_catalog', 'pgaudit.log_level',
		'pgaudit.log_parameter', 'pgaudit.log_relation', 'pgaudit.log_rows',
		'pgaudit.log_statement', 'pgaudit.log_statement_once',
		'session_replication_role', 'temp_file_limit', 'track_activities',
		'track_cost_delay_timing', 'log_lock_failures',
		'track_counts', 'track_functions', 'track_io_timing',
		'track_wal_io_timing']
	LOOP
		-- A setting of PostgreSQL's own that this version has not. It must not come to
		-- the error: where a program ends at its first error, handled ones count.
		CONTINUE WHEN pg_catalog.strpos(setting, '.') = 0
			AND pg_catalog.current_setting(setting, true) IS NULL;
		BEGIN
			EXECUTE 'GRANT SET ON PARAMETER ' || setting || ' TO rds_superuser';
		EXCEPTION WHEN undefined_object OR invalid_name THEN
			NULL;
		END;
	END LOOP;
END
$$;

-- Everyone may place objects in the default tablespace by name.
GRANT CREATE ON TABLESPACE pg_default TO rds_superuser WITH GRANT OPTION;

-- Counters of this database are the master user's to reset.
GRANT EXECUTE ON FUNCTION pg_catalog.pg_stat_reset(),
	pg_catalog.pg_stat_reset_single_table_counters(oid),
	pg_catalog.pg_stat_reset_single_function_counters(oid)
	TO rds_superuser WITH GRANT OPTION;

-- These grants are there before any user is, so dumps must not hold them: to whom
-- a master user has a right from, the restore could not grant it. pg_dump takes
-- what this table says for the beginning.
UPDATE pg_catalog.pg_init_privs AS i SET initprivs = p.proacl
	FROM pg_catalog.pg_proc AS p
	WHERE i.classoid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND i.objoid = p.oid AND i.objsubid = 0
	AND p.oid IN ('pg_catalog.pg_stat_reset()'::pg_catalog.regprocedure,
		'pg_catalog.pg_stat_reset_single_table_counters(oid)'::pg_catalog.regprocedure,
		'pg_catalog.pg_stat_reset_single_function_counters(oid)'::pg_catalog.regprocedure)
	AND i.initprivs IS DISTINCT FROM p.proacl;

-- The owner of a database sets defaults for all sessions in it: a search_path
-- with functions of theirs, standard_conforming_strings off, another role.
-- Settings of a role win over these, so the platform's logins pin what would
-- harm them. (src/trust.c is the second line of defence.)
DO $$
DECLARE
	login text;
	pin record;
BEGIN
	FOREACH login IN ARRAY ARRAY['rdsadmin', 'rdsmon', 'rdsrepladmin']
	LOOP
		FOR pin IN SELECT * FROM (VALUES
			('search_path', 'pg_catalog, pg_temp'),
			('backslash_quote', 'safe_encoding'),
			('check_function_bodies', 'on'),
			('default_table_access_method', 'heap'),
			('default_tablespace', ''''''),
			('default_transaction_deferrable', 'off'),
			('default_transaction_isolation', '''read committed'''),
			('default_transaction_read_only', 'off'),
			('idle_in_transaction_session_timeout', '0'),
			('idle_session_timeout', '0'),
			('lock_timeout', '0'),
			('row_security', 'on'),
			('standard_conforming_strings', 'on'),
			('statement_timeout', '0'),
			('temp_tablespaces', ''''''),
			('transaction_timeout', '0'),
			('transform_null_equals', 'off')) AS v (name, setting)
			-- transaction_timeout is there from 17 on
			WHERE pg_catalog.current_setting(name, true) IS NOT NULL
		LOOP
			EXECUTE pg_catalog.format('ALTER ROLE %I SET %s = %s', login, pin.name, pin.setting);
		END LOOP;
	END LOOP;
END
$$;

ALTER ROLE rdsadmin SET role = none;

ALTER ROLE rdsadmin SET session_replication_role = origin;

-- The platform's database.
DO $$
BEGIN
	IF EXISTS (SELECT FROM pg_catalog.pg_database WHERE datname = 'rdsadmin') THEN
		REVOKE ALL ON DATABASE rdsadmin FROM PUBLIC, rds_superuser;
		-- pg_rewind and its checks log in here.
		GRANT CONNECT ON DATABASE rdsadmin TO rdsmon, rdsrepladmin;
	END IF;
END
$$;
