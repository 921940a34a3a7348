# A page that is hot on the primary comes to the standby, with its usage count;
# then nothing is sent any more; and after a promotion the cache is there.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Ccm;
use Test::More;

my $primary = primary('primary');
$primary->safe_psql('postgres', q(
CREATE TABLE t AS SELECT i, repeat('x', 900) AS filler FROM generate_series(1, 4000) i;
VACUUM t;
CHECKPOINT;
));
my $blocks = $primary->safe_psql('postgres', "SELECT pg_relation_size('t') / 8192");
my $standby = standby($primary, 'standby');

ok(wait_scans($standby, 2), 'the standby scans');
make_hot($primary, 't');
my $scans = reader($standby, 'scans');
ok(wait_scans($standby, 2), 'two intervals later');
cmp_ok(cached($standby, 't', 3), '>=', 0.98 * $blocks, 'the hot pages are on the standby, with their usage counts');
ok(comes($standby, 't'), 'and soon every one');
cmp_ok(reader($standby, 'total_read'), '>=', $blocks, 'the worker has read them');

ok(wait_reader($standby, 'received = 0 AND found > 0'), 'then nothing is sent any more');
is(reader($standby, 'state || warm_percent'), 'waiting100', 'the standby is warm');
is($primary->safe_psql('postgres', 'SELECT buffers_sent_last_scan, buffers_found_last_scan > 400 FROM aurora_ccm_status()'), '0|t',
	'and the primary says so');
is($primary->safe_psql('postgres', "SELECT buffers_sent_last_minute >= $blocks, buffers_found_last_minute > buffers_sent_last_minute,
	current_scan_progress <= 2048, warm_percent, scans > 0, reader_pid IS NOT NULL FROM ccm.status()"), 't|t|t|100|t|t',
	'ccm.status() has what a person needs');

# a scan that took long knows only what was hot when it asked
for my $name ('slow', 'later')
{
	$primary->safe_psql('postgres', "CREATE TABLE $name AS SELECT i, repeat('x', 900) AS filler FROM generate_series(1, 1600) i");
}
# From PostgreSQL 16 on, a table is extended by pages that stay empty, which a standby lacks: FULL leaves none.
$primary->safe_psql('postgres', 'VACUUM (FULL) slow, later; CHECKPOINT');
wait_replay($primary, $standby);
set_on($standby, 'ccm.enabled' => 'off', 'ccm.rate' => 50, 'ccm.batch' => 5);
$standby->restart;
make_hot($primary, 'slow');
set_on($standby, 'ccm.enabled' => 'on');
ok(wait_reader($standby, "state = 'reading'"), 'a slow scan reads');
make_hot($primary, 'later');
ok(wait_reader($standby, 'scans = 1'), 'it ends');
is(reader($standby, 'warm_percent < 95 AND scans = 1 AND read > 100'), 't', 'what it read is not taken for all that is hot now');
set_on($standby, 'ccm.rate' => 0, 'ccm.batch' => 1000);
ok(wait_reader($standby, 'warm_percent = 100'), 'the next ones say when it is here');
ok(comes($standby, 'later'), 'and it is');
ok(comes($standby, 't'), 'with all the rest');

# promotion: the worker ends, the pages stay
$standby->promote;
ok($standby->poll_query_until('postgres', "SELECT state = 'primary' FROM ccm.reader_status()"), 'promoted');
ok(ccm_eventually('the worker ends', sub {
	$standby->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'ccm%'") == 0 }), 'no worker is left');
is(cached($standby, 't', 3), $blocks, 'the new primary is warm');
is($standby->safe_psql('postgres', "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM t") =~ /read=/ ? 1 : 0, 0,
	'and reads nothing');
ok(ccm_eventually('the primary notices', sub {
	my ($code) = $primary->psql('postgres', 'SELECT reader_pid IS NULL FROM ccm.status()'); $code == 0 }), 'the old primary still has its numbers');

$standby->stop;
$primary->stop;
done_testing();
