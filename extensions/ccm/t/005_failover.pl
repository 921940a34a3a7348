# Promotion in the middle of a scan is as fast as without, ends the worker, and
# leaves what was read; then the roles swap, by themselves.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Ccm;
use Test::More;

my $primary = primary('primary');
my $standby = standby($primary, 'standby');
$primary->safe_psql('postgres', q(
CREATE TABLE hot AS SELECT i, repeat('x', 900) AS filler FROM generate_series(1, 8000) i;
VACUUM hot;
CHECKPOINT;
));

sub workers
{
	my ($node) = @_;
	return $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'ccm%'");
}

# promoted while the worker reads, slowly
set_on($standby, 'ccm.enabled' => 'off');
wait_replay($primary, $standby);
$standby->restart;
make_hot($primary, 'hot');
set_on($standby, 'ccm.enabled' => 'on', 'ccm.rate' => 100, 'ccm.batch' => 10);
ok($standby->poll_query_until('postgres', "SELECT state = 'reading' AND (SELECT count(*) > 20 FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('hot')) FROM ccm.reader_status()"),
	'in the middle of reading');
# the login of the cluster's operator, on either server
my $login = $standby->safe_psql('postgres', 'SHOW ccm.upstream_conninfo');
$primary->stop('immediate');
$standby->promote;
my $read = cached($standby, 'hot', 3);
is($standby->safe_psql('postgres', 'SELECT pg_is_in_recovery(), state FROM ccm.reader_status()'), 'f|primary', 'promoted');
cmp_ok($read, '<', 1000, "with what was read until then ($read of 1000 pages)");
ok(ccm_eventually('the workers end', sub { workers($standby) == 0 }), 'no worker is left');
cmp_ok(cached($standby, 'hot', 3), '>=', $read - 1, 'the pages stay');
is(logged($standby, 'PANIC|TRAP|signal 11|LOG:  ccm: other'), 0, 'nothing strange in the log');
$standby->safe_psql('postgres', q(INSERT INTO hot SELECT 1, 'y'; CHECKPOINT));
is($standby->safe_psql('postgres', 'SELECT count(*) FROM hot'), '8001', 'the new primary works');


# promoted while the worker waits for the answer of a primary that hangs
my $third = standby($standby, 'third');
ok(wait_scans($third, 1), 'a standby of the new primary');
$third->safe_psql('postgres', 'SELECT 1');
my $hangs = $standby->safe_psql('postgres', 'SELECT reader_pid FROM ccm.status()');
kill 'STOP', $hangs;
ok(wait_reader($third, "state = 'scanning'"), 'it waits for an answer');
$third->promote;
ok(ccm_eventually('the worker ends', sub {
	$third->safe_psql('postgres', "SELECT state FROM ccm.reader_status()") eq 'primary' }), 'promoted nevertheless');
kill 'CONT', $hangs;
$third->stop;

# roles swap: the old primary comes back as the standby of the new one
$primary = standby($standby, 'back');
make_hot($standby, 'hot');
set_on($primary, 'ccm.rate' => 0, 'ccm.batch' => 1000);
ok(wait_scans($primary, 2), 'the worker of the old primary asks the new one');
ok(comes($primary, 'hot'), 'and brings everything');
ok($standby->poll_query_until('postgres', 'SELECT warm_percent = 100 FROM ccm.status()'), 'the new primary says so');
is($primary->psql('postgres', 'SELECT * FROM aurora_ccm_status()'), 3, 'and a standby that nobody asks has none');

# and back again, planned: wait until it is warm, stop, promote
ok(wait_reader($primary, 'warm_percent >= 98'), 'warm');
my $hot = cached($standby, 'hot', 3);
wait_replay($standby, $primary);
$standby->stop;
$primary->promote;
cmp_ok(cached($primary, 'hot', 3), '>=', 0.98 * $hot, 'what was hot is here after the promotion');
$primary->safe_psql('postgres', 'SELECT pg_stat_reset()');
my $explain = $primary->safe_psql('postgres', 'EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM hot');
unlike($explain, qr/read=/, 'it reads nothing');

# a standby of a standby asks its own upstream
my $cascade_root = standby($primary, 'middle');
my $cascade = PostgreSQL::Test::Cluster->new('leaf');
$cascade_root->backup('leaf');
$cascade->init_from_backup($cascade_root, 'leaf', has_streaming => 1);
$cascade->append_conf('postgresql.conf', "ccm.upstream_conninfo = ''");
$cascade->start;
make_hot($primary, 'hot');
ok(wait_scans($cascade, 2), 'a standby of a standby');
ok(comes($cascade, 'hot'), 'is warm, too');
is($cascade_root->safe_psql('postgres', 'SELECT scans > 0 FROM ccm.status()'), 't', 'and its upstream says so');

$_->stop for $cascade, $cascade_root, $primary;
done_testing();
