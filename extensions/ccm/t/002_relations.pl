# What may become of a relation between the moment at which the primary names
# its pages and the moment at which the standby reads them.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Ccm;
use Test::More;

my $primary = primary('primary', q(
allow_in_place_tablespaces = on
max_prepared_transactions = 3
));
my $standby = standby($primary, 'standby');
my $table = q(AS SELECT i, repeat('x', 900) AS filler FROM generate_series(1, 800) i);

# The standby with nothing in its cache, and the worker between the answer of
# the primary, which has these relations hot, and the reading
sub hold
{
	my (@relations) = @_;
	wait_replay($primary, $standby);
	set_on($standby, 'ccm.enabled' => 'off', 'ccm.debug_hold' => 'on');
	$standby->restart;
	make_hot($primary, $_) for @relations;
	set_on($standby, 'ccm.enabled' => 'on');
	ok(wait_reader($standby, "state = 'held'"), "held: @relations");
}

sub let_go
{
	wait_replay($primary, $standby);
	my $scans = reader($standby, 'scans');
	set_on($standby, 'ccm.debug_hold' => 'off');
	ok(wait_reader($standby, "scans > $scans + 1 AND state = 'waiting'"), 'the scan goes on');
}

sub query { $standby->safe_psql('postgres', $_[0]) }

# drop, truncate, rewrite, shrink: the pages are not read, and what replay does later finds no leftovers
$primary->safe_psql('postgres', "CREATE TABLE $_ $table; VACUUM $_") for qw(dropped emptied rewritten shrunk kept);
$primary->safe_psql('postgres', 'CHECKPOINT');
my %node = map { $_ => $primary->safe_psql('postgres', "SELECT pg_relation_filenode('$_')") } qw(dropped emptied rewritten);
hold(qw(dropped emptied rewritten shrunk kept));
$primary->safe_psql('postgres', q(
DROP TABLE dropped;
TRUNCATE emptied;
CLUSTER rewritten USING rewritten_i;
DELETE FROM shrunk WHERE i > 400;
VACUUM shrunk;
) =~ s/^CLUSTER/CREATE INDEX rewritten_i ON rewritten (i);\nCLUSTER/mr);
let_go();
is(query("SELECT count(*) FROM pg_buffercache WHERE relfilenode IN (" . join(',', values %node) . ')'), '0',
	'no page of a file that is gone is cached');
is(query("SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('shrunk') AND relforknumber = 0
	AND relblocknumber >= pg_relation_size('shrunk') / 8192"), '0', 'nor one behind the end');
ok(comes($standby, 'kept'), 'the others are read');
$primary->safe_psql('postgres', "INSERT INTO $_ SELECT i, repeat('y', 900) FROM generate_series(1, 2000) i") for qw(emptied shrunk rewritten);
wait_replay($primary, $standby);
is(query('SELECT count(*) FROM emptied'), '2000', 'a truncated relation grows again');
is(query('SELECT count(*) FROM shrunk'), '2400', 'so does one that VACUUM shortened');
is(query('SELECT count(*) FROM rewritten'), '2800', 'and one that was rewritten');

# a lock that is replayed: the relation is left out, nobody waits
$primary->safe_psql('postgres', "CREATE TABLE locked $table; CHECKPOINT");
hold('locked', 'kept');
$primary->safe_psql('postgres', q(BEGIN; LOCK TABLE locked IN ACCESS EXCLUSIVE MODE; PREPARE TRANSACTION 'lock'));
let_go();
is(cached($standby, 'locked'), 0, 'a locked relation is left out');
cmp_ok(reader($standby, 'skipped'), '>=', 90, 'and counted');
cmp_ok(reader($standby, 'warm_percent'), '<', 100, 'the standby is not quite warm');
ok(comes($standby, 'kept'), 'the others are read');
$primary->safe_psql('postgres', q(COMMIT PREPARED 'lock'));
ok(comes($standby, 'locked'), 'it comes once the lock is gone');

# pages that replay has not brought yet
set_on($standby, 'ccm.max_replay_lag' => 0);
$primary->safe_psql('postgres', "CREATE TABLE grows $table");
wait_replay($primary, $standby);
query('SELECT pg_wal_replay_pause()');
$standby->poll_query_until('postgres', "SELECT pg_get_wal_replay_pause_state() = 'paused'");
$primary->safe_psql('postgres', "INSERT INTO grows SELECT i, repeat('y', 900) FROM generate_series(1, 800) i; CREATE TABLE unborn $table");
make_hot($primary, $_) for qw(grows unborn);
ok(wait_reader($standby, 'skipped >= 180 AND read = 0'), 'pages behind the end are skipped');
is(reader($standby, 'errors + total_errors'), '0', 'without an error');
set_on($standby, 'ccm.max_replay_lag' => '1kB');
ok(wait_reader($standby, "state = 'paused' AND paused_reason = 'replay lag' AND replay_lag > 1024"), 'it pauses while replay is behind');
my $scans = reader($standby, 'scans');
query('SELECT pg_wal_replay_resume()');
ok(wait_reader($standby, "state = 'waiting' AND scans > $scans + 1"), 'and goes on');
set_on($standby, 'ccm.max_replay_lag' => '64MB');
ok(comes($standby, $_), "$_ is there") for qw(grows unborn);

# databases, tablespaces, shared and mapped catalogs, forks
$primary->safe_psql('postgres', q(CREATE DATABASE other));
$primary->safe_psql('postgres', q(CREATE TABLESPACE elsewhere LOCATION ''));
$primary->safe_psql('other', "CREATE EXTENSION pg_buffercache; CREATE EXTENSION pg_prewarm; CREATE TABLE t $table; CREATE INDEX t_i ON t (i); VACUUM t");
$primary->safe_psql('postgres', "CREATE TABLE moved TABLESPACE elsewhere $table; CREATE TABLE indexed $table; CREATE INDEX indexed_i ON indexed (i); VACUUM indexed;
	CREATE UNLOGGED TABLE unlogged $table; CREATE SEQUENCE sequence; CHECKPOINT");
wait_replay($primary, $standby);
set_on($standby, 'ccm.enabled' => 'off');
$standby->restart;
make_hot($primary, $_, 'other') for qw(t t_i);
make_hot($primary, $_) for qw(moved indexed indexed_i unlogged pg_proc pg_shdescription);
$primary->safe_psql('postgres', "SELECT pg_prewarm('indexed', 'buffer', '$_')") for ('fsm', 'vm') x 5;
$primary->safe_psql('postgres', "SELECT setval('sequence', 1)") for 1 .. 5;
set_on($standby, 'ccm.enabled' => 'on');
ok(wait_scans($standby, 3), 'scans of two databases');
ok(comes($standby, $_, 'other'), "$_ of another database") for qw(t t_i);
ok(comes($standby, $_), "$_") for qw(moved indexed indexed_i pg_proc pg_shdescription sequence);
ok($standby->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('indexed') AND relforknumber = $_ AND usagecount >= 3"), "fork $_")
  for (1, 2);
is(query("SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('unlogged')"), '0', 'a standby has nothing of an unlogged table');

# DROP DATABASE between the answer and the reading, and in the middle of it
for my $moment ('held', 'reading')
{
	$primary->safe_psql('postgres', "CREATE DATABASE d_$moment");
	$primary->safe_psql("d_$moment", "CREATE EXTENSION pg_prewarm; CREATE TABLE t $table; CHECKPOINT");
	wait_replay($primary, $standby);
	set_on($standby, 'ccm.enabled' => 'off', $moment eq 'held' ? ('ccm.debug_hold' => 'on') : ('ccm.rate' => 20, 'ccm.batch' => 1));
	$standby->restart;
	make_hot($primary, 't', "d_$moment");
	set_on($standby, 'ccm.enabled' => 'on');
	ok(wait_reader($standby, "state = '$moment'"), "$moment");
	ok($moment ne 'reading' || $standby->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'ccm reader' AND datname = 'd_reading'"),
		'a worker is in the database');
	$primary->safe_psql('postgres', "DROP DATABASE d_$moment");
	set_on($standby, 'ccm.debug_hold' => 'off', 'ccm.rate' => 0, 'ccm.batch' => 1000);
	wait_replay($primary, $standby);
	is(query("SELECT count(*) FROM pg_database WHERE datname = 'd_$moment'"), '0', 'replay of DROP DATABASE is not held up');
	ok(wait_scans($standby, 2), 'and scans go on');
}
is(logged($standby, 'database [0-9]+ does not exist|PANIC|unexpected data'), 0, 'nothing in the log about databases that are gone');

# a broken page: one line in the log, and the relation is left alone
$primary->safe_psql('postgres', "CREATE TABLE broken $table; CHECKPOINT");
wait_replay($primary, $standby);
query('CHECKPOINT');
my $path = query("SELECT pg_relation_filepath('broken')");
set_on($standby, 'ccm.enabled' => 'off');
$standby->stop;
open my $file, '+<', $standby->data_dir . "/$path" or die;
seek $file, 8192 * 50, 0;
print $file 'rubbish' x 100;
close $file;
$standby->start;
make_hot($primary, 'broken');
set_on($standby, 'ccm.enabled' => 'on');
ok(wait_reader($standby, 'scans > 0 AND total_errors = 1'), 'a broken page is an error');
ok(wait_scans($standby, 4), 'but scans go on');
is(reader($standby, 'total_errors'), '1', 'without reading it again');
is(logged($standby, 'is left alone for an hour'), 1, 'with one line in the log');

# a map that is torn is no error
$primary->safe_psql('postgres', "CREATE TABLE torn $table; VACUUM torn; CHECKPOINT");
wait_replay($primary, $standby);
query('CHECKPOINT');
my $map = query("SELECT pg_relation_filepath('torn')") . '_fsm';
set_on($standby, 'ccm.enabled' => 'off');
$standby->stop;
open $file, '+<', $standby->data_dir . "/$map" or die;
print $file 'rubbish' x 100;
close $file;
$standby->start;
make_hot($primary, 'torn');
$primary->safe_psql('postgres', "SELECT pg_prewarm('torn', 'buffer', 'fsm')") for 1 .. 5;
set_on($standby, 'ccm.enabled' => 'on');
ok(comes($standby, 'torn'), 'a relation with a torn map');
ok($standby->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('torn') AND relforknumber = 1 AND usagecount >= 3"),
	'comes, and the map as well');
is(logged($standby, "left alone for an hour.*$map"), 0, 'without an error');

# storage that is broken: no line for each relation, and the database is left alone
$primary->safe_psql('postgres', "CREATE TABLE worse_$_ $table") for 1 .. 6;
$primary->safe_psql('postgres', 'CHECKPOINT');
wait_replay($primary, $standby);
query('CHECKPOINT');
my @paths = map { query("SELECT pg_relation_filepath('worse_$_')") } 1 .. 6;
set_on($standby, 'ccm.enabled' => 'off');
$standby->stop;
for my $broken (@paths)
{
	open my $file, '+<', $standby->data_dir . "/$broken" or die;
	print $file 'rubbish' x 100;
	close $file;
}
$standby->start;
my $lines = logged($standby, 'is left alone for an hour');
make_hot($primary, "worse_$_") for 1 .. 6;
make_hot($primary, 't', 'other');
set_on($standby, 'ccm.enabled' => 'on');
ok(wait_reader($standby, 'scans > 0 AND total_errors = 3'), 'after three errors a database is left alone');
ok(comes($standby, 't', 'other'), 'and not the other one');
ok(wait_scans($standby, 4), 'scans go on');
is(reader($standby, 'total_errors'), '3', 'without an error more');
is(logged($standby, 'is left alone for an hour'), $lines + 1, 'with one line in the log');

$standby->stop;
$primary->stop;
done_testing();
