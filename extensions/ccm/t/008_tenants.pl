# A tenant who has CREATEROLE, and has made himself a member of ccm_reader, has a superuser's worker
# evaluate an index of his: it learns nothing.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Ccm;
use Test::More;

my $node = primary('primary', q(
autovacuum = on
autovacuum_naptime = 1s
autovacuum_analyze_threshold = 10
));
$node->safe_psql('postgres', q(
CREATE ROLE tenant LOGIN CREATEROLE;
GRANT ccm_reader TO tenant;
CREATE SCHEMA loot AUTHORIZATION tenant;
SET SESSION AUTHORIZATION tenant;
CREATE TABLE loot.loot (session name, what text);
CREATE FUNCTION loot.grab() RETURNS void VOLATILE LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO loot.loot VALUES (session_user, ccm.filter(0, 1, 0));
EXCEPTION WHEN OTHERS THEN
  INSERT INTO loot.loot VALUES (session_user, sqlerrm);
END $$;
CREATE FUNCTION loot.innocent(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
  IF session_user <> 'tenant' THEN EXECUTE 'SELECT loot.grab()'; END IF;
  RETURN $1;
END $$;
CREATE TABLE loot.bait (i int);
CREATE INDEX ON loot.bait (loot.innocent(i));
INSERT INTO loot.bait SELECT generate_series(1, 1000);
));
ok($node->poll_query_until('postgres', q(SELECT count(*) > 0 FROM loot.loot)), 'the worker evaluates it');
is($node->safe_psql('postgres', q(SELECT DISTINCT what FROM loot.loot)), 'permission denied to read which pages are cached', 'and is refused');
$node->stop;
done_testing();
