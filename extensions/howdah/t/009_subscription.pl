# A master user's subscription: made, owned and worked for by that user, who logs in at the
# publisher by a password, each time.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{PGUSER} = 'rdsadmin';

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical', extra => [ '-U', 'rdsadmin' ]);
$publisher->start;
$publisher->safe_psql('postgres', "CREATE ROLE mover LOGIN REPLICATION PASSWORD 'of the mover';
	CREATE TABLE t (i int PRIMARY KEY); INSERT INTO t VALUES (1); GRANT SELECT ON t TO mover;
	CREATE TABLE forbidden (i int PRIMARY KEY); INSERT INTO forbidden VALUES (1); GRANT SELECT ON forbidden TO mover;
	CREATE PUBLICATION p FOR TABLE t; CREATE PUBLICATION q FOR TABLE forbidden");

# The publisher asks the mover for a password, or does not.
sub asks
{
	my ($how) = @_;
	my $file = $publisher->data_dir . '/pg_hba.conf';
	unlink($file);
	append_to_file($file, "local all mover $how\nlocal all all trust\n");
	$publisher->reload;
	# A walsender that began before goes on; the worker has to connect again.
	$publisher->safe_psql('postgres', "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = 'mover'");
}
asks('scram-sha-256');
my $by_password = 'host=' . $publisher->host . ' port=' . $publisher->port . " dbname=postgres user=mover password='of the mover'";

my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init(extra => [ '-U', 'rdsadmin' ]);
$subscriber->append_conf('postgresql.conf', "shared_preload_libraries = 'howdah'\nwal_retrieve_retry_interval = 100ms\n");
$subscriber->start;
$subscriber->safe_psql('postgres', 'CREATE DATABASE rdsadmin');
$subscriber->safe_psql('postgres', slurp_file('bootstrap.sql'));
$subscriber->safe_psql('postgres', 'CREATE ROLE master LOGIN CREATEROLE CREATEDB; GRANT rds_superuser TO master WITH ADMIN OPTION;
	CREATE ROLE plain LOGIN; CREATE ROLE other LOGIN; GRANT rds_superuser TO other; REVOKE CREATE ON DATABASE postgres FROM PUBLIC;
	GRANT CREATE ON DATABASE postgres TO master; GRANT CREATE ON SCHEMA public TO master; CREATE TABLE public.forbidden (i int PRIMARY KEY)');

# Run SQL as a user; returns what it printed, or the error.
sub as
{
	my ($user, $sql) = @_;
	my ($ret, $stdout, $stderr) = $subscriber->psql('postgres', $sql,
		connstr => $subscriber->connstr('postgres') . " user=$user");
	return $ret == 0 ? $stdout : $stderr;
}

sub quoted { my ($text) = @_; return "'" . ($text =~ s/'/''/gr) . "'"; }
my $create = 'CREATE SUBSCRIPTION s CONNECTION ' . quoted($by_password) . ' PUBLICATION p';

as('master', 'CREATE TABLE t (i int PRIMARY KEY)');
like(as('plain', $create), qr/must be superuser to create subscriptions|permission denied to create subscription/, 'a plain user makes none');
like(as('other', $create), qr/permission denied for database/, 'nor a master user who may create nothing in the database');
like(as('master', $create =~ s/ password=''of the mover''//r), qr/password is required/, 'none is made without a password');
like(as('master', "BEGIN; $create; COMMIT"), qr/cannot run inside a transaction block/, 'nor in a transaction block');
like(as('master', $create =~ s/of the mover/wrong/r), qr/password authentication failed/, 'nor by a wrong password');
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM pg_subscription'), 0, 'nothing is left of those');

is(as('master', $create), '', 'a master user makes one');
is($subscriber->safe_psql('postgres', 'SELECT subowner::regrole FROM pg_subscription'), 'master', 'and owns it');
ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 1 FROM public.t'), 'the table is copied');
$publisher->safe_psql('postgres', 'INSERT INTO t VALUES (2)');
ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 2 FROM public.t'), 'and followed');
is($subscriber->safe_psql('postgres', "SELECT DISTINCT usename FROM pg_stat_activity WHERE backend_type LIKE 'logical replication%worker' AND usename IS NOT NULL"),
	'master', 'its worker is the master user');

# It writes where the master user may.
my $log = -s $subscriber->logfile;
as('master', 'ALTER SUBSCRIPTION s ADD PUBLICATION q');
$subscriber->wait_for_log(qr/permission denied for table forbidden|role "master" cannot SET ROLE to "rdsadmin"/, $log);
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM public.forbidden'), 0, 'a table that the user may not write to gets nothing');
as('master', 'ALTER SUBSCRIPTION s DROP PUBLICATION q');

# It stays the user's.
like(as('master', 'ALTER SUBSCRIPTION s OWNER TO rdsadmin'), qr/permission denied to change owner of subscription|must be able to SET ROLE/, 'it is given to no superuser');
is(as('master', 'ALTER SUBSCRIPTION s OWNER TO master'), '', 'a dump that names the owner can be restored');
like(as('master', "ALTER SUBSCRIPTION s CONNECTION 'host=/nowhere user=mover'"), qr/password is required/, 'its password cannot be taken away');
like(as('plain', 'DROP SUBSCRIPTION s'), qr/must be owner of subscription/, 'others do not drop it');

# Where the publisher does not ask, a user would get in by what the server is.
$log = -s $subscriber->logfile;
asks('trust');
$publisher->safe_psql('postgres', 'INSERT INTO t VALUES (3)');
$subscriber->wait_for_log(qr/password is required|password or GSSAPI delegated credentials required|authentication method .* is not allowed/i, $log);
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM public.t'), 2, 'a worker takes nothing without having been asked');
like(as('master', 'ALTER SUBSCRIPTION s REFRESH PUBLICATION'), qr/password/, 'nor does a session');
asks('scram-sha-256');
ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 3 FROM public.t'), 'it goes on when it is asked again');

# A copy of these data, as a replica that is promoted, does not take rows from the slot: not before
# they are disabled, and not under its own name. The same database goes on, whichever server it is on.
sub heritage { my ($of) = @_; $subscriber->safe_psql('postgres', qq(COMMENT ON DATABASE rdsadmin IS '{"database":"$of","disabled":1}')); }
sub named { my ($name) = @_; $subscriber->append_conf('postgresql.conf', "howdah.database = '$name'"); $subscriber->reload; }
heritage('db-A');
named('db-A');
$subscriber->restart;
$publisher->safe_psql('postgres', 'INSERT INTO t VALUES (4)');
ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 4 FROM public.t'), 'the same database goes on after a restart');
named('db-AB');
$log = -s $subscriber->logfile;
$subscriber->restart;
$publisher->safe_psql('postgres', 'INSERT INTO t VALUES (5)');
$subscriber->wait_for_log(qr/subscriptions came with the data of another database/, $log);
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM public.t'), 4, 'another one takes nothing');
is($publisher->safe_psql('postgres', 'SELECT count(*) FROM pg_replication_slots WHERE active'), 0, 'and leaves the slot to its owner');
like(as('master', q(COMMENT ON DATABASE rdsadmin IS '{"database":"db-AB"}')), qr/must be owner|permission denied/, 'users do not say whose they are');
heritage('db-AB');
ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 5 FROM public.t'), 'they go on once they are its own');

# The platform's own are as ever.
$publisher->safe_psql('postgres', 'CREATE TABLE u (i int PRIMARY KEY); INSERT INTO u VALUES (1); CREATE PUBLICATION r FOR TABLE u');
$subscriber->safe_psql('postgres', 'CREATE TABLE public.u (i int PRIMARY KEY); CREATE SUBSCRIPTION own CONNECTION ' . quoted($publisher->connstr('postgres')) . ' PUBLICATION r');
ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 1 FROM public.u'), 'a superuser needs no password');
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION own');

is(as('master', 'DROP SUBSCRIPTION s'), '', 'the user drops it');
is($publisher->safe_psql('postgres', 'SELECT count(*) FROM pg_replication_slots'), 0, 'and its slot with it');
is(as('master', 'CREATE TABLE later (i int)'), '', 'the session goes on');

$subscriber->stop;
$publisher->stop;
done_testing();
