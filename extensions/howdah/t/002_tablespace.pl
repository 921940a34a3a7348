# Tablespaces of master users on physical standbys, in base backups, after a
# crash and a promotion.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use IPC::Run;

$ENV{PGUSER} = 'rdsadmin';

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1, extra => [ '-U', 'rdsadmin' ]);
$primary->append_conf('postgresql.conf', qq(
wal_log_hints = on
allow_in_place_tablespaces = off
shared_preload_libraries = 'howdah'
howdah.tablespaces = on
));
$primary->start;
$primary->safe_psql('postgres', slurp_file('bootstrap.sql'));
$primary->safe_psql('postgres', 'CREATE ROLE master LOGIN CREATEDB; GRANT rds_superuser TO master; ALTER DATABASE postgres OWNER TO master');

# Run statements as the master user; each by itself, for CREATE TABLESPACE.
sub as_master
{
	my ($node, @statements) = @_;
	$node->safe_psql('postgres', $_, extra_params => [ '-U', 'master' ]) for @statements;
}

sub rows
{
	my ($node, $table, $database) = @_;
	return $node->safe_psql($database || 'postgres', "SELECT count(*) FROM public.$table");
}

# before and after the base backup that the standby starts from
as_master($primary, "CREATE TABLESPACE before LOCATION '/data/before'",
	'CREATE TABLE t_before TABLESPACE before AS SELECT generate_series(1, 1000) AS i');
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;
as_master($primary, "CREATE TABLESPACE after LOCATION '/data/after'",
	'CREATE TABLE t_after TABLESPACE after AS SELECT generate_series(1, 2000) AS i',
	'CREATE DATABASE d TABLESPACE after',
	'ALTER TABLE t_before SET TABLESPACE after');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(rows($standby, 't_before'), '1000', 'table moved between tablespaces, on the standby');
is(rows($standby, 't_after'), '2000', 'table in a tablespace made later, on the standby');
is($standby->safe_psql('d', 'SELECT 1'), '1', 'database in it, on the standby');

# nothing lies outside of the data directories
for my $node ($primary, $standby)
{
	my @entries = grep { !/\/\.\.?$/ } glob($node->data_dir . '/pg_tblspc/*');
	is(scalar(@entries), 2, 'two tablespaces on ' . $node->name);
	ok(!(grep { -l $_ } @entries), 'that are no links');
}

# a crash of both, right after creating and dropping
as_master($primary, 'CREATE TABLE t_empty (i int) TABLESPACE before', 'DROP TABLE t_empty',
	'DROP TABLESPACE before', "CREATE TABLESPACE again LOCATION ''",
	'CREATE TABLE t_again TABLESPACE again AS SELECT generate_series(1, 3000) AS i');
$primary->stop('immediate');
$primary->start;
is(rows($primary, 't_again'), '3000', 'after a crash of the primary');
$standby->stop('immediate');
$standby->start;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(rows($standby, 't_again'), '3000', 'after a crash of the standby');
is($standby->safe_psql('postgres', "SELECT string_agg(spcname, ' ' ORDER BY 1) FROM pg_tablespace WHERE spcname !~ '^pg_'"),
	'after again', 'dropped there too');

# a standby of the standby, from a base backup with all of it
$standby->backup('backup2');
my $cascaded = PostgreSQL::Test::Cluster->new('cascaded');
$cascaded->init_from_backup($standby, 'backup2', has_streaming => 1);
$cascaded->start;
is(rows($cascaded, 't_again'), '3000', 'from a base backup of the standby');

# a standby needs a setting for them, whatever its own configuration says
is($standby->safe_psql('postgres', 'SHOW allow_in_place_tablespaces'), 'on', 'the setting that standbys need');
unlike(slurp_file($standby->logfile), qr/PANIC/, 'no panic');

# promotion
$standby->promote;
as_master($standby, "CREATE TABLESPACE promoted LOCATION '/x'",
	'CREATE TABLE t_promoted TABLESPACE promoted AS SELECT generate_series(1, 10) AS i',
	'DROP TABLE t_again', 'DROP TABLESPACE again');
$standby->wait_for_catchup($cascaded, 'replay', $standby->lsn('insert'));
is(rows($cascaded, 't_promoted'), '10', 'after a promotion');
$standby->restart;
is(rows($standby, 't_promoted'), '10', 'after a restart');

# the failed primary comes back by pg_rewind, from 16 or 17 on; see README.md
my $major = int($standby->safe_psql('postgres', 'SHOW server_version_num') / 10000);
as_master($primary, 'CREATE TABLE t_diverged TABLESPACE after AS SELECT 1 AS i');
$primary->stop('fast');
$standby->safe_psql('postgres', 'CHECKPOINT');
my ($stdout, $stderr);
my $rewound = IPC::Run::run(
	[ 'pg_rewind', '-D', $primary->data_dir, '--source-server', $standby->connstr('postgres') ],
	'>', \$stdout, '2>', \$stderr);
if ($major < 16)
{
	ok(!$rewound, 'pg_rewind of 15 fails');
	like($stderr, qr/is of different type in source and target/, 'because of the tablespaces');
}
elsif ($major > 16)
{
	ok($rewound, 'pg_rewind') or diag($stderr);
	$primary->append_conf('postgresql.conf', 'port = ' . $primary->port);
	$primary->append_conf('postgresql.conf', "unix_socket_directories = '" . $primary->host . "'");
	$primary->enable_streaming($standby);
	$primary->set_standby_mode();
	$primary->start;
	$standby->wait_for_catchup($primary, 'replay', $standby->lsn('insert'));
	is(rows($primary, 't_promoted'), '10', 'the old primary follows');
	$primary->stop;
}

$_->stop for ($cascaded, $standby);
done_testing();
