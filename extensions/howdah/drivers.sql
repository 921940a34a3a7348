-- drivers.sql: what AWS's drivers ask a cluster's servers.
--
-- The agent of the primary runs it as rdsadmin, in each database that lets
-- somebody in, template1 included; running it again changes nothing. The
-- functions read settings that only the platform sets (src/topology.c) and
-- PostgreSQL's own views. Their bodies are parsed here, so nothing that a
-- session sets changes what they mean. There are four parts, each of which
-- begins with a line that names it; an Aurora cluster takes the first two, a
-- Multi-AZ DB cluster the first and the third. The last one takes the third away
-- again. Statements end in a semicolon and an empty line.

-- part: common

-- The members of the cluster as this server knows them. Who writes: this server,
-- if it is no standby. Else whom the agent saw with the leader key a moment ago,
-- else whom WAL comes from. Else, if the agent is silent, whom it saw last. It is never a standby's own
-- instance: that of a server which may be about to be promoted, but takes no writes
-- yet, or of one that takes the place of the member that writes. seen says when that was
-- known, or when the member was seen otherwise; NULL: nobody saw it. The functions
-- below call this one with the platform's rights. Others may call it, but may not
-- read the settings: a REVOKE would be in dumps. CREATE OR REPLACE refuses other
-- columns than there are, and a DROP is refused while the functions of part aurora,
-- or users' views, depend on it. So a release that wants others makes a function of
-- another name, and drops this one where nothing depends on it.
CREATE OR REPLACE FUNCTION pg_catalog.howdah_members(
	OUT name text, OUT id text, OUT instance text, OUT endpoint text, OUT port integer, OUT own boolean, OUT writer boolean,
	OUT seen timestamptz, OUT lag_ms double precision, OUT received pg_lsn, OUT applied pg_lsn)
	RETURNS SETOF record LANGUAGE sql VOLATILE PARALLEL RESTRICTED ROWS 8
	SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	WITH told AS MATERIALIZED (
		SELECT nullif(current_setting('howdah.topology', true), '')::jsonb AS topology,
			nullif(current_setting('howdah.seen', true), '')::jsonb AS word,
			clock_timestamp() AS now, pg_is_in_recovery() AS recovery
	), heard AS MATERIALIZED (
		SELECT t.*, coalesce((t.word->>'at')::timestamptz BETWEEN t.now - interval '5 seconds' AND t.now + interval '1 second', false) AS lately FROM told t
	), placed AS MATERIALIZED (
		SELECT m.name, m.id, m.instance, m.endpoint, m.port, m.address, m.listen, m.application, m.name = t.topology->>'self' AS own
		FROM heard t, jsonb_to_recordset(t.topology->'members')
			AS m (name text, id text, instance text, endpoint text, port integer, address text, listen integer, application text)
	), known AS (
		SELECT 1 AS rank, p.name, t.now AS at FROM heard t, placed p WHERE NOT t.recovery AND p.own
		UNION ALL
		SELECT 2, t.word->>'leader', (t.word->>'at')::timestamptz FROM heard t WHERE t.recovery AND t.lately
		UNION ALL
		SELECT 3, p.name, r.last_msg_receipt_time FROM heard t, placed p, pg_stat_wal_receiver r
		WHERE t.recovery AND r.status = 'streaming' AND r.sender_host = p.address AND r.sender_port = p.listen
		UNION ALL
		SELECT 4, t.word->>'writer', (t.word->>'writer_at')::timestamptz FROM heard t WHERE t.recovery AND NOT t.lately
	), writing AS (
		SELECT k.name, k.at FROM (SELECT * FROM known WHERE name <> '' ORDER BY rank LIMIT 1) k
			CROSS JOIN heard t JOIN placed self ON self.own LEFT JOIN placed p ON p.name = k.name
		WHERE NOT t.recovery OR p.id IS DISTINCT FROM self.id
	), sent AS (
		SELECT s.application_name, max(s.reply_time) AS at, max(coalesce(extract(epoch FROM s.replay_lag) * 1000, 0))::double precision AS lag,
			max(s.flush_lsn) AS received, max(s.replay_lsn) AS applied
		FROM pg_stat_replication s WHERE s.state = 'streaming' GROUP BY s.application_name
	)
	SELECT p.name, p.id, p.instance, p.endpoint, p.port, p.own, coalesce(p.name = w.name, false),
		CASE WHEN p.own THEN t.now ELSE
			greatest(CASE WHEN p.name = w.name THEN w.at END, s.at, (t.word->'members'->>p.name)::timestamptz) END,
		CASE WHEN p.name = w.name THEN 0
			WHEN NOT p.own THEN s.lag
			WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0
			ELSE (extract(epoch FROM t.now - pg_last_xact_replay_timestamp()) * 1000)::double precision END,
		CASE WHEN NOT p.own THEN s.received WHEN t.recovery THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_flush_lsn() END,
		CASE WHEN NOT p.own THEN s.applied WHEN t.recovery THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END
	FROM heard t CROSS JOIN placed p LEFT JOIN writing w ON true LEFT JOIN sent s ON s.application_name = p.application;
END;

-- part: aurora

CREATE OR REPLACE FUNCTION pg_catalog.aurora_version()
	RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT (v.n / 10000)::text || '.' || (v.n % 10000)::text
	FROM (SELECT current_setting('server_version_num')::integer AS n) v WHERE current_setting('howdah.cluster', true) = 'aurora';
END;

CREATE OR REPLACE FUNCTION pg_catalog.aurora_db_instance_identifier()
	RETURNS text LANGUAGE sql STABLE PARALLEL RESTRICTED SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	SELECT m.instance FROM howdah_members() m WHERE m.own AND current_setting('howdah.cluster', true) = 'aurora' LIMIT 1;
END;

-- The columns are Aurora's. What nothing here corresponds to is NULL. While one
-- member takes another's place, an instance has two: the one that writes counts,
-- else the one that was seen last.
CREATE OR REPLACE FUNCTION pg_catalog.aurora_replica_status(
	OUT server_id text, OUT session_id text, OUT durable_lsn bigint, OUT highest_lsn_rcvd bigint, OUT current_read_lsn bigint,
	OUT cur_replay_latency_in_usec bigint, OUT active_txns integer, OUT is_current boolean, OUT last_transport_error integer,
	OUT last_error_timestamp timestamptz, OUT last_update_timestamp timestamptz, OUT feedback_xmin bigint, OUT feedback_epoch integer,
	OUT replica_lag_in_msec double precision, OUT log_stream_speed_in_kib_per_second real, OUT log_buffer_sequence_number bigint,
	OUT oldest_read_view_trx_id bigint, OUT oldest_read_view_lsn bigint, OUT pending_read_ios integer, OUT read_ios integer,
	OUT iops integer, OUT cpu real)
	RETURNS SETOF record LANGUAGE sql VOLATILE PARALLEL RESTRICTED SECURITY DEFINER ROWS 8
	SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	SELECT DISTINCT ON (m.instance) m.instance, CASE WHEN m.writer THEN 'MASTER_SESSION_ID' ELSE m.id END,
		(m.received - '0/0'::pg_lsn)::bigint, (m.received - '0/0'::pg_lsn)::bigint, (m.applied - '0/0'::pg_lsn)::bigint,
		(m.lag_ms * 1000)::bigint, NULL::integer, NULL::boolean, NULL::integer,
		NULL::timestamptz, m.seen, NULL::bigint, NULL::integer,
		CASE WHEN NOT m.writer THEN m.lag_ms END, NULL::real, NULL::bigint,
		NULL::bigint, NULL::bigint, NULL::integer, NULL::integer,
		NULL::integer, NULL::real
	FROM howdah_members() m
	WHERE m.seen IS NOT NULL AND current_setting('howdah.cluster', true) = 'aurora'
	ORDER BY m.instance, m.writer DESC, m.seen DESC;
END;

-- part: multi-az

-- pg_upgrade moves these functions, and not those of pg_catalog that they call: so
-- their bodies are texts, which are read when they are called.

CREATE SCHEMA IF NOT EXISTS rds_tools;

-- A schema of that name that is a user's is left alone: what is in it would be, too. A
-- user may have made it while this ran, so it is looked at last.
DO $$
BEGIN
	IF EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'rds_tools' AND nspowner <> 'rdsadmin'::pg_catalog.regrole) THEN
		RAISE EXCEPTION 'the schema rds_tools belongs to somebody else';
	END IF;
END
$$;

GRANT USAGE ON SCHEMA rds_tools TO PUBLIC;

CREATE OR REPLACE FUNCTION rds_tools.show_topology(driver text DEFAULT NULL, OUT id text, OUT endpoint text, OUT port integer)
	RETURNS SETOF record LANGUAGE sql STABLE PARALLEL RESTRICTED SECURITY DEFINER ROWS 3
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT DISTINCT m.id, m.endpoint, m.port FROM pg_catalog.howdah_members() m
	WHERE pg_catalog.current_setting('howdah.cluster', true) = 'multi-az' ORDER BY m.id
$$;

CREATE OR REPLACE FUNCTION rds_tools.dbi_resource_id()
	RETURNS text LANGUAGE sql STABLE PARALLEL RESTRICTED SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT m.id FROM pg_catalog.howdah_members() m WHERE m.own AND pg_catalog.current_setting('howdah.cluster', true) = 'multi-az' LIMIT 1
$$;

-- A driver takes a server for the writer if the answer is NULL, or that server's own
-- id. One that does not know who writes says so in a word that is nobody's id.
CREATE OR REPLACE FUNCTION rds_tools.multi_az_db_cluster_source_dbi_resource_id()
	RETURNS text LANGUAGE sql STABLE PARALLEL RESTRICTED SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT coalesce((SELECT m.id FROM pg_catalog.howdah_members() m WHERE m.writer LIMIT 1), 'unknown')
	WHERE pg_catalog.current_setting('howdah.cluster', true) = 'multi-az'
$$;

-- On RDS this is an extension, which a user creates. Here it is there, so that
-- CREATE EXTENSION IF NOT EXISTS finds it, and a dump holds no more of it than
-- that statement. It has no files: nothing but its row is needed for that.
INSERT INTO pg_catalog.pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
	SELECT pg_catalog.pg_nextoid('pg_catalog.pg_extension', 'oid', 'pg_catalog.pg_extension_oid_index'),
		'rds_tools', 'rdsadmin'::pg_catalog.regrole, 'pg_catalog'::pg_catalog.regnamespace, false, '1.0'
	WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'rds_tools');

DO $$
DECLARE
	member text;
BEGIN
	FOREACH member IN ARRAY ARRAY['SCHEMA rds_tools', 'FUNCTION rds_tools.show_topology(text)', 'FUNCTION rds_tools.dbi_resource_id()',
		'FUNCTION rds_tools.multi_az_db_cluster_source_dbi_resource_id()']
	LOOP
		CONTINUE WHEN EXISTS (SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid AND e.extname = 'rds_tools'
			WHERE d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND d.deptype = 'e'
				AND (d.classid, d.objid) = CASE WHEN member = 'SCHEMA rds_tools'
					THEN ('pg_catalog.pg_namespace'::pg_catalog.regclass::oid, 'rds_tools'::pg_catalog.regnamespace::oid)
					ELSE ('pg_catalog.pg_proc'::pg_catalog.regclass::oid, pg_catalog.substr(member, 10)::pg_catalog.regprocedure::oid) END);
		EXECUTE 'ALTER EXTENSION rds_tools ADD ' || member;
	END LOOP;
END
$$;

-- part: former

-- For an instance that was made of the data of a cluster: drivers would take it for
-- one. What Aurora's drivers ask answers nothing there, and stays. While something of
-- a user's depends on these functions, as a view does, this fails.
DO $$
BEGIN
	IF EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'rds_tools' AND extowner = 'rdsadmin'::pg_catalog.regrole) THEN
		DROP EXTENSION rds_tools;
	END IF;
END
$$;
