# Who confirms commits: members of the database, and nobody else who receives WAL.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use IPC::Run;

$ENV{PGUSER} = 'rdsadmin';

# A node's name becomes its cluster_name, and the application_name that it receives with.
my $primary = PostgreSQL::Test::Cluster->new('db-ONE');
$primary->init(allows_streaming => 'logical', extra => [ '-U', 'rdsadmin' ]);
$primary->append_conf('postgresql.conf', qq(
shared_preload_libraries = 'howdah'
synchronous_standby_names = '*'
));
$primary->start;
$primary->safe_psql('postgres', 'SET synchronous_commit = local; CREATE TABLE t (what text)');
$primary->backup('backup');

# Whether a commit is confirmed while this WAL receiver is the only one.
sub confirms
{
	my ($name) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init_from_backup($primary, 'backup', has_streaming => 1);
	$node->start;
	$primary->poll_query_until('postgres',
		"SELECT EXISTS (SELECT FROM pg_stat_replication WHERE application_name = '$name' AND state = 'streaming')") or die;
	my $confirms = commits($name);
	$node->stop('immediate');
	gone();
	return $confirms;
}

# No WAL sender is left.
sub gone
{
	$primary->poll_query_until('postgres', 'SELECT NOT EXISTS (SELECT FROM pg_stat_replication)') or die;
}

# Whether a commit is answered, or waits for a standby.
sub commits
{
	my ($what) = @_;
	my ($out, $err) = ('', '');
	my $client = IPC::Run::start([ 'psql', '-X', '-A', '-t', '-d', $primary->connstr('postgres') . " application_name='client'",
			'-c', "INSERT INTO t VALUES ('$what') RETURNING 'done'" ], '<', \undef, '>', \$out, '2>', \$err);
	$primary->poll_query_until('postgres',
		"SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'client' AND wait_event IS DISTINCT FROM 'SyncRep')"
		  . " AND (EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'client') OR EXISTS (SELECT FROM t WHERE what = '$what'))") or die;
	# One that waits goes on waiting: whoever is going to confirm has all that there is.
	$primary->poll_query_until('postgres',
		"SELECT EXISTS (SELECT FROM t WHERE what = '$what') OR COALESCE((SELECT min(flush_lsn) FROM pg_stat_replication) >= pg_current_wal_flush_lsn(), true)") or die;
	my $waits = $primary->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'client' AND wait_event = 'SyncRep'");
	$primary->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'client'") if $waits;
	$client->finish;
	return $out =~ /done/ && !$waits ? 1 : 0;
}

is(confirms('db-ONE.m2'), 1, 'a member confirms');
is(confirms('m2'), 1, 'so does one that an older release named');
for my $name ('db-TWO.m1', 'db-ON', 'db-ONEm2', 'm2x', 'm', 'walreceiver')
{
	is(confirms($name), 0, "$name is no member");
}

# A reload changes nothing of it.
my $replica = PostgreSQL::Test::Cluster->new('db-THREE.m1');
$replica->init_from_backup($primary, 'backup', has_streaming => 1);
$replica->start;
$primary->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming')") or die;
$primary->append_conf('postgresql.conf', "synchronous_standby_names = 'ANY 1 (*)'");
$primary->reload;
is(commits('after a reload'), 0, 'nor after a reload');
is($primary->safe_psql('postgres', 'SELECT sync_state FROM pg_stat_replication'), 'async', 'and is shown as it counts');
$replica->stop('immediate');
gone();

# A subscriber.
$primary->safe_psql('postgres', "SELECT pg_create_logical_replication_slot('slot', 'test_decoding')");
my $receiver = IPC::Run::start([ 'pg_recvlogical', '-d', $primary->connstr('postgres') . " application_name='sub'",
		'-S', 'slot', '--start', '-f', '-', '-s', '1', '--fsync-interval=1' ], '<', \undef, '>', '/dev/null', '2>', '/dev/null');
$primary->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE application_name = 'sub' AND state = 'streaming')") or die;
is($primary->safe_psql('postgres', 'SELECT sync_priority FROM pg_stat_replication'), '0', 'a subscriber has no priority');
$receiver->kill_kill;
$primary->stop('immediate');
done_testing();
