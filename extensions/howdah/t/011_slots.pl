# Logical slots and WAL senders of users: what they may, by SQL and by replication commands, and
# that nothing else gets through.
use strict;
use warnings;
use IO::Socket::INET;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{PGUSER} = 'rdsadmin';

my $node = PostgreSQL::Test::Cluster->new('db-orders');
# A server's name is the node's, as Patroni gives it the database's.
$node->init(allows_streaming => 'logical', extra => [ '-U', 'rdsadmin' ]);
$node->append_conf('postgresql.conf', <<'END');
shared_preload_libraries = 'howdah'
wal_level = logical
max_wal_senders = 24
max_replication_slots = 24
wal_sender_timeout = 5s
howdah.logical_slots = on
END
$node->start;
my $major = int($node->safe_psql('postgres', 'SHOW server_version_num') / 10000);
$node->safe_psql('postgres', 'CREATE DATABASE rdsadmin');
$node->safe_psql('postgres', "CREATE DATABASE other");
$node->safe_psql($_, slurp_file('bootstrap.sql')) for ('template1', 'postgres', 'rdsadmin', 'other');
$node->safe_psql('postgres', <<'END');
CREATE ROLE master LOGIN CREATEROLE CREATEDB;
GRANT rds_superuser TO master WITH ADMIN OPTION;
CREATE ROLE mover LOGIN;
CREATE ROLE plain LOGIN;
GRANT CREATE ON DATABASE postgres TO master, mover;
GRANT CREATE ON SCHEMA public TO mover;
CREATE TABLE public.platforms (i int PRIMARY KEY);
SELECT pg_create_physical_replication_slot('db_orders_m2');
SELECT pg_create_physical_replication_slot('of_somebody');
END

# Run SQL, or a replication command, as a user; returns what it printed, or the error.
sub as
{
	my ($user, $sql, %more) = @_;
	my $database = $more{database} // 'postgres';
	my ($ret, $stdout, $stderr) = $node->psql($database, $sql, on_error_stop => 1,
		connstr => $node->connstr($database) . " user=$user" . ($more{options} // ''),
		($more{replication} ? (replication => $more{replication}) : ()));
	return $ret == 0 ? $stdout : $stderr;
}

sub sends { my ($user, $command, @more) = @_; return as($user, $command, replication => 'database', @more); }

# Before anything is set up, and for whoever is no member.
my $denied = qr/must be superuser or replication role|permission denied to use replication slots/;
is(as('master', 'GRANT rds_replication TO mover'), '', 'a master user hands the role out');
like(as('mover', "SELECT pg_create_logical_replication_slot('s', 'pgoutput')"), $denied, "PostgreSQL's own functions refuse a member");
like(sends('plain', 'IDENTIFY_SYSTEM'), qr/FATAL:.*permission denied to start WAL sender/, 'who is no member gets no WAL sender');
like(sends('master', 'IDENTIFY_SYSTEM'), qr/FATAL:.*permission denied to start WAL sender/, 'nor does a master user');
for my $round (1, 2)
{
	$node->safe_psql($_, slurp_file('slots.sql')) for ('postgres', 'other', 'template1');
	pass("functions are put in place, round $round");
}
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_proc WHERE probin = 'howdah' AND pronamespace = 'pg_catalog'::regnamespace"), 10, 'as often as one likes');
is($node->safe_psql('postgres', "SELECT rolreplication FROM pg_roles WHERE rolname = 'mover'"), 'f', 'nobody got the attribute');

# By SQL.
like(as('plain', "SELECT pg_create_logical_replication_slot('s', 'pgoutput')"), $denied, 'a plain user makes no slot');
unlike(as('mover', "SELECT 'lists ' || setting FROM pg_settings WHERE name = 'output_plugin_libraries' AND setting !~ 'wal2json'"), qr/lists/, 'a list of PostgreSQL has all plugins of ours');
like(as('mover', "SELECT pg_create_logical_replication_slot('s', 'test_decoding')"), qr/^\(s,/, 'a member does');
as('mover', 'CREATE TABLE t (i int PRIMARY KEY, note text)');
as('mover', "INSERT INTO t VALUES (1, 'one')");
like(as('mover', "SELECT data FROM pg_logical_slot_peek_changes('s', NULL, NULL)"), qr/table public\.t: INSERT: i\[integer\]:1/, 'looks at changes');
like(as('mover', "SELECT data FROM pg_logical_slot_get_changes('s', NULL, NULL, 'include-xids', '0')"), qr/^BEGIN$/m, 'takes them, with options');
is(as('mover', "SELECT count(*) FROM pg_logical_slot_get_changes('s', NULL, NULL)"), 0, 'once');
like(as('mover', "SELECT pg_copy_logical_replication_slot('s', 'copy')"), qr/^\(copy,/, 'copies a slot');
like(as('mover', "SELECT pg_copy_logical_replication_slot('s', 'copy2', true, 'pgoutput')"), qr/^\(copy2,/, 'with another plugin, for a session');
like(as('mover', "SELECT pg_logical_emit_message(false, 'mine', 'text') IS NOT NULL"), qr/t/, 'emits messages');
like(as('mover', "SELECT pg_replication_slot_advance('copy', pg_current_wal_lsn())"), qr/^\(copy,/, 'advances one');
is(as('mover', "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = 'copy'"), '', 'and drops it');
like(as('mover', "SELECT pg_drop_replication_slot('nowhere')"), qr/does not exist/, 'what is not there is not there');
like(as('mover', "SELECT pg_logical_slot_get_changes(NULL, NULL, NULL)"), qr/must not be null|null/i, 'NULL is no slot');
like(as('plain', "SELECT data FROM pg_logical_slot_peek_changes('s', NULL, NULL)"), $denied, 'a plain user reads none');
like(as('plain', "SELECT pg_drop_replication_slot('s')"), $denied, 'nor drops one');
as('mover', "CREATE FUNCTION lent() RETURNS text SECURITY DEFINER LANGUAGE sql AS \$\$ SELECT data FROM pg_logical_slot_peek_changes('s', NULL, NULL) \$\$");
like(as('plain', 'SELECT lent()'), qr/message: transactional/, "with a member's function it has the member's rights");

# What is not theirs.
for my $slot ('db_orders_m2', 'of_somebody')
{
	like(as('mover', "SELECT pg_drop_replication_slot('$slot')"), qr/permission denied for replication slot/, "slot $slot is not dropped");
	like(as('mover', "SELECT pg_replication_slot_advance('$slot', '0/1')"), qr/permission denied for replication slot/, 'nor advanced');
	like(as('mover', "SELECT * FROM pg_logical_slot_get_changes('$slot', NULL, NULL)"), qr/permission denied for replication slot/, 'nor read');
	like(as('mover', "SELECT pg_copy_logical_replication_slot('$slot', 'x')"), qr/permission denied for replication slot/, 'nor copied');
}
like(as('mover', "SELECT pg_create_physical_replication_slot('p')"), $denied, 'no physical slot is made');
like(as('mover', "SELECT pg_copy_physical_replication_slot('of_somebody', 'p')"), $denied, 'nor copied');
like(as('mover', "SELECT pg_create_logical_replication_slot('$_', 'pgoutput')"), qr/name "\Q$_\E" is reserved/, "$_ is a name of the platform's")
  for ('db_orders_m3', 'm7', 'follow_db_1', 'howdah_clone_1', 'pg_basebackup_1', 'rds_x');
like(as('mover', "SELECT pg_create_logical_replication_slot('x', '$_')"), qr/permission denied to use the output plugin/, "the library $_ is not loaded")
  for ('howdah', 'libpqwalreceiver', '../lib/pgoutput', '$libdir/pgoutput');
like(as('mover', "SELECT pg_copy_logical_replication_slot('s', 'x', false, 'howdah')"), qr/permission denied to use the output plugin/, 'nor for a copy');
like(as('mover', "SELECT pg_drop_replication_slot('s')", database => 'other'), qr/another database/, 'a slot is left alone from another database');
like(as('mover', "SELECT howdah_pg_drop_replication_slot('s')"), $denied, "PostgreSQL's own function is where it was, and refuses");
like(as('mover', 'ALTER ROLE mover REPLICATION'), qr/permission denied/, 'the attribute is for nobody');
is($node->safe_psql('postgres', "SELECT string_agg(slot_name, ' ' ORDER BY slot_name) FROM pg_replication_slots"), 'db_orders_m2 of_somebody s', 'what there is is there');

# By replication commands.
like(sends('mover', 'IDENTIFY_SYSTEM'), qr/\|postgres$/, 'a WAL sender says who it is');
like(sends('mover', 'SHOW wal_level'), qr/logical/, 'and what is set');
like(sends('mover', 'SELECT current_user'), qr/mover/, 'it runs SQL');
like(sends('mover', 'CREATE_REPLICATION_SLOT w LOGICAL pgoutput'), qr/^w\|/, 'it makes a slot');
like(sends('mover', 'CREATE_REPLICATION_SLOT "v" TEMPORARY LOGICAL test_decoding (SNAPSHOT \'nothing\')'), qr/^v\|/, 'and one for the session');
is(sends('mover', 'DROP_REPLICATION_SLOT w WAIT'), '', 'drops it');
like(sends('mover', 'READ_REPLICATION_SLOT nowhere'), qr/^\|\|$/, 'reads what there is of one');
my $no = qr/ERROR:.*permission denied/;
my @refused = (
	'BASE_BACKUP', "BASE_BACKUP (LABEL 'x', PROGRESS, CHECKPOINT 'fast', WAL 1)", ' BASE_BACKUP ( LABEL x ) ;', "BASE_BACKUP (LABEL 'IDENTIFY_SYSTEM')",
	'START_REPLICATION 0/0', 'START_REPLICATION PHYSICAL 0/1000000', 'START_REPLICATION SLOT of_somebody 0/0', 'START_REPLICATION SLOT "of_somebody" PHYSICAL 0/0 TIMELINE 1',
	'START_REPLICATION SLOT of_somebody LOGICAL 0/0', 'START_REPLICATION SLOT db_orders_m2 LOGICAL 0/0',
	'CREATE_REPLICATION_SLOT p PHYSICAL', 'CREATE_REPLICATION_SLOT p TEMPORARY PHYSICAL RESERVE_WAL', 'CREATE_REPLICATION_SLOT x LOGICAL howdah', 'CREATE_REPLICATION_SLOT "x" LOGICAL "../x"',
	'DROP_REPLICATION_SLOT of_somebody', 'DROP_REPLICATION_SLOT "db_orders_m2" WAIT', 'TIMELINE_HISTORY 1');
push @refused, 'UPLOAD_MANIFEST', "BASE_BACKUP (INCREMENTAL)", 'ALTER_REPLICATION_SLOT of_somebody (FAILOVER true)' if $major >= 17;
like(sends('mover', $_), $no, "refused: $_") for @refused;
like(sends('mover', 'CREATE_REPLICATION_SLOT m9 LOGICAL pgoutput'), qr/is reserved/, "a member's name is refused");
like(sends('mover', $_, database => 'other'), qr/another database/, "from another database: $_") for ('DROP_REPLICATION_SLOT s', 'START_REPLICATION SLOT s LOGICAL 0/0');
like(as('mover', 'IDENTIFY_SYSTEM', replication => 'true'), qr/must be superuser or replication role|permission denied to start WAL sender|no pg_hba/, 'there is no physical WAL sender');
$node->safe_psql('postgres', 'REVOKE CONNECT ON DATABASE other FROM PUBLIC');
like(sends('mover', 'IDENTIFY_SYSTEM', database => 'other'), qr/permission denied for database/, 'CONNECT is needed');
$node->safe_psql('postgres', 'GRANT CONNECT ON DATABASE other TO PUBLIC');

# Where the module is gone, PostgreSQL's own functions get their names back.
$node->safe_psql('other', slurp_file('slots_undo.sql')) for (1, 2);
is($node->safe_psql('other', "SELECT count(*) FROM pg_proc WHERE probin = 'howdah' OR proname LIKE 'howdah%'"), 0, 'nothing of the module is left');
like(as('mover', "SELECT pg_drop_replication_slot('s')", database => 'other'), $denied, 'and they refuse');
$node->safe_psql('other', slurp_file('slots.sql'));
like(as('mover', "SELECT pg_drop_replication_slot('s')", database => 'other'), qr/another database/, 'until they are put in place again');

# What could hide a command.
my $hide = qr/is fixed in a user's WAL sender|permission denied to set parameter|FATAL/;
for my $options ('-c log_min_messages=panic', '-c log_replication_commands=off', '-c client_min_messages=error')
{
	unlike(sends('mover', 'BASE_BACKUP', options => " options='$options'"), qr/PG_VERSION|base\//, "nothing is copied with $options");
}
like(sends('mover', 'SET log_min_messages = panic'), $hide, 'the log stays');
$node->safe_psql('postgres', 'GRANT SET ON PARAMETER log_min_messages, log_replication_commands TO mover');
for my $set ('SET log_min_messages = panic', 'SET LOCAL log_min_messages = fatal', 'SET log_replication_commands = off',
	"SELECT set_config('log_min_messages', 'panic', false)", "SELECT set_config('log_replication_commands', 'off', true)")
{
	like(sends('mover', "BEGIN; $set"), qr/is fixed in a user's WAL sender|invalid value/, "even for who may: $set");
}
like(sends('mover', "RESET ALL;\nBASE_BACKUP"), $no, 'RESET ALL undoes nothing');
like(sends('mover', "DISCARD ALL;\nBASE_BACKUP"), $no, 'nor does DISCARD ALL');
like(sends('mover', 'BASE_BACKUP', options => " options='-c log_min_messages=panic -c log_replication_commands=off'"), $no, 'nor do options');
$node->safe_psql('postgres', 'ALTER ROLE mover SET log_min_messages = panic; ALTER ROLE mover SET log_replication_commands = off');
like(sends('mover', 'BASE_BACKUP'), $no, "nor do the user's settings");
$node->safe_psql('postgres', 'ALTER ROLE mover RESET ALL');
$node->safe_psql('postgres', 'REVOKE SET ON PARAMETER log_min_messages, log_replication_commands FROM mover');
$node->append_conf('postgresql.conf', "log_min_messages = panic\n");
$node->reload;
like(sends('mover', 'BASE_BACKUP'), $no, "nor does the server's own");
$node->append_conf('postgresql.conf', "log_min_messages = warning\nlog_replication_commands = off\n");
$node->reload;
like(sends('mover', "DO \$\$ BEGIN RAISE LOG 'received replication command: IDENTIFY_SYSTEM'; END \$\$;\nBASE_BACKUP"), $no, 'nor does a message like it');
like(sends('mover', "SELECT 1/0;\nBASE_BACKUP"), qr/division by zero/, 'an error before it does not matter');
my $log = -s $node->logfile;
like(sends('mover', 'IDENTIFY_SYSTEM'), qr/\|postgres$/, 'commands still run');
unlike(slurp_file($node->logfile, $log), qr/LOG:  received replication command/, 'and the log has them where it was asked for');

# After a refusal the session goes on, and the next one is refused as well.
my ($in, $out, $err) = ('', '', '');
my $h = IPC::Run::start([ 'psql', '-X', '-A', '-t', '-d', $node->connstr('postgres') . ' user=mover replication=database' ], '<', \$in, '>', \$out, '2>', \$err, IPC::Run::timeout(60));
$in = "BASE_BACKUP;\nIDENTIFY_SYSTEM;\nSTART_REPLICATION 0/0;\nBASE_BACKUP;\nSELECT 'goes on';\n\\q\n";
$h->finish;
is(scalar(() = $err =~ /permission denied/g), 3, 'a session is refused as often as it asks');
like($out, qr/\|postgres\n.*goes on/s, 'and goes on in between');

# Names.
like(sends('mover', 'IDENTIFY_SYSTEM', options => " application_name='$_'"), qr/FATAL:.*invalid value for parameter "application_name"/, "$_ is a member's name")
  for ('db-orders.m2', 'DB-Orders.M2', 'm3', 'M3', 'db-orders');
like(sends('mover', "SET application_name = 'db-orders.m2'"), qr/invalid value for parameter "application_name"/, 'also later');
like(sends('mover', "SELECT set_config('application_name', 'm2', false)"), qr/invalid value/, 'and by a function');
like(as('mover', "SET application_name = 'm2'; SELECT 1"), qr/1/, 'elsewhere names are free');

# How many.
is(as('mover', "SELECT count(pg_create_logical_replication_slot('n' || i, 'pgoutput')) FROM generate_series(1, 3) i"), 3, 'as many slots as users have');
like(as('mover', "SELECT pg_create_logical_replication_slot('n4', 'pgoutput')"), qr/all 4 replication slots of users are in use/, 'and no more');
like(sends('mover', 'CREATE_REPLICATION_SLOT n4 LOGICAL pgoutput'), qr/all 4 replication slots of users are in use/, 'in any way');
is(as('mover', "SELECT count(pg_drop_replication_slot('n' || i)) FROM generate_series(1, 3) i"), 3, 'dropped');
my @sessions;
for my $n (1 .. 4)
{
	my ($input, $output) = ("SELECT 'up';\n", '');
	my $session = IPC::Run::start([ 'psql', '-X', '-A', '-t', '-d', $node->connstr('postgres') . ' user=mover replication=database' ], '<', \$input, '>', \$output, IPC::Run::timeout(60));
	$session->pump until $output =~ /up/;
	push @sessions, [ $session, \$input ];
}
like(sends('mover', 'IDENTIFY_SYSTEM'), qr/FATAL:.*all 4 WAL senders of users are in use/, 'as many WAL senders as users have');
like(as('rdsadmin', 'IDENTIFY_SYSTEM', replication => 'true'), qr/\|/, 'the platform has its own');
for (@sessions) { ${ $_->[1] } = "\\q\n"; $_->[0]->finish; }
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_replication"), 'they end');
like(sends('mover', 'IDENTIFY_SYSTEM'), qr/\|postgres/, 'and leave their places');

# Programs.
is(as('mover', "SELECT pg_drop_replication_slot('s')"), '', 'made room');
as('mover', 'CREATE PUBLICATION p FOR TABLE t');
command_ok([ 'pg_recvlogical', '-d', $node->connstr('postgres') . ' user=mover', '-S', 'r', '--create-slot', '-P', 'test_decoding' ], 'pg_recvlogical makes a slot');
as('mover', "INSERT INTO t VALUES (2, 'two')");
my $end = $node->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
my $received = $node->basedir . '/received';
command_ok([ 'pg_recvlogical', '-d', $node->connstr('postgres') . ' user=mover', '-S', 'r', '--start', '--no-loop', '--endpos', $end, '-f', $received ], 'and receives');
like(slurp_file($received), qr/INSERT: i\[integer\]:2/, 'what was written');
command_ok([ 'pg_recvlogical', '-d', $node->connstr('postgres') . ' user=mover', '-S', 'r', '--drop-slot' ], 'and drops the slot');
command_fails([ 'pg_basebackup', '-d', $node->connstr('postgres') . ' user=mover', '-D', $node->basedir . '/stolen', '-X', 'none' ], 'pg_basebackup copies nothing');
command_fails([ 'pg_receivewal', '-d', $node->connstr('postgres') . ' user=mover', '-D', $node->basedir, '--no-loop' ], 'pg_receivewal receives nothing');

my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init(extra => [ '-U', 'rdsadmin' ]);
$subscriber->append_conf('postgresql.conf', "wal_retrieve_retry_interval = 100ms\n");
$subscriber->start;
$subscriber->safe_psql('postgres', 'CREATE TABLE t (i int PRIMARY KEY, note text)');
my $conn = ($node->connstr('postgres') =~ s/'//gr) . ' user=mover';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION sub CONNECTION '$conn' PUBLICATION p");
ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 2 FROM t'), 'a subscriber outside copies a table');
as('mover', "INSERT INTO t VALUES (3, 'three')");
ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 3 FROM t'), 'and follows it');
is($node->safe_psql('postgres', "SELECT usename, sync_state FROM pg_stat_replication WHERE application_name = 'sub'"), 'mover|async', 'its WAL sender is the user, and confirms nothing');
$node->append_conf('postgresql.conf', "synchronous_standby_names = '*'\n");
$node->reload;
ok($node->poll_query_until('postgres', "SELECT current_setting('synchronous_standby_names') = '*'"), 'everybody confirms commits');
is($node->safe_psql('postgres', "SET synchronous_commit = local; SELECT sync_state FROM pg_stat_replication WHERE application_name = 'sub'"), 'async', 'but not a subscriber');
$node->append_conf('postgresql.conf', "synchronous_standby_names = ''\n");
$node->reload;
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION sub');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_replication_slots WHERE slot_type = 'logical'"), 0, 'the subscription takes its slots with it');

# Storage.
$node->safe_psql('postgres', "CREATE FUNCTION full_up(boolean) RETURNS void LANGUAGE c AS 'howdah', 'howdah_storage_full'");
as('mover', "SELECT pg_create_logical_replication_slot('s', 'test_decoding')");
$node->safe_psql('postgres', 'SELECT full_up(true)');
like(as('mover', "SELECT pg_create_logical_replication_slot('late', 'pgoutput')"), qr/storage is full/, 'no slot is made when storage is full');
like(sends('mover', 'CREATE_REPLICATION_SLOT late LOGICAL pgoutput'), qr/storage is full/, 'in no way');
unlike(as('mover', "SELECT data FROM pg_logical_slot_get_changes('s', NULL, NULL)"), qr/ERROR/, 'but read, which frees WAL');
is(as('mover', "SELECT pg_drop_replication_slot('s')"), '', 'or dropped');
$node->safe_psql('postgres', 'SELECT full_up(false)');

# A subscriber that never confirms does not hold up a shutdown.
as('mover', "SELECT pg_create_logical_replication_slot('stuck', 'pgoutput')");
($in, $out, $err) = ('', '', '');
my $stuck = IPC::Run::start([ 'pg_recvlogical', '-d', $node->connstr('postgres') . ' user=mover options=-cwal_sender_timeout=0', '-S', 'stuck', '--start', '--no-loop',
	'-o', 'proto_version=1', '-o', 'publication_names=p', '-f', '/dev/null' ], '<', \$in, '>', \$out, '2>', \$err, IPC::Run::timeout(180));
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'"), 'somebody receives');
$stuck->signal('STOP');
as('mover', "INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(10, 2000) i");
$log = -s $node->logfile;
$node->stop('fast');
like(slurp_file($node->logfile, $log), qr/FATAL:  terminating connection due to administrator command/, 'the server stops all the same, and ends its WAL sender');
$stuck->signal('CONT');
eval { $stuck->finish };
$node->start;
is(as('mover', "SELECT pg_drop_replication_slot('stuck')"), '', 'its slot is there, for later');

# Where it is turned off.
as('mover', "SELECT pg_create_logical_replication_slot('s', 'pgoutput')");
$node->append_conf('postgresql.conf', "howdah.logical_slots = off\n");
$node->reload;
ok($node->poll_query_until('postgres', "SELECT current_setting('howdah.logical_slots') = 'off'"), 'logical replication is turned off');
like(as('mover', "SELECT pg_create_logical_replication_slot('s2', 'pgoutput')"), qr/logical replication is off/, 'no slot is made any more');
like(sends('mover', 'IDENTIFY_SYSTEM'), qr/FATAL:.*logical replication is off/, 'nor a WAL sender begun');
is(as('mover', "SELECT pg_drop_replication_slot('s')"), '', 'what is there can be dropped');
is($node->safe_psql('postgres', "SELECT string_agg(slot_name, ' ' ORDER BY slot_name) FROM pg_replication_slots"), 'db_orders_m2 of_somebody', 'the platform has what it had');
$node->append_conf('postgresql.conf', "howdah.logical_slots = on\n");
as('mover', "SELECT pg_create_logical_replication_slot('in_the_way', 'pgoutput')");
$node->append_conf('postgresql.conf', "wal_level = replica\n");
$node->restart;
is($node->safe_psql('postgres', "SELECT string_agg(slot_name, ' ' ORDER BY slot_name) FROM pg_replication_slots"), 'db_orders_m2 of_somebody', 'a server starts with a lower wal_level, without logical slots');
ok(!-e $node->data_dir . '/pg_replslot/in_the_way.tmp', 'and nothing is left of them');
like(sends('mover', 'IDENTIFY_SYSTEM'), qr/FATAL:.*logical replication is off.*rds\.logical_replication/s, 'where logical replication is off there is none');
$subscriber->stop;
$node->stop;
done_testing();
