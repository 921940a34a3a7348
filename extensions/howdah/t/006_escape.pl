# The suite of escapes: each attempt of escape/*.sql ends as it says, and leaves rights,
# settings, files and the platform's sessions as they were. How the files are written is
# told in escape/README.md. ESCAPE=REGEX makes the attempts of some names alone.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Escape;
use Test::More;

my $suite = Escape->new;

# Somebody who does get through is seen: else all of the rest would say nothing.
my %harm = (
	'a superuser more' => [ 'new: role .*master', 'ALTER ROLE master SUPERUSER', 'ALTER ROLE master NOSUPERUSER' ],
	'a new superuser' => [ 'new: role .*"other"', 'CREATE ROLE other SUPERUSER', 'DROP ROLE other' ],
	'a member' => [ 'new: member pg_read_server_files of plain', 'GRANT pg_read_server_files TO plain', 'REVOKE pg_read_server_files FROM plain' ],
	'a password' => [ 'new: role .*rdsadmin', q{ALTER ROLE rdsadmin PASSWORD 'known'}, 'ALTER ROLE rdsadmin PASSWORD NULL' ],
	'a setting' => [ 'new: setting ', 'ALTER ROLE rdsmon SET work_mem = 64', 'ALTER ROLE rdsmon RESET work_mem' ],
	'a parameter' => [ 'new: parameter ', 'GRANT SET ON PARAMETER dynamic_library_path TO master', 'REVOKE SET ON PARAMETER dynamic_library_path FROM master' ],
	'the configuration' => [ 'new: file postgresql.auto.conf', 'ALTER SYSTEM SET work_mem = 64', 'ALTER SYSTEM RESET ALL' ],
	'a file' => [ 'a file: .*/written', "COPY (SELECT 1) TO '$suite->{dir}/written'", "COPY (SELECT 1) TO PROGRAM 'rm $suite->{dir}/written'" ],
	"a superuser's function" => [ q{a superuser's function: }, 'CREATE FUNCTION public.f() RETURNS int LANGUAGE sql SECURITY DEFINER AS $$ SELECT 1 $$', 'DROP FUNCTION public.f' ],
);
for my $name (sort keys %harm)
{
	my ($expected, $sql, $undo) = @{ $harm{$name} };
	my @parts = ({ as => 'rdsadmin', database => 'target', sql => $sql });
	my @wrong = $suite->attempt({ parts => \@parts, sees => [], not => [] });
	ok((grep { /$expected/ } @wrong), "$name is seen") or diag(@wrong);
	$suite->as('rdsadmin', 'target', $undo);
}
my $silent = { parts => [ { as => 'plain', database => 'target', sql => 'SELECT 1' } ], sees => ['2'], not => ['1'] };
is_deeply([ $suite->attempt($silent) ], [ 'not seen: 2', 'seen: 1', 'it saw: 1' ], 'what is said otherwise is seen');
my $log = -s $suite->{node}->logfile;
$suite->psql('host=' . $suite->{node}->host . ' port=' . $suite->{node}->port . ' dbname=rdsadmin user=rdsadmin', 'SELECT 1');
is(scalar($suite->foreign_logins($log)), 1, 'a session of the platform is seen');

my %made;
for my $file (glob('escape/*.sql'))
{
	my ($family) = $file =~ m{([^/]+)\.sql$};
	for my $attempt ($suite->read_file($file))
	{
		next if $ENV{ESCAPE} && "$family: $attempt->{name}" !~ /$ENV{ESCAPE}/;
		my @wrong = $suite->attempt($attempt);
		is(join("\n", @wrong), '', "$family: $attempt->{name}");
		$made{$family}++;
	}
}
my $all = 0;
$all += $_ for values %made;
note("$all attempts: " . join(', ', map { "$_ $made{$_}" } sort keys %made));
cmp_ok($all, '>=', 150, 'there are as many attempts as ever') unless $ENV{ESCAPE};
$suite->{node}->stop;

done_testing();
