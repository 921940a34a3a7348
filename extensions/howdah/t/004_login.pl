# Event triggers on login, from 17 on: a master user's fire for users, and never for
# the platform, which no trigger may lock out.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{PGUSER} = 'rdsadmin';

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1, extra => [ '-U', 'rdsadmin' ]);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'howdah'");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE rdsadmin');
$node->safe_psql('postgres', slurp_file('bootstrap.sql'));
$node->safe_psql('postgres',
	'CREATE ROLE master LOGIN CREATEROLE CREATEDB; GRANT rds_superuser TO master WITH ADMIN OPTION;'
	  . 'CREATE ROLE plain LOGIN; ALTER DATABASE postgres OWNER TO master');

# Log in as a user; returns what a statement printed, or the error.
sub as
{
	my ($user, $sql, $more) = @_;
	my ($ret, $stdout, $stderr) = $node->psql('postgres', $sql,
		connstr => $node->connstr('postgres') . " user=$user" . ($more || ''));
	return $ret == 0 ? $stdout : $stderr;
}

as('master', 'CREATE TABLE seen (who name);'
	  . 'GRANT INSERT ON seen TO PUBLIC;'
	  . "CREATE FUNCTION on_login() RETURNS event_trigger LANGUAGE plpgsql AS \$\$ BEGIN\n"
	  . "INSERT INTO public.seen VALUES (current_user);\n"
	  . "IF current_user = 'plain' THEN RAISE EXCEPTION 'not today'; END IF;\n"
	  . "BEGIN ALTER ROLE master SUPERUSER; EXCEPTION WHEN insufficient_privilege THEN NULL; END;\n"
	  . "END \$\$");
my $made = as('master', 'CREATE EVENT TRIGGER watch ON login EXECUTE FUNCTION on_login()');
if ($node->safe_psql('postgres', 'SHOW server_version_num') < 170000)
{
	like($made, qr/unrecognized event name "login"/, 'there are none before 17');
	done_testing();
	exit;
}
is($made, '', 'a master user makes one');
as('master', 'ALTER EVENT TRIGGER watch ENABLE ALWAYS');
like(as('plain', 'SELECT 1'), qr/not today/, 'it fires for users');
is(as('master', 'SELECT 1'), '1', 'and for the one who made it');
for my $login ('rdsadmin', 'rdsmon', 'rdsrepladmin')
{
	is(as($login, 'SELECT current_user'), $login, "not for $login");
}
like(as('rdsrepladmin', 'IDENTIFY_SYSTEM', ' replication=database'), qr/postgres/,
	'nor for a replication connection with a database');
is(as('rdsadmin', "SELECT DISTINCT who FROM public.seen"), 'master',
	'nothing of it ran in sessions of the platform');
is(as('rdsadmin', "SELECT rolsuper FROM pg_roles WHERE rolname = 'master'"), 'f',
	'the master user is no superuser');
is(as('rdsadmin', "SELECT evtowner::regrole FROM pg_event_trigger"), 'rdsadmin',
	'it belongs to the admin role');
$node->stop;

done_testing();
