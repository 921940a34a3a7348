-- What ccm.pull() refuses, and how it answers. Nobody has asked yet:
SELECT * FROM aurora_ccm_status();
SELECT * FROM ccm.status();
SELECT state, paused_reason, scans, last_scan_at, upstream, error FROM ccm.reader_status();

CREATE FUNCTION refused(filter bytea, slice int DEFAULT 0, nslices int DEFAULT 1, min_usage int DEFAULT 3, max int DEFAULT 1000, start_buf int DEFAULT 0)
RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM ccm.pull(filter, slice, nslices, min_usage, max, start_buf);
  RETURN 'answered';
EXCEPTION WHEN OTHERS THEN
  RETURN sqlstate || ' ' || sqlerrm;
END $$;
CREATE FUNCTION spoiled(at int, bytes bytea) RETURNS text LANGUAGE sql AS $$
  SELECT refused(overlay(ccm.filter(0, 1, 2) PLACING bytes FROM at + 1))
$$;

-- a malformed filter
SELECT refused('');
SELECT refused('rubbish');
SELECT refused(decode(repeat('00', 1000), 'hex'));
SELECT spoiled(0, '\xff');                         -- magic
SELECT spoiled(4, '\x02');                         -- version
SELECT spoiled(6, '\x00');                         -- no hashes
SELECT spoiled(6, '\x11');                         -- too many
SELECT spoiled(7, '\xfc');                         -- flags
SELECT spoiled(8, '\x4000000000000000');           -- bits: fewer than are there
SELECT spoiled(8, '\xffffffffffffffff');           -- more than there are
SELECT spoiled(8, '\x0000000000000000');
SELECT spoiled(24, '\x0102030405060708');          -- another system
SELECT spoiled(40, '\x01000000');                  -- slice
SELECT spoiled(44, '\x00000000');                  -- number of slices
SELECT spoiled(44, '\xffffffff');
SELECT spoiled(48, '\x00100000');                  -- block size
SELECT spoiled(56, '\x01');                        -- what is to be 0
SELECT refused(ccm.filter(0, 1, 2) || '\x00');     -- too long
SELECT refused(substr(ccm.filter(0, 1, 2), 1, length(ccm.filter(0, 1, 2)) - 1));
SELECT refused(substr(ccm.filter(0, 1, 2), 1, 64));

-- other arguments
SELECT refused(ccm.filter(0, 2, 2));
SELECT refused(ccm.filter(0, 2, 2), 1, 2);
SELECT refused(ccm.filter(0, 1, 2), 0, 1, -1);
SELECT refused(ccm.filter(0, 1, 2), 0, 1, 6);
SELECT refused(ccm.filter(0, 1, 2), max => 0);
SELECT refused(ccm.filter(0, 1, 2), max => 2000000000);
SELECT refused(ccm.filter(0, 1, 2), start_buf => -1);
SELECT refused(ccm.filter(0, 1, 2), start_buf => 2000000000);
SELECT ccm.pull(ccm.filter(0, 1, 2), 0, 1, 3, 1000, NULL) IS NULL AS strict;

-- nothing is sent of what the filter has; nobody's mirror is sent unasked
SELECT length(blocks) AS header_only, next_buf, found > 0 AS found, peer_filter IS NULL AS no_mirror
FROM ccm.pull(ccm.filter(0, 1, 0), 0, 1, 3, 100000, 0);

-- with a filter that has nothing all is sent, in parts if it is more than max
CREATE FUNCTION nothing() RETURNS bytea LANGUAGE sql AS $$
  SELECT overlay(overlay(substr(ccm.filter(0, 1, 0), 1, 64) PLACING '\x4000000000000000' FROM 9) PLACING '\x0000000000000000' FROM 17) || '\x0000000000000000'
$$;
CREATE FUNCTION pages(blocks bytea) RETURNS bigint LANGUAGE sql AS $$
  SELECT get_byte(blocks, 20) + get_byte(blocks, 21) * 256 + get_byte(blocks, 22)::bigint * 65536
$$;
SELECT pages(blocks) = found AS all_sent, next_buf, length(blocks) < found * 4 + 1000 AS small
FROM ccm.pull(nothing(), 0, 1, 3, 100000, 0);
SELECT pages(blocks), found, next_buf > 0 AS more FROM ccm.pull(nothing(), 0, 1, 3, 10, 0);
WITH RECURSIVE parts AS (
  SELECT pages(blocks), next_buf FROM ccm.pull(nothing(), 0, 1, 3, 100, 0)
  UNION ALL
  SELECT p.pages, p.next_buf FROM parts, LATERAL (SELECT pages(blocks), next_buf FROM ccm.pull(nothing(), 0, 1, 3, 100, parts.next_buf)) p WHERE parts.next_buf >= 0)
SELECT sum(pages) > 400 AS all_sent, max(pages) AS at_most, count(*) > 4 AS in_parts FROM parts;

-- the mirror, for who asks
SELECT length(peer_filter) > 64 AS mirror FROM ccm.pull(overlay(nothing() PLACING '\x01' FROM 8), 0, 1, 3, 10, 0);
SELECT peer_filter IS NULL AS only_once FROM ccm.pull(overlay(nothing() PLACING '\x01' FROM 8), 0, 1, 3, 10, 1);

-- a filter of what is hot is smaller
SELECT length(hot.peer_filter) < length(mirror.peer_filter) AS smaller FROM ccm.pull(overlay(nothing() PLACING '\x02' FROM 8), 0, 1, 5, 10, 0) hot,
  ccm.pull(overlay(nothing() PLACING '\x01' FROM 8), 0, 1, 5, 10, 0) mirror;

-- now somebody has
SELECT buffers_sent_last_minute > 0, buffers_found_last_minute >= buffers_sent_last_minute, current_scan_progress > 0 FROM aurora_ccm_status();
SELECT array_agg(attname ORDER BY attnum) = '{buffers_sent_last_minute,buffers_found_last_minute,buffers_sent_last_scan,buffers_found_last_scan,buffers_sent_current_scan,buffers_found_current_scan,current_scan_progress}' AS columns_of_aurora,
  bool_and(type = 'bigint'::regtype) AS bigint
FROM pg_proc, unnest(proargnames, proallargtypes) WITH ORDINALITY AS u(attname, type, attnum) WHERE proname = 'aurora_ccm_status';

-- another reader, as long as this one's session lasts
SELECT spoiled(32, '\x0102030405060708');
\c
SELECT 1 FROM pg_sleep(0) WHERE NOT EXISTS (SELECT FROM generate_series(1, 3000), LATERAL (SELECT pg_sleep(0.01)) s WHERE spoiled(32, '\x0102030405060708') = 'answered' LIMIT 1);
-- after one scan its place is kept for it, after more it is free once the session is over
SELECT spoiled(32, '\x0102030405060708');
