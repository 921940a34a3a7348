-- Cluster cache management: what servers have cached, and settings that say whom a standby asks.

-- attempt: to ask what is cached
-- as: master
CREATE EXTENSION ccm;
SELECT ccm.filter(0, 1, 0);
SELECT ccm.pull('', 0, 1, 3, 1, 0);
SELECT ccm.contains('', 1, 1, 1, 0, 1);
SELECT * FROM ccm.reader_status();
SELECT * FROM howdah_cache.pg_buffercache;
CREATE FUNCTION pull(bytea, int, int, int, int, int) RETURNS record LANGUAGE c AS 'ccm', 'ccm_pull';
LOAD 'ccm';
-- sees: permission denied for language c
-- not: ^\\x

-- attempt: the same in the platform's database
-- in: rdsadmin
-- as: master
SELECT ccm.pull('', 0, 1, 3, 1, 0);
-- as: plain
SELECT ccm.filter(0, 1, 0);
-- sees: pg_hba.conf rejects connection
-- not: ^\\x

-- attempt: to be one who may ask
-- as: master
GRANT ccm_reader TO master;
GRANT ccm_reader TO plain;
GRANT master TO ccm_reader;
ALTER ROLE ccm_reader LOGIN PASSWORD 'x';
DROP ROLE ccm_reader;
ALTER ROLE ccm_reader RENAME TO mine;
SET ROLE ccm_reader;
SELECT pg_has_role('master', 'ccm_reader', 'MEMBER') OR pg_has_role('plain', 'ccm_reader', 'MEMBER') AS is_member, rolcanlogin FROM pg_roles WHERE rolname = 'ccm_reader';
-- sees: ^f\|f$

-- attempt: to read files by the function of the platform
-- as: master
SELECT pg_catalog.howdah_prewarm('pg_authid', 'buffer', 'main', 0, 0);
GRANT EXECUTE ON FUNCTION pg_catalog.howdah_prewarm TO master;
ALTER FUNCTION pg_catalog.howdah_prewarm OWNER TO master;
CREATE OR REPLACE FUNCTION pg_catalog.howdah_prewarm(regclass, text, text, int8, int8) RETURNS int8 LANGUAGE sql AS 'SELECT 1::int8';
DROP FUNCTION pg_catalog.howdah_prewarm;
-- as: plain
SELECT pg_catalog.howdah_prewarm('pg_authid', 'buffer', 'main', 0, 0);
-- sees: permission denied for function howdah_prewarm
-- sees: must be owner of function howdah_prewarm
-- not: ^1$

-- attempt: another answer than the server's own
-- as: master
CREATE OR REPLACE FUNCTION pg_catalog.aurora_ccm_status() RETURNS int LANGUAGE sql AS 'SELECT 1';
ALTER FUNCTION pg_catalog.aurora_ccm_status OWNER TO master;
DROP FUNCTION pg_catalog.aurora_ccm_status;
CREATE FUNCTION public.aurora_ccm_status() RETURNS int LANGUAGE sql AS 'SELECT 7';
SET search_path = public;
SELECT * FROM aurora_ccm_status();
-- as: plain
SELECT * FROM aurora_ccm_status();
-- sees: must be owner of function aurora_ccm_status
-- sees: Cluster Cache Manager is disabled
-- not: ^[17]$

-- attempt: to have a standby ask somebody else, or without a limit
-- as: master
SET ccm.enabled = off;
SET ccm.rate = 0;
ALTER SYSTEM SET ccm.upstream_conninfo = 'host=127.0.0.1';
ALTER DATABASE target SET ccm.upstream_conninfo = 'host=127.0.0.1';
ALTER ROLE master SET ccm.rate = 0;
ALTER ROLE ALL SET ccm.mirror = on;
SHOW ccm.upstream_conninfo;
SELECT set_config('ccm.debug_hold', '100', false);
GRANT SET ON PARAMETER ccm.rate TO master;
SELECT current_setting('ccm.enabled'), current_setting('ccm.rate');
-- sees: parameter "ccm.enabled" cannot be changed now
-- sees: ^on\|8000$

-- attempt: what the platform would find in place of its own
-- as: master
CREATE SCHEMA ccm;
CREATE FUNCTION ccm.pull(bytea, int, int, int, int, int) RETURNS int LANGUAGE plpgsql SECURITY INVOKER AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 1; END $$;
CREATE FUNCTION public.sum(bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN 1; END $$;
CREATE FUNCTION public.less(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; RETURN true; END $$;
CREATE OPERATOR public.< (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = public.less);
CREATE FUNCTION public.on_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; END $$;
CREATE EVENT TRIGGER on_ddl ON ddl_command_start EXECUTE FUNCTION public.on_ddl();
-- as: rdsadmin
BEGIN;
CREATE OR REPLACE FUNCTION pg_catalog.howdah_prewarm(regclass, text, text, int8, int8) RETURNS int8 LANGUAGE C PARALLEL SAFE AS '$libdir/pg_prewarm', 'pg_prewarm';
REVOKE ALL ON FUNCTION pg_catalog.howdah_prewarm FROM PUBLIC;
COMMIT;
SET search_path = pg_catalog;
SELECT coalesce(pg_catalog.sum(pg_catalog.howdah_prewarm(f.rel, 'buffer', 'main', p.a, p.b)), 0)::bigint
	FROM (SELECT pg_catalog.pg_filenode_relation(0, pg_catalog.pg_relation_filenode('pg_catalog.pg_proc')) AS rel) f,
	LATERAL (SELECT pg_catalog.pg_relation_size(f.rel, 'main') / 8192 AS blocks) size,
	ROWS FROM (pg_catalog.unnest('{0,999999}'::bigint[]), pg_catalog.unnest('{3,999999}'::bigint[])) AS p(a, b) WHERE p.b < size.blocks;
-- as: master
SELECT rolsuper FROM pg_roles WHERE rolname = 'master';
-- sees: ^4$
-- sees: ^f$
