# What the tests of a primary and its standby share.
package Ccm;
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);
use Exporter 'import';
our @EXPORT = qw(primary standby set_on reader wait_reader wait_scans hot_pages make_hot
  wait_replay cached comes pages logged ccm_eventually);

# Small caches, a scan five times a second, and nothing that reads by itself.
my $settings = qq(
shared_preload_libraries = 'ccm'
ccm.enabled = on
ccm.interval = 200
ccm.rate = 0
shared_buffers = 16MB
max_connections = 30
autovacuum = off
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
max_wal_size = 4GB
wal_keep_size = 1GB
log_min_messages = info
wal_receiver_status_interval = 1
wal_receiver_timeout = 0
);

# A primary that has the extension, with a role for its standby
sub primary
{
	my ($name, $more) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(allows_streaming => 1, auth_extra => [ '--create-role', 'ccm_standby' ]);
	$node->append_conf('postgresql.conf', $settings . ($more || ''));
	$node->start;
	$node->safe_psql('postgres', q(
CREATE EXTENSION ccm;
CREATE EXTENSION pg_buffercache;
CREATE EXTENSION pg_prewarm;
CREATE ROLE ccm_standby LOGIN REPLICATION;
GRANT ccm_reader TO ccm_standby;
));
	return $node;
}

# A standby of it; the connection is that of a login that may ask and no more.
sub standby
{
	my ($primary, $name, $more) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$primary->backup("for_$name");
	$node->init_from_backup($primary, "for_$name", has_streaming => 1);
	$node->append_conf('postgresql.conf',
		"ccm.upstream_conninfo = '" . $primary->connstr('postgres') =~ s/'/''/gr . " user=ccm_standby'\n" . ($more || ''));
	$node->start;
	return $node;
}

# Try until it is true, or the test's time is over.
sub ccm_eventually
{
	my ($what, $true) = @_;
	for (1 .. 20 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if $true->();
		usleep(50_000);
	}
	diag "not in time: $what";
	return 0;
}

# Change settings of a running server. ccm.debug_hold cannot be set by ALTER SYSTEM.
sub set_on
{
	my ($node, %settings) = @_;
	while (my ($name, $value) = each %settings)
	{
		$value =~ s/'/''/g;
		$node->append_conf('postgresql.conf', "$name = '$value'");
	}
	$node->reload;
}

sub reader
{
	my ($node, $columns) = @_;
	return $node->safe_psql('postgres', "SELECT $columns FROM ccm.reader_status()");
}

sub wait_reader
{
	my ($node, $condition) = @_;
	return 1 if $node->poll_query_until('postgres', "SELECT $condition FROM ccm.reader_status()");
	diag $node->safe_psql('postgres', 'SELECT * FROM ccm.reader_status()', extra_params => ['-x']);
	return 0;
}

# So many scans that began after this
sub wait_scans
{
	my ($node, $count) = @_;
	my $scans = reader($node, 'scans');
	return wait_reader($node, 'scans > ' . ($scans + $count));
}

sub wait_replay
{
	my ($primary, $standby) = @_;
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
}

# Read a relation's pages often enough that their usage counts are at the top.
sub make_hot
{
	my ($node, $relation, $database, $blocks) = @_;
	my $to = defined $blocks ? $blocks - 1 : 'NULL';
	$node->safe_psql($database || 'postgres', join(';', map { "SELECT pg_prewarm('$relation', 'buffer', 'main', 0, $to)" } 1 .. 5));
}

# How many pages of a relation are in the buffers, with at least a usage count
sub cached
{
	my ($node, $relation, $usage, $database) = @_;
	$usage = 0 unless defined $usage;
	return $node->safe_psql($database || 'postgres', qq(
SELECT count(*) FROM pg_buffercache b WHERE relforknumber = 0 AND relfilenode = pg_relation_filenode('$relation')
AND reldatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database())) AND usagecount >= $usage));
}

sub hot_pages
{
	my ($node, $usage) = @_;
	$usage = 3 unless defined $usage;
	return $node->safe_psql('postgres', "SELECT count(*) FROM pg_buffercache WHERE usagecount >= $usage");
}

sub pages
{
	my ($node, $relation, $database) = @_;
	return $node->safe_psql($database || 'postgres', "SELECT pg_relation_size('$relation') / 8192");
}

# All pages of a relation come to a node, hot. A filter is wrong about one in a
# hundred, so that one scan does not bring all.
sub comes
{
	my ($node, $relation, $database) = @_;
	my $pages = pages($node, $relation, $database);
	return $pages > 0 && ccm_eventually("all of $relation", sub { cached($node, $relation, 3, $database) == $pages });
}

# How often the log has something
sub logged
{
	my ($node, $pattern) = @_;
	my $log = slurp_file($node->logfile);
	my $count = () = $log =~ /$pattern/g;
	return $count;
}

1;
