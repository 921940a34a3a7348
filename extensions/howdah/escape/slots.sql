-- Logical slots and WAL senders of a member of rds_replication.

-- attempt: all files, by each spelling of a base backup
-- in: target replication=database
-- as: mover
BASE_BACKUP;
BASE_BACKUP (LABEL 'x', MANIFEST 'no', WAL 0);
BASE_BACKUP (TARGET 'server', TARGET_DETAIL '{dir}/copy');
BASE_BACKUP (TARGET 'blackhole');
SHOW wal_level;
BASE_BACKUP (PROGRESS);
-- sees: permission denied to use this replication command
-- not: base\.tar|could not create directory

-- attempt: the WAL of all databases
-- in: target replication=database
-- as: mover
START_REPLICATION 0/1000000;
START_REPLICATION PHYSICAL 0/1000000 TIMELINE 1;
START_REPLICATION SLOT "standby" PHYSICAL 0/0;
START_REPLICATION SLOT standby LOGICAL 0/0;
TIMELINE_HISTORY 1;
-- sees: permission denied to use physical replication
-- sees: permission denied for replication slot "standby"
-- not: COPY

-- attempt: a WAL sender without a database
-- in: target replication=true
-- as: mover
IDENTIFY_SYSTEM;
BASE_BACKUP;
-- sees: no pg_hba.conf entry for replication connection|must be superuser or replication role|permission denied to start WAL sender

-- attempt: a WAL sender of the platform's database
-- in: rdsadmin replication=database
-- as: mover
IDENTIFY_SYSTEM;
-- sees: pg_hba.conf rejects

-- attempt: a WAL sender of who is no member
-- in: target replication=database
-- as: plain
IDENTIFY_SYSTEM;
BASE_BACKUP;
-- sees: permission denied to start WAL sender

-- attempt: a WAL sender of the master user
-- in: target replication=database
-- as: master
BASE_BACKUP;
-- sees: permission denied to start WAL sender

-- attempt: to blind the module
-- in: target replication=database options='-c log_min_messages=panic -c log_replication_commands=off'
-- as: mover
BASE_BACKUP;
-- in: target replication=database
-- as: mover
SET log_min_messages = panic;
SELECT set_config('log_replication_commands', 'off', false);
RESET ALL;
DISCARD ALL;
SET SESSION AUTHORIZATION DEFAULT;
BASE_BACKUP;
-- sees: permission denied to use this replication command
-- sees: permission denied to set parameter "log_min_messages"

-- attempt: to blind it by settings of one's own role and database
-- in: target
-- as: mover
ALTER ROLE mover SET log_min_messages = panic;
ALTER ROLE mover SET client_min_messages = error;
-- as: master
ALTER DATABASE target SET log_replication_commands = off;
-- in: target replication=database
-- as: mover
BASE_BACKUP;
-- sees: permission denied to use this replication command

-- attempt: to hide a command behind others
-- in: target replication=database
-- as: mover
SELECT 1\; BASE_BACKUP;
IDENTIFY_SYSTEM\; BASE_BACKUP;
DO $$ BEGIN EXECUTE 'BASE_BACKUP'; END $$;
BEGIN;
SELECT 1/0;
BASE_BACKUP;
ROLLBACK;
/* SHOW */ BASE_BACKUP;
-- BASE_BACKUP
"BASE_BACKUP";
BASE_BACKUP;
-- sees: permission denied to use this replication command
-- not: base\.tar

-- attempt: the platform's slots
-- in: target
-- as: mover
SELECT pg_drop_replication_slot('standby');
SELECT pg_replication_slot_advance('standby', '0/1');
SELECT pg_copy_physical_replication_slot('standby', 'x');
SELECT pg_copy_logical_replication_slot('standby', 'x');
SELECT pg_create_physical_replication_slot('x', true);
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots;
-- in: target replication=database
-- as: mover
DROP_REPLICATION_SLOT standby;
DROP_REPLICATION_SLOT "standby" WAIT;
CREATE_REPLICATION_SLOT x PHYSICAL RESERVE_WAL;
CREATE_REPLICATION_SLOT x TEMPORARY PHYSICAL;
-- sees: permission denied for replication slot "standby"
-- sees: permission denied to use physical replication slots

-- attempt: slots by names of the platform's, and of others' databases
-- in: target
-- as: mover
SELECT pg_create_logical_replication_slot(n, 'pgoutput') FROM unnest(ARRAY['m1', 'm2', 'follow_db_1', 'howdah_clone_1', 'pg_basebackup_7', 'pg_walreceiver_7']) n;
SELECT pg_create_logical_replication_slot('mine', 'test_decoding');
-- in: postgres
-- as: mover
SELECT pg_drop_replication_slot('mine');
SELECT pg_logical_slot_get_changes('mine', NULL, NULL);
-- in: postgres replication=database
-- as: mover
START_REPLICATION SLOT mine LOGICAL 0/0;
DROP_REPLICATION_SLOT mine;
-- in: target
-- as: mover
SELECT pg_drop_replication_slot('mine');
-- sees: replication slot name "m1" is reserved
-- sees: It is a slot of another database

-- attempt: libraries as output plugins
-- in: target
-- as: mover
SELECT pg_create_logical_replication_slot('x', 'dblink');
SELECT pg_create_logical_replication_slot('x', '{dir}/evil');
SELECT pg_create_logical_replication_slot('x', '$libdir/../../../../tmp/evil');
SELECT pg_create_logical_replication_slot('mine', 'pgoutput');
SELECT pg_copy_logical_replication_slot('mine', 'x', false, 'dblink');
SELECT pg_drop_replication_slot('mine');
-- in: target replication=database
-- as: mover
CREATE_REPLICATION_SLOT x LOGICAL dblink;
CREATE_REPLICATION_SLOT "x" TEMPORARY LOGICAL "{dir}/evil";
-- sees: permission denied to use the output plugin "dblink"
-- not: could not access file

-- attempt: all slots and all WAL senders
-- in: target
-- as: mover
SELECT pg_create_logical_replication_slot('s' || i, 'pgoutput') FROM generate_series(1, 20) i;
SELECT 'made: ' || count(*) FROM pg_replication_slots WHERE slot_type = 'logical';
DO $$ BEGIN FOR i IN 1..20 LOOP PERFORM pg_create_logical_replication_slot('s' || i, 'pgoutput'); END LOOP; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', SQLERRM; END $$;
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_type = 'logical';
-- sees: replication slots of users are in use

-- attempt: what decoding runs has the rights of the platform's role
-- in: target
-- as: mover
SELECT pg_create_logical_replication_slot('mine', 'pgoutput');
-- as: master
CREATE TABLE public.t (i int PRIMARY KEY);
CREATE FUNCTION public.f(int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'runs as %', current_user; RETURN true; END $$;
CREATE PUBLICATION p FOR TABLE public.t WHERE (public.f(i));
CREATE TYPE public.c AS (i int);
CREATE DOMAIN public.d AS int CHECK (public.f(value));
CREATE TABLE public.u (i public.d PRIMARY KEY);
CREATE PUBLICATION q FOR TABLE public.u;
INSERT INTO public.u VALUES (1);
-- as: mover
SELECT count(*) FROM pg_logical_slot_get_binary_changes('mine', NULL, NULL, 'proto_version', '1', 'publication_names', 'q');
SELECT pg_drop_replication_slot('mine');
-- not: runs as rds

-- attempt: the name of a standby
-- in: target replication=database application_name=m2
-- as: mover
IDENTIFY_SYSTEM;
-- in: target replication=database
-- as: mover
SET application_name = 'escape.m2';
SELECT 'called: ' || application_name FROM pg_stat_replication;
-- sees: invalid value for parameter "application_name"
-- not: called: escape\.m2

-- attempt: PostgreSQL's own functions, and those that stand in for them
-- in: target
-- as: mover
SELECT howdah_pg_create_logical_replication_slot('x', 'dblink');
SELECT howdah_pg_drop_replication_slot('standby');
CREATE FUNCTION public.g(name) RETURNS void LANGUAGE internal AS 'pg_drop_replication_slot';
CREATE FUNCTION public.g(name) RETURNS void LANGUAGE c AS 'howdah', 'howdah_pg_drop_replication_slot';
-- as: master
ALTER FUNCTION pg_catalog.pg_drop_replication_slot(name) OWNER TO master;
CREATE OR REPLACE FUNCTION pg_catalog.pg_drop_replication_slot(name) RETURNS void LANGUAGE sql AS '';
DROP FUNCTION pg_catalog.pg_drop_replication_slot(name);
-- sees: permission denied to use replication slots|must be superuser or replication role to use replication slots
-- sees: must be owner of function
