# Whoever loses rds_replication while connected stops receiving, in each way to lose it, and runs no
# replication command any more.
use strict;
use warnings;
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
$other->{run}->signal('INT');
eval { $other->{run}->finish };
$node->stop;
done_testing();
