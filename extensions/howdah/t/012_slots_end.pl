# When WAL senders of users end. Whoever loses rds_replication while connected stops receiving, in each
# way to lose it, and runs no replication command any more. After an error a WAL sender that has sent
# changes is not used again. An error leaves no slot behind that nobody can have.
use strict;
use warnings;
use IO::Socket::UNIX;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{PGUSER} = 'rdsadmin';

my $node = PostgreSQL::Test::Cluster->new('db-orders');
$node->init(allows_streaming => 'logical', extra => [ '-U', 'rdsadmin' ]);
$node->append_conf('postgresql.conf', <<'END');
shared_preload_libraries = 'howdah'
wal_level = logical
max_wal_senders = 30
max_replication_slots = 30
howdah.logical_slots = on
END
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE rdsadmin');
$node->safe_psql($_, slurp_file('bootstrap.sql')) for ('postgres', 'rdsadmin');
$node->safe_psql('postgres', slurp_file('slots.sql'));
$node->safe_psql('postgres', 'CREATE DATABASE quoted');
$node->safe_psql('postgres', 'ALTER DATABASE quoted SET quote_all_identifiers = on');
$node->safe_psql('quoted', slurp_file('slots.sql'));
is($node->safe_psql('quoted', "SELECT count(*) FROM pg_proc WHERE probin = 'howdah' AND prosrc LIKE '%slot%'"), 10, 'an owner of a database cannot keep the functions out by accident');
$node->safe_psql('postgres', <<'END');
CREATE ROLE master LOGIN CREATEROLE CREATEDB;
GRANT rds_superuser TO master WITH ADMIN OPTION;
CREATE ROLE kept LOGIN;
GRANT rds_replication TO kept;
END
my $number = 0;

# A session with replication=database.
sub session
{
	my ($user, $sql) = @_;
	my %s = (in => $sql, out => '', err => '');
	$s{run} = IPC::Run::start([ 'psql', '-X', '-A', '-t', '-d', $node->connstr('postgres') . " user=$user replication=database" ],
		'<', \$s{in}, '>', \$s{out}, '2>', \$s{err}, IPC::Run::timeout(120));
	return \%s;
}

# Somebody receives by a slot of their own.
sub receiver
{
	my ($user) = @_;
	my $slot = 'r' . ++$number;
	$node->safe_psql('postgres', "SELECT pg_create_logical_replication_slot('$slot', 'test_decoding')");
	my %r = (slot => $slot, err => '');
	$r{run} = IPC::Run::start([ 'pg_recvlogical', '-d', $node->connstr('postgres') . " user=$user", '-S', $slot, '--start', '--no-loop', '-f', '/dev/null' ],
		'<', \undef, '2>', \$r{err}, IPC::Run::timeout(120));
	$node->poll_query_until('postgres', "SELECT active FROM pg_replication_slots WHERE slot_name = '$slot'") or die "$user does not receive: $r{err}";
	return \%r;
}

my $other = receiver('kept');
my %ways = (
	'REVOKE' => [ 'GRANT rds_replication TO mover', 'REVOKE rds_replication FROM mover' ],
	'ALTER GROUP' => [ 'GRANT rds_replication TO mover', 'ALTER GROUP rds_replication DROP USER mover', 'rdsadmin' ],
	'REVOKE of what one is a member by' => [ 'CREATE ROLE movers; GRANT rds_replication TO movers; GRANT movers TO mover', 'REVOKE movers FROM mover' ],
	'REVOKE in a block' => [ 'GRANT rds_replication TO mover', 'BEGIN; SELECT 1; REVOKE rds_replication FROM mover; SELECT 1; COMMIT' ],
	'DROP ROLE' => [ 'GRANT rds_replication TO mover', 'DROP ROLE mover', 'rdsadmin' ]);
for my $way (sort keys %ways)
{
	my ($grant, $take, $who) = @{ $ways{$way} };
	$node->safe_psql('postgres', 'CREATE ROLE mover LOGIN') if $node->safe_psql('postgres', "SELECT count(*) FROM pg_roles WHERE rolname = 'mover'") eq '0';
	$node->safe_psql('postgres', "SET SESSION AUTHORIZATION master; $grant");
	my $receives = receiver('mover');
	my $waits = session('mover', "SELECT 'up';\n");
	$waits->{run}->pump until $waits->{out} =~ /up/;

	$node->safe_psql('postgres', "BEGIN; SET SESSION AUTHORIZATION " . ($who // 'master') . "; $take; ROLLBACK") unless $take =~ /BEGIN/;
	is($node->safe_psql('postgres', "SELECT active FROM pg_replication_slots WHERE slot_name = '$receives->{slot}'"), 't', "$way that is rolled back: nothing ends");
	$node->safe_psql('postgres', 'SET SESSION AUTHORIZATION ' . ($who // 'master') . "; $take");
	ok($node->poll_query_until('postgres', "SELECT NOT active FROM pg_replication_slots WHERE slot_name = '$receives->{slot}'"), "$way: who receives is ended");
	eval { $receives->{run}->finish };
	like($receives->{err}, qr/terminating connection due to administrator command/, "$way: as by an administrator");
	$waits->{in} .= "SELECT 'still here';\nCREATE_REPLICATION_SLOT x TEMPORARY LOGICAL pgoutput;\n\\q\n";
	eval { $waits->{run}->finish };
	like($waits->{out}, qr/still here/, "$way: SQL goes on, as in any session");
	like($waits->{err}, qr/FATAL:.*permission denied to use replication commands/, "$way: but no replication command");
}
is($node->safe_psql('postgres', "SELECT active FROM pg_replication_slots WHERE slot_name = '$other->{slot}'"), 't', 'who has the role goes on');

# Who gets it back connects anew.
$node->safe_psql('postgres', 'GRANT rds_replication TO mover');
my $again = session('mover', "IDENTIFY_SYSTEM;\nBEGIN READ ONLY ISOLATION LEVEL REPEATABLE READ;\nCREATE_REPLICATION_SLOT x TEMPORARY LOGICAL pgoutput USE_SNAPSHOT;\nSELECT 'made';\nCOMMIT;\n\\q\n");
$again->{run}->finish;
like($again->{out}, qr/\|postgres\n.*made/s, 'who gets it back connects anew');
is($again->{err}, '', 'and uses a snapshot, as subscribers do');
# What psql cannot do: a replication command, the end of its changes, and more in the same session.
# Returns what came before the session was ready, or began to send, or ended.
sub raw
{
	my ($socket, $type, $body) = @_;
	print $socket $type . pack('N', length($body) + 4) . $body;
	$socket->flush;
	return answer($socket);
}

sub answer
{
	my ($socket) = @_;
	my $all = '';
	while (read($socket, my $head, 5) == 5)
	{
		my ($type, $length) = unpack('aN', $head);
		read($socket, my $body, $length - 4) if $length > 4;
		$all .= "$type:" . (($body // q()) =~ s{\0}{ }gr) . "\n";
		return $all if $type eq 'Z' || $type eq 'W';
	}
	return $all . 'END';
}

sub sends_and_errs
{
	my ($error) = @_;
	my $socket = IO::Socket::UNIX->new(Peer => $node->host . '/.s.PGSQL.' . $node->port) or die $!;
	my $startup = pack('N', 196608) . join("\0", user => 'mover', database => 'postgres', replication => 'database') . "\0\0";
	print $socket pack('N', length($startup) + 4) . $startup;
	answer($socket);
	my $first = raw($socket, 'Q', "SELECT 1/0\0");
	my $sends = raw($socket, 'Q', "START_REPLICATION SLOT errs LOGICAL 0/0\0");
	my $over = raw($socket, 'c', '');
	my $drops = raw($socket, 'Q', "CREATE_REPLICATION_SLOT x TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT\0") . raw($socket, 'Q', "DROP_REPLICATION_SLOT x\0");
	return ($first, $sends, $over, $drops, raw($socket, 'Q', "$error\0"));
}

$node->safe_psql('postgres', "SELECT pg_create_logical_replication_slot('errs', 'test_decoding')");
for my $level ('warning', 'log', 'panic')
{
	$node->append_conf('postgresql.conf', "log_min_messages = $level\n");
	$node->reload;
	for my $error ('SELECT 1/0', 'BASE_BACKUP', 'DROP_REPLICATION_SLOT nowhere')
	{
		my ($first, $sends, $over, $drops, $last) = sends_and_errs($error);
		like($first, qr/ERROR.*division by zero.*Z:/s, "an error is no matter at first ($level)");
		like($sends . $over, qr/W:.*Z:/s, 'it sends, and is told to stop');
		unlike($drops, qr/E:/, 'and goes on');
		like($last, qr/FATAL.*(division by zero|permission denied|does not exist).*END/s, "until an error: $error");
	}
}
$node->append_conf('postgresql.conf', "log_min_messages = warning\n");
$node->reload;

$node->safe_psql('postgres', 'SET SESSION AUTHORIZATION mover; ' . <<'SQL');
DO $$
BEGIN
	PERFORM pg_logical_slot_get_changes('errs', NULL, NULL, 'no-such-option', 'x');
EXCEPTION WHEN OTHERS THEN
	IF (SELECT active FROM pg_replication_slots WHERE slot_name = 'errs') THEN
		RAISE EXCEPTION 'the slot is kept';
	END IF;
END
$$;
SQL
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'errs'"), 1, 'a slot outlives an error that is caught');
$other->{run}->signal('INT');
eval { $other->{run}->finish };
$node->stop;
done_testing();
