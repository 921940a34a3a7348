# aws_s3 with an agent that takes all rows and gives back what it took: how exports and
# imports stand in a transaction, and what the log says of secrets.
use strict;
use warnings;
use IO::Socket::UNIX;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $socket = PostgreSQL::Test::Utils::tempdir_short() . '/agent';
my $agent = start_agent($socket);
my $node = PostgreSQL::Test::Cluster->new('s3');
$node->init(extra => [ '-U', 'rdsadmin', '--auth=trust' ]);
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'howdah'\nhowdah.agent_socket = '$socket'\nlog_statement = none\n");
$node->start;
as('rdsadmin', slurp_file('bootstrap.sql'));
as('rdsadmin', 'CREATE ROLE master LOGIN CREATEROLE CREATEDB; GRANT rds_superuser TO master WITH ADMIN OPTION;'
	  . 'ALTER DATABASE postgres OWNER TO master');
as('master', 'CREATE EXTENSION aws_s3 CASCADE; CREATE TABLE counted (n int); INSERT INTO counted VALUES (0)');

# Each export is a command of its own.
my $export = q{aws_s3.query_export_to_s3('UPDATE counted SET n = n + 1 RETURNING n', 'b', 'f')};
as('master', "SELECT $export, $export");
is(as('master', 'TABLE counted'), '2', 'two exports of one statement both write');
is(as('master', q{WITH w AS MATERIALIZED (SELECT aws_s3.query_export_to_s3('INSERT INTO counted VALUES (7) RETURNING n', 'b', 'f'))
	SELECT aws_s3.query_export_to_s3('SELECT * FROM counted', 'b', 'f') FROM w}), '(2,1,4)', 'an export sees what one before it wrote');
as('master', "BEGIN; SELECT $export; ROLLBACK");
is(as('master', 'SELECT min(n) FROM counted'), '2', 'what it wrote is rolled back');

# Secrets that are given as arguments stay out of the log.
my $from = -s $node->logfile;
like(as('master', q{SELECT aws_s3.table_import_from_s3('counted', '', '', 'b', 'f', 'r', 'AKIAKNOWN', 'the-secret')}),
	qr/credentials are not supported/, 'credentials are refused');
like(as('master', q{DO $$ BEGIN PERFORM aws_s3.table_import_from_s3('counted', '', '', aws_commons.create_s3_uri('b', 'f', 'r'),}
	  . q{ aws_commons.create_aws_credentials('AKIAKNOWN', 'the-secret', '')); END $$}),
	qr/credentials are not supported/, 'in whichever form');
my $log = substr(slurp_file($node->logfile), $from);
like($log, qr/credentials are not supported/, 'the log says so');
unlike($log, qr/AKIAKNOWN|the-secret/, 'and not the secrets');

$node->stop;
done_testing();

END
{
	my $status = $?;
	kill('TERM', $agent) && waitpid($agent, 0) if $agent;
	$? = $status;
}

# What somebody sees who runs this.
sub as
{
	my ($user, $sql) = @_;
	my ($stdout, $stderr);
	$node->psql('postgres', $sql, stdout => \$stdout, stderr => \$stderr, extra_params => [ '-U', $user ]);
	return $stdout . $stderr;
}

# An agent as in src/agent.c: it counts what is exported, and sends nothing for an import.
sub start_agent
{
	my ($path) = @_;
	my $listener = IO::Socket::UNIX->new(Local => $path, Listen => 5) or die "no socket $path: $!";
	my $pid = fork();
	die "cannot fork: $!" unless defined $pid;
	return $pid if $pid;
	$SIG{TERM} = 'DEFAULT';
	while (my $conn = $listener->accept)
	{
		my $bytes = 0;
		while (1)
		{
			last unless (read($conn, my $head, 5) // 0) == 5;
			my ($kind, $length) = unpack('aN', $head);
			read($conn, my $content, $length) if $length;
			$bytes += $length if $kind eq 'd';
			next unless $kind eq 'f' || $kind eq 'I';
			print $conn pack('aN', 'f', length($bytes)) . $bytes;
			$conn->flush;
			last;
		}
	}
	require POSIX;
	POSIX::_exit(0);
}
