# Rows that a subscription brings wait on their publisher while the storage is full.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{PGUSER} = 'rdsadmin';

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical', extra => [ '-U', 'rdsadmin' ]);
$publisher->start;
$publisher->safe_psql('postgres', 'CREATE TABLE t (i int); CREATE TABLE u (i int); CREATE PUBLICATION p FOR TABLE t; INSERT INTO u VALUES (1)');

my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init(allows_streaming => 'logical', extra => [ '-U', 'rdsadmin' ]);
$subscriber->append_conf('postgresql.conf', qq(
shared_preload_libraries = 'howdah'
wal_retrieve_retry_interval = 100ms
));
$subscriber->start;
$subscriber->safe_psql('postgres', "CREATE TABLE t (i int); CREATE TABLE u (i int);
	CREATE FUNCTION howdah_storage_level(integer) RETURNS void LANGUAGE c STRICT AS 'howdah', 'howdah_storage_level'");
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '" . $publisher->connstr . " dbname=postgres' PUBLICATION p");
$publisher->safe_psql('postgres', 'INSERT INTO t VALUES (1)');
$subscriber->poll_query_until('postgres', 'SELECT count(*) = 1 FROM t') or die;

# As the agent does.
$subscriber->safe_psql('postgres', "SELECT howdah_storage_level(1);
	SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE backend_type LIKE 'logical replication%worker'");
my $log = -s $subscriber->logfile;
$publisher->safe_psql('postgres', 'INSERT INTO t SELECT generate_series(2, 1000); ALTER PUBLICATION p ADD TABLE u');
$subscriber->wait_for_log(qr/the allocated storage is full/, $log);
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM t'), 1, 'nothing is brought');
$log = -s $subscriber->logfile;
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION s REFRESH PUBLICATION');
$subscriber->wait_for_log(qr/the allocated storage is full/, $log);
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM u'), 0, 'nor is a table copied');

$subscriber->safe_psql('postgres', 'SELECT howdah_storage_level(0)');
ok($subscriber->poll_query_until('postgres', 'SELECT (SELECT count(*) FROM t) = 1000 AND (SELECT count(*) FROM u) = 1'), 'all of it comes when there is room');

$subscriber->stop;
$publisher->stop;
done_testing();
