# Peers with which something is wrong: refused with one line in the log and a
# state, tried again ever more rarely, and well again once they are.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Ccm;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $primary = primary('primary');
my $standby = standby($primary, 'standby');
my $good = $standby->safe_psql('postgres', 'SHOW ccm.upstream_conninfo');
ok(wait_scans($standby, 2), 'all is well');

sub on_primary { $primary->safe_psql('postgres', $_[0]) }

# The state is what it should be, the log has one line although it was tried
# more often than once, and nothing else happens.
sub fails_with
{
	my ($cause, $text, $what) = @_;
	my $lines = logged($standby, "ccm: $cause:");
	my $first;
	ok(wait_reader($standby, "state = 'error' AND error = '$cause' AND last_error ~ '$text'"), "$what: the state");
	my $at = reader($standby, 'last_error_at');
	ok(wait_reader($standby, "last_error_at > '$at' AND error = '$cause'"), "$what: tried again");
	is(logged($standby, "LOG:  ccm: $cause:"), 1, "$what: one line in the log");
}

sub works_again
{
	my ($what) = @_;
	my $scans = reader($standby, 'scans');
	$standby->reload;
	ok(wait_reader($standby, "state = 'waiting' AND scans > $scans AND error IS NULL"), "$what: well again");
}

# nobody there
set_on($standby, 'ccm.upstream_conninfo' => "host=/nonexistent port=1 user=ccm_standby");
fails_with('connection', 'No such file', 'no such server');
set_on($standby, 'ccm.upstream_conninfo' => 'nonsense = = =');
ok(wait_reader($standby, "last_error ~ 'invalid connection string'"), 'no connection string');
set_on($standby, 'ccm.upstream_conninfo' => $good);
works_again('no such server');

# the login fails
on_primary("ALTER ROLE ccm_standby NOLOGIN; SELECT pg_terminate_backend(reader_pid) FROM ccm.status()");
ok(wait_reader($standby, "state = 'error' AND last_error ~ 'not permitted to log in'"), 'a login that fails');
is(logged($standby, 'LOG:  ccm: connection:'), 1, 'is the same cause, and no other line');
on_primary("ALTER ROLE ccm_standby LOGIN");
works_again('a login that fails');

# rights
on_primary("REVOKE ccm_reader FROM ccm_standby; SELECT pg_terminate_backend(reader_pid) FROM ccm.status()");
fails_with('rights', 'permission denied', 'no member of ccm_reader');
on_primary("GRANT ccm_reader TO ccm_standby; ALTER ROLE ccm_standby NOREPLICATION");
$standby->reload;
ok(wait_reader($standby, "last_error ~ 'which pages are cached'"), 'no replication role');
my $reader_status = reader($standby, 'last_error_at');
ok(wait_reader($standby, "last_error_at > '$reader_status'"), 'which is tried again');
on_primary("ALTER ROLE ccm_standby REPLICATION");
works_again('rights');
is(logged($primary, 'ERROR:  permission denied to read which pages are cached'), 1, "one line in the primary's log");
cmp_ok(logged($primary, 'ERROR:  permission denied for'), '<=', 1, 'and one about the rights at the most');

# no extension, at first and in between
on_primary('DROP EXTENSION ccm');
ok(ccm_eventually('the log', sub { logged($standby, 'LOG:  ccm: no extension:') == 1 }), 'no extension: one line in the log');
for (1 .. 5)
{
	$standby->reload;
	sleep 0.3;
}
cmp_ok(logged($primary, 'ERROR:  (schema "ccm"|function ccm.pull)'), '<=', 1, "and one in the primary's log at the most");
on_primary('CREATE EXTENSION ccm; GRANT ccm_reader TO ccm_standby');
wait_replay($primary, $standby);
works_again('no extension');

# off on the primary
set_on($primary, 'ccm.enabled' => 'off');
fails_with('disabled upstream', 'Cluster Cache Manager is disabled', 'off on the primary');
my ($code, $out, $err) = $primary->psql('postgres', 'SELECT * FROM aurora_ccm_status()');
is($err =~ s/\n.*//sr, 'psql:<stdin>:1: ERROR:  Cluster Cache Manager is disabled', "Aurora's error");
is(logged($primary, 'ERROR:  Cluster Cache Manager is disabled\n.*\n?.*ccm\.pull') , 1, "one line in the primary's log");
set_on($primary, 'ccm.enabled' => 'on');
works_again('off on the primary');

# off here
set_on($standby, 'ccm.enabled' => 'off');
ok(wait_reader($standby, "state = 'off'"), 'off on the standby');
ok($primary->poll_query_until('postgres', 'SELECT reader_pid IS NULL FROM ccm.status()'), 'the connection ends');
is(reader($standby, 'warm_percent IS NULL AND last_scan_at IS NULL AND last_scan_ms IS NULL AND scans = 0 AND found = 0 AND total_read > 0'), 't',
	'and what the last scan found is forgotten');
set_on($standby, 'ccm.enabled' => 'on');
works_again('off on the standby');

# a second standby: one is served, the other comes when the first goes
my $second = standby($primary, 'second');
ok(wait_reader($second, "state = 'error' AND error = 'other reader'"), 'a second standby is refused');
is(logged($second, 'LOG:  ccm: other reader:'), 1, 'with one line in its log');
ok(wait_scans($standby, 3), 'the first goes on');
is(reader($second, 'scans'), '0', 'the second does not');
is(logged($primary, 'ERROR:  this server has another reader'), 1, "one line in the primary's log");
set_on($standby, 'ccm.enabled' => 'off');
$second->reload;
ok(wait_reader($second, "state = 'waiting' AND scans > 0"), 'it is served once the first is off');
$second->stop;
set_on($standby, 'ccm.enabled' => 'on');
works_again('another reader');

# a server of another cluster
my $stranger = primary('stranger');
set_on($standby, 'ccm.upstream_conninfo' => $stranger->connstr('postgres') . ' user=ccm_standby');
fails_with('other system', 'another cluster', 'another cluster');
is(logged($stranger, 'ERROR:  the reader is of another cluster'), 1, "one line in the other's log");

# what answers is no ccm: the stranger's function is replaced by one that says what we want
$stranger->safe_psql('postgres', q(
DROP EXTENSION ccm;
CREATE SCHEMA ccm;
GRANT USAGE ON SCHEMA ccm TO PUBLIC;
CREATE TABLE answer (blocks bytea, next_buf int, found bigint, peer_filter bytea);
GRANT SELECT ON answer TO PUBLIC;
CREATE FUNCTION ccm.pull(bytea, int, int, int, int, int, OUT blocks bytea, OUT next_buf int, OUT found bigint, OUT peer_filter bytea)
RETURNS SETOF record LANGUAGE sql AS 'SELECT * FROM public.answer';
));
my $header = $standby->safe_psql('postgres', "SELECT encode('CCMB'::bytea || '\\x01000000' || substr(ccm.filter(0, 1, 0), 25, 8) || substr(ccm.filter(0, 1, 0), 49, 4), 'hex')");
my $filter = $standby->safe_psql('postgres', "SELECT encode(ccm.filter(0, 1, 0), 'hex')");
set_on($standby, 'ccm.mirror' => 'on');
my %answers = (
	'no row' => 'SELECT NULL::bytea, 1, 1, NULL::bytea LIMIT 0',
	'two rows' => "SELECT '\\x$header' || '\\x00000000'::bytea, -1, 0, NULL::bytea FROM generate_series(1, 2)",
	'nulls' => 'SELECT NULL::bytea, NULL::int, NULL::int, NULL::bytea',
	'nothing' => "SELECT ''::bytea, -1, 0, NULL::bytea",
	'a scan without an end' => "SELECT '\\x$header' || '\\x00000000'::bytea, 0, 0, NULL::bytea",
	'a scan that goes back' => "SELECT '\\x$header' || '\\x00000000'::bytea, -5, 0, NULL::bytea",
	'pages that are not there' => "SELECT '\\x$header' || '\\xffffffff'::bytea, -1, 0, NULL::bytea",
	'pages behind the end' => "SELECT '\\x$header' || '\\x01000000'::bytea || '\\x01010100017f'::bytea, -1, 0, NULL::bytea",
	'half of a number' => "SELECT '\\x$header' || '\\x01000000'::bytea || '\\x8080808080808080808080808080'::bytea, -1, 0, NULL::bytea",
	'a relation 0' => "SELECT '\\x$header' || '\\x01000000'::bytea || '\\x05ff0c00000103'::bytea, -1, 1, NULL::bytea",
	'a tablespace 0' => "SELECT '\\x$header' || '\\x01000000'::bytea || '\\x0500ff0f000103'::bytea, -1, 1, NULL::bytea",
	'what all share in a database' => "SELECT '\\x$header' || '\\x01000000'::bytea || '\\x05800dff0f000103'::bytea, -1, 1, NULL::bytea",
	'what no database has' => "SELECT '\\x$header' || '\\x01000000'::bytea || '\\x00ff0cff0f000103'::bytea, -1, 1, NULL::bytea",
	'half of a filter' => "SELECT '\\x$header' || '\\x00000000'::bytea, -1, 0, substr('\\x$filter'::bytea, 1, 100)",
	'a filter of nothing' => "SELECT '\\x$header' || '\\x00000000'::bytea, -1, 0, ''::bytea",
	'a filter of another slice' => "SELECT '\\x$header' || '\\x00000000'::bytea, -1, 0, overlay(overlay('\\x$filter'::bytea PLACING '\\x01' FROM 41) PLACING '\\x02' FROM 45)",
);
$standby->reload;
for my $what (sort keys %answers)
{
	$stranger->safe_psql('postgres', "DELETE FROM answer; INSERT INTO answer $answers{$what}");
	my $at = reader($standby, 'coalesce(last_error_at, now())');
	$standby->reload;
	ok(wait_reader($standby, "state = 'error' AND error = 'malformed' AND last_error_at > '$at'"), "refused: $what");
}
is(logged($standby, 'LOG:  ccm: malformed:'), 1, 'with one line in the log');
my %others = (
	'other version' => "SELECT overlay('\\x$header'::bytea PLACING '\\x02' FROM 5) || '\\x00000000'::bytea, -1, 0, NULL::bytea",
	'other system' => "SELECT overlay('\\x$header'::bytea PLACING '\\x00' FROM 9) || '\\x00000000'::bytea, -1, 0, NULL::bytea",
	'other block size' => "SELECT overlay('\\x$header'::bytea PLACING '\\x0010' FROM 17) || '\\x00000000'::bytea, -1, 0, NULL::bytea",
);
for my $cause (sort keys %others)
{
	$stranger->safe_psql('postgres', "DELETE FROM answer; INSERT INTO answer $others{$cause}");
	$standby->reload;
	ok(wait_reader($standby, "state = 'error' AND error = '$cause'"), "refused: $cause");
}

# pages of relations that nobody has, with every number that there is: skipped
$stranger->safe_psql('postgres', "DELETE FROM answer; INSERT INTO answer SELECT '\\x$header' || '\\x03000000'::bytea ||
	'\\x01ffffffff0fffffffff0f0301ffffffff7f'::bytea || '\\x050102000201' || '\\x09'::bytea, -1, 3, NULL::bytea");
$standby->reload;
my $refused = reader($standby, 'last_error');
ok(wait_reader($standby, "error = 'malformed' OR skipped = 3"), 'pages that nobody has');
$stranger->safe_psql('postgres', "DELETE FROM answer; INSERT INTO answer SELECT '\\x$header' || '\\x02000000'::bytea ||
	'\\x05ff0cff0f00' || '\\x0283f0ffff7f'::bytea || '\\x03', -1, 2, NULL::bytea");
$standby->reload;
ok(wait_reader($standby, "state = 'waiting' AND skipped = 2 AND received = 2"), 'are skipped');
is(logged($standby, 'PANIC|signal|TRAP'), 0, 'nothing crashed');

set_on($standby, 'ccm.mirror' => 'off', 'ccm.upstream_conninfo' => $good);
works_again('malformed answers');

# the primary is away for a while
$primary->stop('immediate');
ok(wait_reader($standby, "state = 'paused' AND paused_reason = 'not streaming'"), 'the primary is away');
set_on($standby, 'ccm.interval' => '60s');
my $before = reader($standby, 'scans');
$primary->start;
ok($primary->poll_query_until('postgres', 'SELECT count(*) = 1 FROM pg_stat_replication'), 'and comes back');
my $back = time;
ok(wait_reader($standby, "scans > $before"), 'once there is streaming it scans');
cmp_ok(time - $back, '<', 20, 'and does not wait for an interval');
set_on($standby, 'ccm.interval' => 200);
works_again('a primary that was away');
is(logged($standby, 'LOG:  ccm: connection:'), 1, 'still one line');

# primary_conninfo does as well; its application_name is that of the standby
set_on($standby, 'ccm.upstream_conninfo' => '');
ok(wait_scans($standby, 2), 'primary_conninfo');
is(on_primary("SELECT application_name FROM pg_stat_activity, ccm.status() WHERE pid = reader_pid"), 'ccm', 'with a name of its own');

$_->stop for $standby, $primary, $stranger;
done_testing();
