-- What drivers ask a cluster's servers: functions with the platform's rights, which everybody may call.

-- attempt: another answer than the server's own
-- as: master
CREATE OR REPLACE FUNCTION pg_catalog.aurora_db_instance_identifier() RETURNS text LANGUAGE sql AS 'SELECT ''mine''';
ALTER FUNCTION pg_catalog.aurora_replica_status OWNER TO master;
DROP FUNCTION pg_catalog.aurora_version;
CREATE OR REPLACE FUNCTION rds_tools.dbi_resource_id() RETURNS text LANGUAGE sql AS 'SELECT ''mine''';
CREATE FUNCTION rds_tools.show_topology() RETURNS text LANGUAGE sql AS 'SELECT ''mine''';
ALTER SCHEMA rds_tools RENAME TO other;
ALTER SCHEMA rds_tools OWNER TO master;
DROP SCHEMA rds_tools CASCADE;
GRANT CREATE ON SCHEMA rds_tools TO master;
SELECT rds_tools.dbi_resource_id();
-- as: plain
SELECT id FROM rds_tools.show_topology();
-- sees: permission denied for schema pg_catalog|must be owner of function aurora_db_instance_identifier
-- sees: must be owner of function aurora_replica_status
-- sees: permission denied for schema rds_tools
-- sees: must be owner of schema rds_tools
-- sees: ^db-I1$
-- not: ^mine$

-- attempt: to be its extension's owner, or to change what belongs to it
-- as: master
DROP EXTENSION rds_tools;
DROP EXTENSION rds_tools CASCADE;
ALTER EXTENSION rds_tools UPDATE TO '2.0';
ALTER EXTENSION rds_tools SET SCHEMA public;
ALTER EXTENSION rds_tools DROP FUNCTION rds_tools.dbi_resource_id();
CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS 'SELECT 1';
ALTER EXTENSION rds_tools ADD FUNCTION public.mine();
CREATE EXTENSION rds_tools;
COMMENT ON EXTENSION rds_tools IS 'mine';
SELECT rds_tools.dbi_resource_id();
-- sees: must be owner of extension rds_tools
-- sees: permission denied to change the members of extension "rds_tools"
-- sees: extension "rds_tools" already exists, skipping
-- sees: ^db-I1$

-- attempt: code of one's own, run with the platform's rights
-- as: master
CREATE SCHEMA trap;
CREATE FUNCTION trap.current_setting(text, boolean) RETURNS text LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 'mine'; END $$;
CREATE FUNCTION trap.same(text, unknown) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN true; END $$;
CREATE FUNCTION trap.same(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN true; END $$;
CREATE OPERATOR trap.= (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.same);
CREATE FUNCTION trap.howdah_members() RETURNS SETOF pg_class LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; END $$;
CREATE TEMP VIEW pg_stat_wal_receiver AS SELECT trap.same('a', 'b');
CREATE TEMP VIEW pg_stat_replication AS SELECT trap.same('a', 'b');
SET search_path = pg_temp, trap, pg_catalog;
SET transform_null_equals = on;
SET standard_conforming_strings = off;
SELECT pg_catalog.count(*) FROM pg_catalog.aurora_replica_status();
SELECT rds_tools.dbi_resource_id(), rds_tools.multi_az_db_cluster_source_dbi_resource_id();
SELECT endpoint FROM rds_tools.show_topology('x''); ALTER ROLE master SUPERUSER; --');
SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname OPERATOR(pg_catalog.=) 'master';
-- sees: ^db-I1\|db-I1$
-- sees: ^f$
-- not: mine

-- attempt: to tell the server who belongs to it
-- as: master
SET howdah.topology = '{}';
SET howdah.cluster = 'aurora';
SET howdah.seen = '{}';
ALTER DATABASE target SET howdah.topology = '{}';
ALTER ROLE master SET howdah.cluster = 'aurora';
ALTER SYSTEM SET howdah.topology = '{}';
SELECT set_config('howdah.cluster', 'aurora', false);
ALTER DATABASE target SET rds.extensions = 'plpython3u';
SET rds.extensions = 'plpython3u';
CREATE FUNCTION tell(text) RETURNS void LANGUAGE c AS 'howdah', 'howdah_seen';
GRANT SET ON PARAMETER howdah.topology TO master;
-- in: rdsadmin
-- as: master
SELECT public.howdah_seen('{}');
-- as: master
SHOW howdah.cluster;
-- sees: parameter "howdah.topology" cannot be changed now
-- sees: parameter "rds.extensions" cannot be changed
-- sees: permission denied for language c
-- not: ^aurora$

-- attempt: to see where members listen
-- as: plain
SELECT * FROM pg_catalog.howdah_members();
SHOW howdah.topology;
SELECT current_setting('howdah.seen');
SELECT count(*) FROM pg_settings WHERE name IN ('howdah.topology', 'howdah.seen');
-- sees: (must be superuser or have privileges of pg_read_all_settings|permission denied) to examine "howdah.topology"
-- sees: (must be superuser or have privileges of pg_read_all_settings|permission denied) to examine "howdah.seen"
-- sees: ^0$
