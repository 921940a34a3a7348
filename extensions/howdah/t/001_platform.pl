# The platform as it is in production: the bootstrap superuser is rdsadmin, the
# master user is called postgres, and bootstrap.sql runs in single-user mode.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use IPC::Run;

$ENV{PGUSER} = 'rdsadmin';

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1, extra => [ '-U', 'rdsadmin' ]);
$primary->append_conf('postgresql.conf', "shared_preload_libraries = 'howdah'");

# Run SQL in single-user mode; returns what the server printed.
sub single_user
{
	my ($database, @input) = @_;
	my ($stdout, $stderr) = ('', '');
	my @command = ('postgres', '--single', '-j', '-D', $primary->data_dir, $database);
	IPC::Run::run(\@command, '<', \join('', @input), '>', \$stdout, '2>', \$stderr)
	  or die "single-user mode: $stderr";
	return $stdout . $stderr;
}

# Run one statement as a user; returns stdout, or "ERROR: ..." if it failed.
sub as
{
	my ($user, $sql, %options) = @_;
	my ($ret, $stdout, $stderr) = $primary->psql($options{database} || 'postgres',
		$sql, extra_params => [ '-U', $user ]);
	return $ret == 0 ? $stdout : $stderr;
}

# A psql that sleeps as a user, and the backend's pid.
my $sleepers = 0;
sub sleeper
{
	my ($user) = @_;
	my $name = 'sleeper' . ++$sleepers;
	my $connstr = $primary->connstr('postgres') . " user=$user application_name=$name";
	my $process = IPC::Run::start([ 'psql', '-X', '-d', $connstr, '-c', 'SELECT pg_sleep(180)' ],
		'<', \undef, '>', \my $out, '2>', \my $err);
	my $query = "SELECT pid FROM pg_stat_activity WHERE application_name = '$name' AND state = 'active'";
	$primary->poll_query_until('postgres', "SELECT EXISTS ($query)")
	  or die "$user did not connect";
	return ($process, $primary->safe_psql('postgres', $query));
}

# bootstrap.sql by lines, twice in each database
my $bootstrap = slurp_file('bootstrap.sql');
single_user('template1', "CREATE DATABASE rdsadmin;\n\n");
for my $database ('template1', 'postgres', 'template1', 'postgres')
{
	unlike(single_user($database, $bootstrap), qr/(ERROR|FATAL|PANIC):  /,
		"bootstrap.sql in single-user mode, $database");
}
my $printed = single_user('postgres', "SELECT 1/0;\n\n", "SELECT 'still ' || 'here';\n\n");
like($printed, qr/ERROR:  division by zero/, 'single-user mode prints an error');
like($printed, qr/still here/, 'goes on, and exits with 0');

$primary->start;
my $major = int($primary->safe_psql('postgres', 'SHOW server_version_num') / 10000);
$primary->safe_psql('postgres', 'CREATE ROLE postgres LOGIN CREATEROLE CREATEDB');
$primary->safe_psql('postgres', 'GRANT rds_superuser TO postgres WITH ADMIN OPTION');
$primary->safe_psql('postgres', 'ALTER DATABASE postgres OWNER TO postgres');
$primary->safe_psql('postgres', 'CREATE ROLE app LOGIN');

# a master user by the name of postgres is not the superuser
is(as('postgres', 'SELECT rolsuper FROM pg_roles WHERE rolname = current_user'), 'f', 'postgres is no superuser');
is(as('postgres', 'CREATE ROLE x; GRANT rds_iam TO x; DROP ROLE x'), '', 'postgres manages roles');
like(as('postgres', 'GRANT pg_execute_server_program TO postgres'), qr/ERROR:  permission denied to grant/, 'not the program role');
like(as('postgres', 'ALTER ROLE rdsadmin PASSWORD NULL'), qr/ERROR:  permission denied to alter/, 'not the bootstrap superuser');
like(as('postgres', 'SELECT 1', database => 'rdsadmin'), qr/permission denied for database "rdsadmin"/, 'not the platform database');
is(as('rdsmon', 'SELECT 1', database => 'rdsadmin'), '1', 'monitoring uses the platform database');
is(as('rdsmon', "SELECT pg_has_role('pg_read_all_stats', 'usage')"), 't', 'monitoring sees statistics');

# the default settings: extensions, no tablespaces
is(as('postgres', 'CREATE EXTENSION postgres_fdw'), '', 'an extension of the default list');
my $default = $primary->safe_psql('postgres', 'SHOW howdah.extensions');
for my $extension (
	qw(adminpack file_fdw pageinspect pg_surgery pg_walinspect plperlu plpython3u plpythonu pltclu xml2 pg_repack pglogical plprofiler wal2json))
{
	unlike($default, qr/\b$extension\b/, "$extension is not in the default list");
	like(as('postgres', "CREATE EXTENSION $extension"), qr/is not supported on this instance/, "$extension is refused");
}
like(as('postgres', "CREATE TABLESPACE x LOCATION '/x'"), qr/tablespaces are not available/, 'no tablespaces by default');

# the list changes with a reload, and only to what can be read
$primary->append_conf('postgresql.conf', "howdah.extensions = 'citext'");
$primary->reload;
$primary->poll_query_until('postgres', "SELECT current_setting('howdah.extensions') = 'citext'") or die;
like(as('postgres', 'CREATE EXTENSION hstore'), qr/is not supported/, 'taken off the list');
is(as('postgres', 'DROP EXTENSION postgres_fdw'), '', 'what is off the list can be dropped');
$primary->append_conf('postgresql.conf', "howdah.extensions = 'citext,,'");
my $offset = -s $primary->logfile;
$primary->reload;
my $logged = 0;
for (1 .. 100 * $PostgreSQL::Test::Utils::timeout_default)
{
	last if $logged = substr(slurp_file($primary->logfile), $offset) =~ /invalid value for parameter "howdah.extensions"/;
	select(undef, undef, undef, 0.01);
}
ok($logged, 'a list that cannot be read is reported');
is($primary->safe_psql('postgres', 'SHOW howdah.extensions'), 'citext', 'and not used');
$primary->append_conf('postgresql.conf', "howdah.extensions = 'citext'");
like(as('rdsadmin', "LOAD 'howdah'"), qr/^$/, 'already loaded');

# sessions of the platform cannot be ended by users, others can
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
my $conninfo = $primary->connstr . ' user=rdsrepladmin application_name=standby';
$conninfo =~ s/'/''/g;
$standby->append_conf('postgresql.conf', "primary_conninfo = '$conninfo'");
$standby->start;
$primary->poll_query_until('postgres',
	"SELECT EXISTS (SELECT FROM pg_stat_replication WHERE usename = 'rdsrepladmin' AND state = 'streaming')") or die;
my $walsender = $primary->safe_psql('postgres', 'SELECT pid FROM pg_stat_replication');
my ($monitor, $monitor_pid) = sleeper('rdsmon');
my @users;
my ($admin, $admin_pid) = sleeper('rdsadmin');
is(as('postgres', "SELECT query FROM pg_stat_activity WHERE pid = $monitor_pid"),
	'SELECT pg_sleep(180)', "a master user sees others' statements");
for my $function ('pg_cancel_backend', 'pg_terminate_backend')
{
	like(as('postgres', "SELECT $function($walsender)"), qr/ERROR/, "$function on the standby's connection");
	like(as('postgres', "SELECT $function($monitor_pid)"), qr/ERROR/, "$function on the monitoring session");
	like(as('postgres', "SELECT $function($admin_pid)"), qr/ERROR/, "$function on an rdsadmin session");
	my ($user, $user_pid) = sleeper('app');
	is(as('postgres', "SELECT $function($user_pid)"), 't', "$function on a user's session");
	push @users, $user;
}
is($primary->safe_psql('postgres', "SELECT string_agg(pid::text, ',' ORDER BY pid) FROM pg_stat_activity WHERE pid IN ($walsender, $monitor_pid, $admin_pid)"),
	join(',', sort { $a <=> $b } $walsender, $monitor_pid, $admin_pid), 'the platform is still connected');
is($primary->safe_psql('postgres', "SELECT usename FROM pg_stat_activity WHERE pid = $monitor_pid"), 'rdsmon', 'and shown as it is');
$primary->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid IN ($monitor_pid, $admin_pid)");
$_->finish for ($monitor, $admin, @users);

# replication is not for users, whatever group they are in
as('postgres', 'GRANT rds_replication TO postgres');
for my $mode ('true', 'database')
{
	my $connstr = $primary->connstr('postgres') . " user=postgres replication=$mode";
	for my $command ('IDENTIFY_SYSTEM', 'BASE_BACKUP')
	{
		# Not over psql's standard input: it may be gone before the command is written.
		$primary->command_fails_like([ 'psql', '-X', '-d', $connstr, '-c', $command ],
			qr/replication|REPLICATION/, "$command, replication=$mode, for want of REPLICATION");
	}
}

# subscriptions: more about them in 009
my $subscribe = "CREATE SUBSCRIPTION s CONNECTION 'dbname=postgres %s' PUBLICATION p WITH (connect = false)";
if ($major < 16)
{
	like(as('postgres', sprintf($subscribe, 'user=rdsadmin')), qr/password is required/, 'a subscription needs a password');
}
else
{
	like(as('postgres', sprintf($subscribe, 'user=rdsadmin')), qr/password is required/, 'a subscription needs a password');
	like(as('postgres', sprintf($subscribe, 'password=x') =~ s/connect = false/connect = false, password_required = false/r),
		qr/superuser/, 'and cannot do without');
	is(as('postgres', sprintf($subscribe, 'password=x') . '; ALTER SUBSCRIPTION s SET (slot_name = NONE); DROP SUBSCRIPTION s'),
		'', 'a subscription');
	like(as('postgres', 'GRANT pg_use_reserved_connections TO postgres'), qr/permission denied/, 'no reserved connections');
	is(as('postgres', 'GRANT pg_read_all_data TO app'), '', 'reading all data can be handed out');
	is(as('postgres', "SELECT pg_has_role('pg_read_all_data', 'usage')"), 'f', 'without having it');
}

# event triggers on login, from 17 on: for users, not for the platform
if ($major >= 17)
{
	as('postgres', 'CREATE FUNCTION on_login() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION $q$closed$q$; END $$');
	is(as('postgres', 'CREATE EVENT TRIGGER closed ON login EXECUTE FUNCTION on_login()'), '', 'an event trigger on login');
	like(as('app', 'SELECT 1'), qr/closed/, 'fires for users');
	is(as($_, 'SELECT 1'), '1', "but not for $_") for ('rdsadmin', 'rdsmon');
	$primary->safe_psql('postgres', 'DROP EVENT TRIGGER closed');
}

# an admin role that is none
$primary->append_conf('postgresql.conf', "howdah.admin_role = 'nobody'");
$primary->restart;
like(as('postgres', 'GRANT rds_iam TO app'), qr/role "nobody" is not a superuser/, 'no admin role');
$primary->append_conf('postgresql.conf', "howdah.admin_role = 'app'");
$primary->restart;
like(as('postgres', 'GRANT rds_iam TO app2'), qr/role "app" is not a superuser/, 'an admin role without superuser rights');

$standby->stop;
$primary->stop;

# without shared_preload_libraries
$primary->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$primary->start;
like(as('rdsadmin', "LOAD 'howdah'"), qr/must be loaded via shared_preload_libraries/, 'not in one session');
$primary->stop;

done_testing();
