-- What is asked over the network, and what a person sees. See README.md.
\echo Use "CREATE EXTENSION ccm" to load this file. \quit

-- Fails if somebody else has made it: who owns a schema owns what is called in it.
CREATE SCHEMA ccm;

-- Who may ask. Roles belong to the cluster, so another database may have made it.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'ccm_reader') THEN
    CREATE ROLE ccm_reader NOLOGIN;
  END IF;
END $$;

CREATE FUNCTION ccm.filter(slice integer, nslices integer, min_usage integer) RETURNS bytea
  LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'ccm_filter';
COMMENT ON FUNCTION ccm.filter IS 'the Bloom filter of the pages that this server has cached';

CREATE FUNCTION ccm.pull(filter bytea, slice integer, nslices integer, min_usage integer, max integer, start_buf integer,
  OUT blocks bytea, OUT next_buf integer, OUT found bigint, OUT peer_filter bytea) RETURNS record
  LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'ccm_pull';
COMMENT ON FUNCTION ccm.pull IS 'the hot pages of this server that a filter has not';

CREATE FUNCTION ccm.contains(filter bytea, database oid, tablespace oid, filenode oid, fork integer, block bigint) RETURNS boolean
  LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'ccm_contains';
COMMENT ON FUNCTION ccm.contains IS 'does a filter have a page? For tests.';

CREATE FUNCTION ccm.status(
  OUT buffers_sent_last_minute bigint, OUT buffers_found_last_minute bigint,
  OUT buffers_sent_last_scan bigint, OUT buffers_found_last_scan bigint,
  OUT buffers_sent_current_scan bigint, OUT buffers_found_current_scan bigint,
  OUT current_scan_progress bigint,
  OUT warm_percent double precision, OUT warm_rate_kbps double precision,
  OUT scans bigint, OUT last_pull_at timestamptz, OUT reader_address text, OUT reader_pid integer) RETURNS record
  LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'ccm_status';
COMMENT ON FUNCTION ccm.status IS 'what this server has sent to its reader';

CREATE FUNCTION ccm.reader_status(
  OUT state text, OUT paused_reason text, OUT warm_percent double precision,
  OUT scans bigint, OUT last_scan_at timestamptz, OUT last_scan_ms double precision,
  OUT found bigint, OUT received bigint, OUT hit bigint, OUT read bigint,
  OUT skipped bigint, OUT held_back bigint, OUT demoted bigint, OUT errors bigint,
  OUT total_read bigint, OUT total_bytes bigint, OUT total_errors bigint,
  OUT cold_buffers bigint, OUT replay_lag bigint, OUT upstream text,
  OUT error text, OUT last_error text, OUT last_error_at timestamptz) RETURNS record
  LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'ccm_reader_status';
COMMENT ON FUNCTION ccm.reader_status IS 'what the worker of this standby does';

-- In pg_catalog, where it is found without a schema and nobody puts another in front.
CREATE FUNCTION pg_catalog.aurora_ccm_status(
  OUT buffers_sent_last_minute bigint, OUT buffers_found_last_minute bigint,
  OUT buffers_sent_last_scan bigint, OUT buffers_found_last_scan bigint,
  OUT buffers_sent_current_scan bigint, OUT buffers_found_current_scan bigint,
  OUT current_scan_progress bigint) RETURNS record
  LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'ccm_aurora_status';
COMMENT ON FUNCTION pg_catalog.aurora_ccm_status IS 'what this server has sent to its reader, as on Aurora';

REVOKE ALL ON FUNCTION ccm.filter, ccm.pull, ccm.contains, ccm.status, ccm.reader_status FROM PUBLIC;
GRANT USAGE ON SCHEMA ccm TO pg_monitor;
GRANT EXECUTE ON FUNCTION ccm.status, ccm.reader_status TO pg_monitor;

-- A role of this name that can log in is somebody's, who may have made it to get at these rights. He
-- gets none; who runs this may grant EXECUTE on ccm.pull to the standby's login itself.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'ccm_reader' AND rolcanlogin) THEN
    RAISE WARNING 'the role ccm_reader can log in, so it is not ours and gets no rights'
      USING HINT = 'Rename or drop it, and create the extension again.';
  ELSE
    GRANT USAGE ON SCHEMA ccm TO ccm_reader;
    GRANT EXECUTE ON FUNCTION ccm.filter, ccm.pull, ccm.contains, ccm.status, ccm.reader_status TO ccm_reader;
  END IF;
END $$;
