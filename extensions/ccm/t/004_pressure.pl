# Caches that are too small, and replay that fills them: the worker never makes
# pages turn round, and what is hot comes back, or does not leave at all.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Ccm;
use Test::More;

my $primary = primary('primary', q(
shared_buffers = 32MB
ccm.slice_buffers = 1000
));
my $standby = standby($primary, 'standby');
my $buffers = 4096;
# 2000 pages of what is hot
$primary->safe_psql('postgres', q(
CREATE TABLE hot AS SELECT i, repeat('x', 900) AS filler FROM generate_series(1, 16000) i;
VACUUM hot;
CHECKPOINT;
));

my $pages = pages($primary, 'hot');
sub held { return cached($standby, 'hot') / $pages }

# A bulk load: the primary writes it through a ring of few buffers, replay does not.
my $floods = 0;
sub flood
{
	my ($pages) = @_;
	$floods++;
	$primary->safe_psql('postgres', "CREATE TABLE flood_$floods AS SELECT repeat(md5(i::text), 29) FROM generate_series(1, 8 * $pages) i");
	wait_replay($primary, $standby);
}

# several slices: every page is in one of them
set_on($standby, 'ccm.enabled' => 'off');
wait_replay($primary, $standby);
$standby->restart;
make_hot($primary, 'hot');
set_on($standby, 'ccm.enabled' => 'on');
ok(wait_scans($standby, 3), 'scans in slices');
ok(comes($standby, 'hot'), 'bring everything');
is($primary->safe_psql('postgres', "SELECT buffers_found_last_scan >= 2000 AND buffers_found_last_scan < 4096 AND current_scan_progress <= 4096 FROM aurora_ccm_status()"), 't',
	'and are counted as one scan');

# a load of twice the cache while nobody scans, then three scans
set_on($standby, 'ccm.enabled' => 'off');
flood(2 * $buffers);
is(cached($primary, 'hot', 3), $pages, 'hot on the primary after a bulk load');
cmp_ok(held(), '<', 0.5, 'a bulk load pushes out what is hot (' . held() . ' is left)');
set_on($standby, 'ccm.interval' => 60000);
for my $scan (1 .. 3)
{
	# Each reload wakes the worker: three scans, not one more.
	my $scans = reader($standby, 'scans');
	set_on($standby, 'ccm.enabled' => 'on');
	ok(wait_reader($standby, "scans > $scans AND state = 'waiting'"), "scan $scan");
	diag "after scan $scan: " . held();
	last if held() >= 0.97;
	set_on($standby, 'ccm.enabled' => 'off');
	ok(wait_reader($standby, "state = 'off'"), 'off in between');
}
cmp_ok(held(), '>=', 0.97, 'three scans later it is back');

# mirror mode: what the load brings is the next to go, so that what is hot stays
set_on($standby, 'ccm.enabled' => 'on', 'ccm.mirror' => 'on', 'ccm.interval' => 200);
ok(wait_reader($standby, 'scans > 0 AND demoted > 0'), 'mirror mode demotes what the primary has not');
my $least = 1;
for my $part (1 .. 16)
{
	flood($buffers / 8);
	# what is hot is what the primary's sessions use all the time
	make_hot($primary, 'hot');
	ok(wait_scans($standby, 1), "a scan after part $part");
	$least = held() if held() < $least;
}
cmp_ok($least, '>=', 0.9, "with mirror mode it never leaves (least: $least)");
cmp_ok(cached($standby, 'hot', 3), '>=', 1800, 'with its usage counts');

# half the cache of the primary, and all of that is hot: no page is read twice
set_on($standby, 'ccm.mirror' => 'off');
set_on($standby, 'shared_buffers' => '12MB', 'ccm.enabled' => 'off');
$standby->restart;
$primary->safe_psql('postgres', q(
CREATE TABLE more AS SELECT i, repeat('x', 900) AS filler FROM generate_series(1, 10000) i;
VACUUM more;
CHECKPOINT));
make_hot($primary, 'hot');
make_hot($primary, 'more');
wait_replay($primary, $standby);
$standby->restart;
my $hot = hot_pages($primary);
cmp_ok($hot, '>=', 2 * 1536, "twice the standby's buffers are hot ($hot)");
set_on($standby, 'ccm.enabled' => 'on');
ok(wait_reader($standby, "scans > 0 AND paused_reason = 'cold limit' AND held_back > 0"), 'the cold limit shows');
ok(wait_scans($standby, 5), 'after some scans');
ok(ccm_eventually('hot', sub { cached($standby, 'hot') + cached($standby, 'more') >= 0.85 * 1536 }), 'the cache is full of what is hot');
ok(wait_scans($standby, 3), 'and settles');
my $before = reader($standby, 'total_read');
ok(wait_scans($standby, 20), 'twenty scans more');
my $read = reader($standby, 'total_read') - $before;
cmp_ok($read, '<', 20 * 0.01 * 1536, "read less than a hundredth of the cache each ($read)");

# a standby that applications use: what they use between two scans stays, though the primary has it not
set_on($standby, 'ccm.interval' => 2000);
my $last = reader($standby, 'scans') + 4;
make_hot($standby, 'pg_proc') while reader($standby, 'scans') < $last;
cmp_ok(cached($standby, 'pg_proc'), '>=', 0.95 * pages($standby, 'pg_proc'), 'pages that sessions of the standby use stay');

# the rate counts for single batches, too
set_on($standby, 'ccm.enabled' => 'off', 'ccm.interval' => 200, 'shared_buffers' => '32MB');
$standby->restart;
make_hot($primary, 'hot');
set_on($standby, 'ccm.rate' => 100, 'ccm.enabled' => 'on');
ok(wait_reader($standby, "state = 'reading'"), 'a slow job');
my $first = cached($standby, 'hot');
sleep 1;
my $then = cached($standby, 'hot');
cmp_ok($first, '<', 500, "does not begin with a whole batch ($first)");
cmp_ok($then - $first, '<', 400, "nor goes on with one ($first to $then)");

# sessions that fill the cache meanwhile keep it
$standby->safe_psql('postgres', "SELECT pg_prewarm('more')") for 1 .. 5;
$standby->safe_psql('postgres', "SELECT pg_prewarm('flood_1', 'buffer', 'main', 0, 3500)") for 1 .. 5;
ok(wait_reader($standby, "scans > 0 AND held_back > 0 AND read < 1500"), 'the job ends where there is nothing cold any more');

$standby->stop;
$primary->stop;
done_testing();
