# Cancels while a commit waits for a synchronous standby: no client is told of a
# commit that the standby does not have, and before and after the wait a cancel
# does what it always does.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use IPC::Run;
use Time::HiRes qw(usleep);

$ENV{PGUSER} = 'rdsadmin';
$ENV{PGOPTIONS} = '-c search_path=public';

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1, extra => [ '-U', 'rdsadmin' ]);
$primary->append_conf('postgresql.conf', qq(
shared_preload_libraries = 'howdah'
max_prepared_transactions = 5
max_connections = 40
autovacuum = off
));
$primary->start;
$primary->safe_psql('postgres', slurp_file('bootstrap.sql'));
$primary->safe_psql('postgres', q(
CREATE TABLE t (what text);
CREATE TABLE slow (what text);
CREATE FUNCTION sleeps() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(180); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER sleeps AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION sleeps();
CREATE PROCEDURE p(seconds float) LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES ('procedure 1'); COMMIT;
  PERFORM pg_sleep(seconds);
  INSERT INTO t VALUES ('procedure 2'); COMMIT;
END $$;
CREATE ROLE master LOGIN CREATEROLE CREATEDB;
GRANT rds_superuser TO master WITH ADMIN OPTION;
GRANT ALL ON t TO master;
));
$primary->backup('backup');
# A member's name: others confirm nothing (005).
my $standby = PostgreSQL::Test::Cluster->new('primary.m2');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;
$primary->safe_psql('postgres', q(ALTER SYSTEM SET synchronous_standby_names = '"primary.m2"'));
$primary->reload;
$primary->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')") or die;

# A client of its own, which runs statements one after the other.
my $clients = 0;
sub client
{
	my ($sql, %options) = @_;
	my $self = { name => 'client' . ++$clients, out => '', err => '' };
	my $connstr = $primary->connstr('postgres') . " application_name=$self->{name} user=" . ($options{user} || 'rdsadmin');
	my $script = $primary->basedir . "/$self->{name}.sql";
	append_to_file($script, join('', map { /^\\/ ? "$_\n" : "$_;\n" } @$sql));
	$self->{process} = IPC::Run::start([ 'psql', '-X', '-A', '-t', '-d', $connstr, '-f', $script ],
		'<', \undef, '>', \$self->{out}, '2>', \$self->{err});
	return $self;
}

# One value that the server says of a client.
sub seen
{
	my ($client, $what) = @_;
	return $primary->safe_psql('postgres', "SELECT $what FROM pg_stat_activity WHERE application_name = '$client->{name}'");
}

sub until_waits
{
	my ($client, $event) = @_;
	$primary->poll_query_until('postgres',
		"SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = '$client->{name}' AND wait_event = '$event')")
	  or die "$client->{name} does not wait for $event: $client->{err}";
	return seen($client, 'pid');
}

# The signal of a cancel has come to a process, and is kept from it.
sub until_held
{
	my ($pid) = @_;
	for (1 .. 100 * $PostgreSQL::Test::Utils::timeout_default)
	{
		my $status = slurp_file("/proc/$pid/status");
		my ($pending, $blocked) = map { $status =~ /^$_:\s*[0-9a-f]*([0-9a-f])$/m ? hex($1) & 2 : 0 } qw(ShdPnd SigBlk);
		return 1 if $pending && $blocked;
		return 0 if $primary->safe_psql('postgres', "SELECT wait_event IS DISTINCT FROM 'SyncRep' FROM pg_stat_activity WHERE pid = $pid") eq 't';
		usleep(10_000);
	}
	return 0;
}

sub cancel { $primary->safe_psql('postgres', "SELECT pg_cancel_backend($_[0])") }

sub rows { $primary->safe_psql('postgres', "SELECT count(*) FROM t WHERE what LIKE '$_[0]'") }

sub finished
{
	my ($client) = @_;
	$client->{process}->finish;
	return $client->{out} =~ s/\s+\z//r;
}

# with the standby gone, a commit waits whatever cancels come, and nobody sees its row
$standby->stop;
my $insert = client([ "INSERT INTO t VALUES ('cancelled')", "SELECT 'next statement'" ]);
my $pid = until_waits($insert, 'SyncRep');
cancel($pid);
ok(until_held($pid), 'pg_cancel_backend is held');
is(rows('cancelled'), 0, 'nobody sees the row');

my $interrupt = client([ "INSERT INTO t VALUES ('interrupted')", "SELECT 'next statement'" ]);
my $interrupted = until_waits($interrupt, 'SyncRep');
$interrupt->{process}->signal('INT');
ok(until_held($interrupted), "the protocol's cancel request is held");
is(rows('interrupted'), 0, 'nobody sees the row');

my $block = client([ 'BEGIN', "INSERT INTO t VALUES ('block')", 'SAVEPOINT s', "INSERT INTO t VALUES ('block')", 'COMMIT', "SELECT 'next statement'" ]);
my $in_block = until_waits($block, 'SyncRep');
cancel($in_block) for 1 .. 3;
ok(until_held($in_block), 'cancels of COMMIT are held');

my $prepare = client([ 'BEGIN', "INSERT INTO t VALUES ('prepare')", "PREPARE TRANSACTION 'p'", "SELECT 'next statement'" ]);
my $preparing = until_waits($prepare, 'SyncRep');
cancel($preparing);
ok(until_held($preparing), 'a cancel of PREPARE TRANSACTION is held');

my $ddl = client([ 'CREATE DATABASE made', "SELECT 'next statement'" ]);
my $in_ddl = until_waits($ddl, 'SyncRep');
cancel($in_ddl);
ok(until_held($in_ddl), 'a cancel of CREATE DATABASE is held');

# statement_timeout goes on in a procedure, and is for what comes after the commit
my $timeout = client([ 'SET statement_timeout = 500', 'CALL p(180)', 'RESET statement_timeout', "SELECT 'next statement'" ]);
my $timed = until_waits($timeout, 'SyncRep');
ok(until_held($timed), 'statement_timeout in the commit of a procedure is held');
my $procedure = client([ 'CALL p(180)', "SELECT 'next statement'" ]);
my $in_procedure = until_waits($procedure, 'SyncRep');
cancel($in_procedure);
ok(until_held($in_procedure), 'a cancel in the commit of a procedure is held');
my $vacuum = client([ 'VACUUM ANALYZE', "SELECT 'next statement'" ]);
my $in_vacuum = until_waits($vacuum, 'SyncRep');
cancel($in_vacuum);
ok(until_held($in_vacuum), 'a cancel in a commit of VACUUM is held');

# several commits in the extended protocol, too
my $bench = $primary->basedir . '/insert.sql';
append_to_file($bench, "INSERT INTO t VALUES ('extended');\n");
my ($bench_out, $bench_err) = ('', '');
my $pgbench = IPC::Run::start([ 'pgbench', '-n', '-M', 'extended', '-t', '2', '-f', $bench,
		$primary->connstr('postgres') . ' application_name=pgbench' ], '>', \$bench_out, '2>', \$bench_err);
my $extended = until_waits({ name => 'pgbench', err => '' }, 'SyncRep');
cancel($extended);
ok(until_held($extended), 'a cancel in the extended protocol is held');

# readers and those who do not want to wait are not touched
is($primary->safe_psql('postgres', "SET synchronous_commit = local; INSERT INTO t VALUES ('local'); SELECT count(*) FROM t WHERE what = 'local'"),
	'1', 'synchronous_commit = local does not wait');

# terminating the session still works, and gives no answer
my $terminated = client([ "INSERT INTO t VALUES ('terminated')", "SELECT 'next statement'" ]);
my $ended = until_waits($terminated, 'SyncRep');
cancel($ended);
ok(until_held($ended), 'after a cancel');
$primary->safe_psql('postgres', "SELECT pg_terminate_backend($ended)");
is(finished($terminated), '', 'a session that is terminated gets no answer');
like($terminated->{err}, qr/terminating connection due to administrator command/, 'and is told why');

# the standby is back: everyone gets the answer, and no next statement is hit
$standby->start;
for ([ $insert, 'INSERT' ], [ $block, 'COMMIT' ], [ $prepare, 'PREPARE TRANSACTION' ], [ $ddl, 'CREATE DATABASE' ])
{
	my ($client, $what) = @$_;
	is(finished($client) =~ s/.*\n//sr, 'next statement', "$what: the next statement is not hit");
	is($client->{err}, '', "$what: no warning and no error");
}
# psql stops with its script here, and answers what it was told before.
is(finished($interrupt), 'INSERT 0 1', 'INSERT, interrupted: the answer');
unlike($interrupt->{err}, qr/WARNING|ERROR/, 'INSERT, interrupted: no warning and no error');
is(finished($insert), "INSERT 0 1\nnext statement", 'the answer');
ok($pgbench->finish, "pgbench's transactions are done") or diag $bench_err;
is(rows($_->[0]), $_->[1], "rows: $_->[0]") for ([ 'cancelled', 1 ], [ 'interrupted', 1 ], [ 'block', 2 ], [ 'extended', 2 ]);
like($timeout->{err} . finished($timeout) . $timeout->{err}, qr/canceling statement due to statement timeout/, 'statement_timeout hits the rest of the procedure');
like(finished($timeout), qr/next statement/, 'and not the next statement');
finished($procedure);
like($procedure->{err}, qr/canceling statement due to user request/, 'a cancel hits the rest of the procedure');
like($procedure->{out}, qr/next statement/, 'and not the next statement');
is(rows('procedure 1'), 2, 'whose first commits are there');
is(rows('procedure 2'), 0, 'and the second ones are not');
finished($vacuum);
like($vacuum->{err}, qr/canceling statement due to user request/, 'a cancel hits the rest of VACUUM');
unlike($vacuum->{err}, qr/WARNING/, 'and does not end its wait');
like($vacuum->{out}, qr/next statement/, 'and not the next statement');

# what comes before the commit can be cancelled, standby or not
$standby->stop;
my $deferred = client([ "INSERT INTO slow VALUES ('x')", "SELECT 'next statement'" ]);
cancel(until_waits($deferred, 'PgSleep'));
like(finished($deferred), qr/^next statement$/, 'a deferred trigger can be cancelled');
like($deferred->{err}, qr/canceling statement due to user request/, 'with an error');
my $deferred_block = client([ 'BEGIN', "INSERT INTO slow VALUES ('x')", 'COMMIT', "SELECT 'next statement'" ]);
cancel(until_waits($deferred_block, 'PgSleep'));
finished($deferred_block);
like($deferred_block->{err}, qr/canceling statement due to user request/, 'also at COMMIT');
my $deferred_prepare = client([ 'BEGIN', "INSERT INTO slow VALUES ('x')", "PREPARE TRANSACTION 'q'" ]);
cancel(until_waits($deferred_prepare, 'PgSleep'));
finished($deferred_prepare);
like($deferred_prepare->{err}, qr/canceling statement due to user request/, 'also at PREPARE TRANSACTION');
is($primary->safe_psql('postgres', 'SELECT count(*) FROM slow'), '0', 'and nothing is left of it');

# COMMIT PREPARED, ROLLBACK PREPARED
my $commit_prepared = client([ "COMMIT PREPARED 'p'", "SELECT 'next statement'" ]);
my $committing = until_waits($commit_prepared, 'SyncRep');
cancel($committing);
ok(until_held($committing), 'a cancel of COMMIT PREPARED is held');
is(rows('prepare'), 0, 'nobody sees the row');
$standby->start;
is(finished($commit_prepared), "COMMIT PREPARED\nnext statement", 'COMMIT PREPARED is answered');
is($commit_prepared->{err}, '', 'without a warning');
is(rows('prepare'), 1, 'the row is there');
$primary->safe_psql('postgres', "BEGIN; INSERT INTO t VALUES ('r'); PREPARE TRANSACTION 'r'");
$standby->stop;
my $rollback_prepared = client([ "ROLLBACK PREPARED 'r'", "ROLLBACK PREPARED 'r'", "SELECT 'next statement'" ]);
my $rolling = until_waits($rollback_prepared, 'SyncRep');
cancel($rolling);
ok(until_held($rolling), 'a cancel of ROLLBACK PREPARED is held');
$standby->start;
like(finished($rollback_prepared), qr/^ROLLBACK PREPARED\nnext statement$/, 'ROLLBACK PREPARED is answered');
like($rollback_prepared->{err}, qr/"r" does not exist/, 'an error of one that is not there');
unlike($rollback_prepared->{err}, qr/WARNING|canceling/, 'is the only one');
my $alive = client([ "COMMIT PREPARED 'none'", 'SELECT pg_sleep(180)', "SELECT 'next statement'" ]);
cancel(until_waits($alive, 'PgSleep'));
finished($alive);
like($alive->{err}, qr/canceling statement due to user request/, 'after a COMMIT PREPARED that failed, cancels work');

# errors between the last cancel and the commit leave nothing behind
my $serializable = client([
	'BEGIN ISOLATION LEVEL SERIALIZABLE', "INSERT INTO t SELECT 'skew' FROM t WHERE what = 'a' HAVING count(*) = 0",
	"\\! psql -X -q -d '" . $primary->connstr('postgres') . "' -c \"BEGIN ISOLATION LEVEL SERIALIZABLE; INSERT INTO t SELECT 'a' FROM t WHERE what = 'skew' HAVING count(*) = 0; COMMIT\"",
	'COMMIT', 'SELECT pg_sleep(180)', "SELECT 'next statement'" ]);
cancel(until_waits($serializable, 'PgSleep'));
finished($serializable);
like($serializable->{err}, qr/could not serialize access.*canceling statement due to user request/s, 'cancels work after a commit that failed');

# the setting is not for users
my ($code, $out, $err) = $primary->psql('postgres', 'SET howdah.commit_ignores_cancel = off', extra_params => [ '-U', 'master' ]);
like($err, qr/permission denied to set parameter/, 'master users do not turn it off');
$standby->stop;
my $unguarded = client([ 'SET howdah.commit_ignores_cancel = off', "INSERT INTO t VALUES ('off')", "SELECT 'next statement'" ]);
cancel(until_waits($unguarded, 'SyncRep'));
like(finished($unguarded), qr/INSERT 0 1\nnext statement/, 'without it, a cancel ends the wait');
like($unguarded->{err}, qr/WARNING:  canceling wait for synchronous replication/, 'with a warning');

# stopping the server: nobody who waits gets an answer
my @waiting = map { client([ "INSERT INTO t VALUES ('stopped')", "SELECT 'next statement'" ]) } 1 .. 2;
cancel(until_waits($_, 'SyncRep')) for @waiting;
$primary->stop('fast');
is(finished($_), '', 'a fast shutdown gives no answer') for @waiting;
$primary->start;
@waiting = map { client([ "INSERT INTO t VALUES ('stopped')", "SELECT 'next statement'" ]) } 1 .. 2;
cancel(until_waits($_, 'SyncRep')) for @waiting;
$primary->stop('immediate');
is(finished($_), '', 'an immediate shutdown gives no answer') for @waiting;

done_testing();
