# A database in which nothing can be read does not keep the others from being read, nor the worker
# from ending.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Ccm;
use IPC::Run;
use Time::HiRes qw(time sleep);
use Test::More;

my $primary = primary('primary');
$primary->safe_psql('postgres', "CREATE DATABASE $_") for qw(stuck well);
$primary->safe_psql($_, q(
CREATE EXTENSION pg_buffercache;
CREATE EXTENSION pg_prewarm;
CREATE TABLE t AS SELECT i, repeat('x', 900) AS filler FROM generate_series(1, 1600) i;
VACUUM t;
CHECKPOINT;
)) for qw(stuck well);
# What its owner may set does not change it.
$primary->safe_psql('postgres', "ALTER DATABASE stuck SET $_") for 'lock_timeout = 0', 'exit_on_error = on';
my $newer = $primary->safe_psql('postgres', "SELECT name FROM pg_settings WHERE name = 'transaction_timeout'");
$primary->safe_psql('postgres', "ALTER DATABASE well SET $_")
  for 'lock_timeout = 1', 'statement_timeout = 1', 'exit_on_error = on', $newer ? "$newer = 1" : ();
my $standby = standby($primary, 'standby');
$ENV{PGOPTIONS} = '-c lock_timeout=0 -c statement_timeout=0 -c exit_on_error=off' . ($newer && " -c $newer=0");

sub cold
{
	wait_replay($primary, $standby);
	set_on($standby, 'ccm.enabled' => 'off');
	$standby->restart;
	make_hot($primary, 't', $_) for qw(stuck well);
}
sub readers { return $standby->safe_psql('postgres', "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE backend_type = 'ccm reader'") }

# a catalog that is locked on the primary is locked by replay
cold();
my $locker = IPC::Run::start([ 'psql', '-X', '-d', $primary->connstr('stuck'), '-c',
	'BEGIN; LOCK TABLE pg_class IN ACCESS EXCLUSIVE MODE; SELECT txid_current(); SELECT pg_sleep(600)' ], '<', \undef, '>', \my $out, '2>', \my $err);
ok(ccm_eventually('the lock is replayed', sub {
	$primary->safe_psql('postgres', 'SELECT pg_switch_wal()');
	$standby->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE relation = 1259 AND mode = 'AccessExclusiveLock' AND granted") }),
	'replay has a lock of pg_class');
my $begin = time;
set_on($standby, 'ccm.enabled' => 'on');
ok(comes($standby, 't', 'well'), 'the other database is read');
cmp_ok(time - $begin, '<', 20, 'soon');
ok(wait_scans($standby, 3), 'scans go on');
set_on($standby, 'ccm.enabled' => 'off');
ok(wait_reader($standby, "state = 'off'"), 'it can be turned off');
ok(ccm_eventually('readers', sub { readers() eq '' }), 'and no worker is left');
$primary->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'stuck'");
$locker->finish;
is(logged($standby, 'lock timeout|left alone'), 0, 'nothing strange in the log');
# One that did not end within two seconds, as on a busy machine, is ended.
cmp_ok(logged($standby, 'FATAL.*ccm reader'), '<=', 1, 'nor a flood of workers that are ended');
cold();
set_on($standby, 'ccm.enabled' => 'on');
ok(comes($standby, 't', 'stuck'), 'once the lock is gone it is read as well');

# a worker that does not move is ended, and so is one whose leader exits
for my $how ('stalls', 'outlives')
{
	cold();
	set_on($standby, 'ccm.enabled' => 'on', 'ccm.rate' => 20, 'ccm.batch' => 1);
	my $pid;
	ok(ccm_eventually('reading', sub { $pid = readers() }), 'a worker reads slowly');
	if ($how eq 'stalls')
	{
		kill 'STOP', $pid;
		sleep 7;
		kill 'CONT', $pid;
	}
	else
	{
		$standby->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'ccm'");
	}
	ok(ccm_eventually('it ends', sub { readers() !~ /\b$pid\b/ }), "a worker that $how is ended");
}

$standby->stop;
$primary->stop;
done_testing();
