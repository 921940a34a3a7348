-- Replication, and the sessions of the platform.

-- attempt: slots, origins and restore points
-- as: master
SELECT pg_create_physical_replication_slot('x');
SELECT pg_create_logical_replication_slot('x', 'pgoutput');
SELECT pg_copy_physical_replication_slot('x', 'y');
SELECT pg_drop_replication_slot('x');
SELECT pg_replication_origin_create('x');
SELECT pg_create_restore_point('x');
SELECT pg_switch_wal();
-- sees: (must be superuser or replication role|permission denied) to use replication slots|permission denied to use replication slots
-- sees: permission denied for function pg_replication_origin_create

-- attempt: to promote, to stop replay, to begin a backup
-- as: master
SELECT pg_promote();
SELECT pg_wal_replay_pause();
SELECT pg_backup_start('x');
SELECT pg_log_backend_memory_contexts(pg_backend_pid());
SELECT pg_logical_emit_message(false, 'x', 'y') IS NOT NULL;
-- sees: permission denied for function pg_promote
-- sees: permission denied for function pg_backup_start

-- attempt: to end sessions of the platform
-- as: master
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'rdsadmin';
SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE backend_type = 'checkpointer';
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'walwriter';
-- not: FATAL

-- attempt: the group for replication, and its attribute
-- as: master
GRANT rds_replication TO plain;
ALTER ROLE plain REPLICATION;
REVOKE rds_replication FROM plain;
SELECT 'replicates: ' || rolreplication FROM pg_roles WHERE rolname = 'plain';
-- sees: replicates: false

-- attempt: publications of everything
-- as: master
CREATE PUBLICATION p FOR ALL TABLES;
CREATE PUBLICATION p FOR TABLES IN SCHEMA pg_catalog;
CREATE PUBLICATION p FOR TABLE pg_authid;
-- sees: must be superuser to create FOR ALL TABLES publication

-- attempt: a large value for replication to choke on
-- as: plain
SELECT pg_logical_slot_get_changes('x', NULL, NULL);
SELECT pg_replication_slot_advance('x', '0/1');
SELECT pg_sync_replication_slots();
SELECT pg_export_snapshot() IS NOT NULL AS harmless;
-- sees: permission denied|must be superuser or replication role

-- attempt: prepared transactions that outlive a session
-- as: master
BEGIN;
CREATE TABLE public.t (i int);
PREPARE TRANSACTION 'mine';
-- as: plain
ROLLBACK PREPARED 'mine';
-- as: master
ROLLBACK PREPARED 'mine';
-- sees: permission denied to finish prepared transaction

-- attempt: notifications to the platform
-- as: plain
NOTIFY howdah, 'ALTER ROLE plain SUPERUSER';
SELECT pg_notify('rdsadmin', repeat('x', 7000));
-- not: ERROR

-- attempt: advisory locks and snapshots of others
-- as: plain
SET TRANSACTION SNAPSHOT '../../x';
BEGIN ISOLATION LEVEL REPEATABLE READ;
SET TRANSACTION SNAPSHOT '../../../PG_VERSION';
ROLLBACK;
-- sees: invalid snapshot identifier
