# What a master user dumps, a master user restores: no statement of the dump fails, and what the platform
# grants is not in it.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{PGUSER} = 'rdsadmin';

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(extra => [ '-U', 'rdsadmin' ]);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'howdah, pg_stat_statements'");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE rdsadmin');
$node->safe_psql($_, slurp_file('bootstrap.sql')) for ('template1', 'postgres', 'template1');
$node->safe_psql('postgres', 'CREATE ROLE master LOGIN CREATEROLE CREATEDB; GRANT rds_superuser TO master WITH ADMIN OPTION; CREATE ROLE plain LOGIN');

my $connstr = sub { my ($database) = @_; return $node->connstr($database) . ' user=master'; };
sub as_master { my ($database, $sql) = @_; return $node->safe_psql($database, $sql, connstr => $connstr->($database)); }

as_master('postgres', "CREATE DATABASE $_") for ('old', 'new');
as_master('old', "CREATE EXTENSION $_") for ('amcheck', 'postgres_fdw', 'dblink', 'pg_stat_statements', 'pg_trgm');
as_master('old', q{
	CREATE SERVER s FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host 'h');
	GRANT USAGE ON FOREIGN SERVER s TO plain;
	CREATE FUNCTION on_ddl() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
	CREATE TABLE t (i int PRIMARY KEY);
	INSERT INTO t SELECT generate_series(1, 10)});

my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $connstr->('old') ], 'a master user dumps');
unlike(slurp_file($dump), qr/(TO|FROM) (rds|PUBLIC)/, 'nothing of the platform is in it');
like(slurp_file($dump), qr/GRANT ALL ON FOREIGN SERVER s TO plain/, 'what the user granted is');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $connstr->('new') ], 'and a master user restores it');
is(as_master('new', 'SELECT count(*) FROM t'), 10, 'with the rows');
is(as_master('new', "SELECT has_foreign_data_wrapper_privilege('rds_superuser', 'postgres_fdw', 'USAGE WITH GRANT OPTION')"), 't', 'and what the platform grants is there, too');
is(as_master('new', "SELECT has_server_privilege('plain', 's', 'USAGE')"), 't', 'as is what the user granted');

# An update of an extension grants the same.
as_master('old', "CREATE EXTENSION pgstattuple VERSION '1.4'; ALTER EXTENSION pgstattuple UPDATE");
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $connstr->('old') ], 'a dump after an update');
unlike(slurp_file($dump), qr/(TO|FROM) (rds|PUBLIC)/, 'has nothing of the platform either');

$node->stop;
done_testing();
