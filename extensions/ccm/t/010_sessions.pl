# The reader's session on the primary is in nobody's way, and nobody takes its place meanwhile.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Ccm;
use Test::More;

my $primary = primary('primary', 'idle_session_timeout = 500');
my $standby = standby($primary, 'standby', 'ccm.interval = 1s');
ok(wait_scans($standby, 4), 'scans');
is(reader($standby, 'last_error_at IS NULL'), 't', 'without an end of the session in between');

set_on($standby, 'ccm.interval' => '10s');
make_hot($primary, 'pg_proc');
ok(comes($standby, 'pg_proc'), 'a longer interval');
ok(wait_reader($standby, "state = 'waiting'"), 'between two scans');
my $pids = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ccm'";
ok($primary->poll_query_until('template1', $pids, '0'), 'there is no session');
is($primary->safe_psql('template1', 'CREATE DATABASE copy TEMPLATE postgres'), '', 'the database can be copied');
ok($primary->poll_query_until('postgres', "SELECT warm_percent > 0 AND reader_pid IS NULL AND reader_address IS NOT NULL FROM ccm.status()"),
	'the primary knows its reader');

my $second = standby($primary, 'second');
ok(wait_reader($second, "state = 'error' AND error = 'other reader'"), 'and no other takes its place');
set_on($second, 'ccm.enabled' => 'off');
ok(wait_scans($standby, 1), 'it comes back');
is(reader($standby, 'last_error_at IS NULL'), 't', 'and is not refused');
is(reader($second, 'scans'), '0', 'nor was the other served');

ok(wait_reader($standby, "state = 'waiting'"), 'between two scans');
my $begin = time;
$primary->stop('smart');
cmp_ok(time - $begin, '<', 30, 'a smart shutdown waits for nobody');

$standby->stop;
$second->stop;
done_testing();
