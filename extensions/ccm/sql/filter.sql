-- What a filter of this server's buffers has: nothing that is cached is
-- missing, and of what is not, one page in a hundred is taken for cached.
CREATE EXTENSION ccm;
CREATE EXTENSION pg_buffercache;
CREATE EXTENSION pg_prewarm;
CREATE TABLE t AS SELECT i, repeat('x', 900) AS filler FROM generate_series(1, 4000) i;
CHECKPOINT;
SELECT count(pg_prewarm('t')) AS times FROM generate_series(1, 5);

CREATE TABLE probe AS SELECT ccm.filter(0, 1, 0) AS one, ccm.filter(0, 1, 0) AS two;
CREATE FUNCTION has_t(filter bytea, block bigint) RETURNS boolean LANGUAGE sql AS $$
  SELECT ccm.contains(filter, (SELECT oid FROM pg_database WHERE datname = current_database()), 1663, pg_relation_filenode('t'), 0, block)
$$;
SELECT bool_and(has_t(one, block)) AND bool_and(has_t(two, block)) AS nothing_is_forgotten
FROM probe, generate_series(0, pg_relation_size('t') / 8192 - 1) block;

-- relations that nobody has
SELECT count(*) FILTER (WHERE ccm.contains(one, 1, 1, 1, 0, block)) BETWEEN 500 AND 1500 AS one_in_a_hundred,
  count(*) FILTER (WHERE ccm.contains(one, 1, 1, 1, 0, block) AND ccm.contains(two, 1, 1, 1, 0, block)) < 50 AS another_seed_is_wrong_elsewhere
FROM probe, generate_series(1, 100000) block;
SELECT one <> two AS seeds_differ, length(one) = length(two) AS same_length FROM probe;

-- all of them were read five times
SELECT bool_and(has_t(ccm.filter(0, 1, 5), block)) AS all_hot FROM generate_series(0, pg_relation_size('t') / 8192 - 1, 50) block;

-- slices: each page is in one of them
WITH slices AS MATERIALIZED (SELECT ccm.filter(slice, 4, 0) AS filter FROM generate_series(0, 3) slice)
SELECT count(DISTINCT block) = pg_relation_size('t') / 8192 AS complete, count(*) = count(DISTINCT block) AS disjoint
FROM slices, generate_series(0, pg_relation_size('t') / 8192 - 1) block WHERE has_t(filter, block);

-- what is no slice
SELECT ccm.filter(-1, 1, 0);
SELECT ccm.filter(1, 1, 0);
SELECT ccm.filter(0, 0, 0);
SELECT ccm.filter(0, 1, 6);
SELECT ccm.filter(0, 1, NULL) IS NULL AS strict;
