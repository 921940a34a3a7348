# An upstream that means harm: it speaks the protocol, and says what it wants.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Ccm;
use IO::Socket::INET;
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

sub message { return $_[0] . pack('N', length($_[1]) + 4) . $_[1] }
my $ready = message('Z', 'I');

# Let anybody in, and say the same to every question.
sub converse
{
	my ($client, $greeting, $answer) = @_;
	my ($length, $start, $sent);
	do {
		read($client, $length, 4) == 4 or return;
		read($client, $start, unpack('N', $length) - 4) or return;
		# neither TLS nor GSSAPI
		print $client 'N' if unpack('N', $start) >= 80877103;
	} while (unpack('N', $start) >= 80877103);
	print $client message('R', pack('N', 0)) . $greeting . $ready;
	for (my $asked = ''; sysread($client, $sent, 65536);)
	{
		$asked .= $sent;
		next unless $asked =~ /S\0\0\0\x04$/;
		$asked = '';
		print $client $answer;
	}
}

# A server in a process of its own; returns that, and the port
my @servers;
sub hostile
{
	my ($greeting, $answer) = @_;
	my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5, ReuseAddr => 1) or die "listen: $!";
	my $pid = fork;
	die unless defined $pid;
	if ($pid == 0)
	{
		$SIG{PIPE} = $SIG{CHLD} = 'IGNORE';
		while (my $client = $server->accept)
		{
			next if fork;
			$client->autoflush(1);
			converse($client, $greeting, $answer);
			POSIX::_exit(0);
		}
		POSIX::_exit(0);
	}
	push @servers, $pid;
	return $server->sockport;
}
END { local $?; kill 'KILL', @servers; }

sub notice { return message('N', "SWARNING\0VWARNING\0C01000\0M$_[0]\0\0") }
sub failure { return message('E', "SERROR\0VERROR\0C$_[0]\0M$_[1]\0\0") . $ready }

my $primary = primary('primary');
my $standby = standby($primary, 'standby');
my $good = $standby->safe_psql('postgres', 'SHOW ccm.upstream_conninfo');
ok(wait_scans($standby, 1), 'all is well');

sub ask_at
{
	my ($port) = @_;
	my $at = reader($standby, 'coalesce(last_error_at, now())');
	set_on($standby, 'ccm.upstream_conninfo' => "host=127.0.0.1 port=$port user=x");
	return $at;
}

# a copy that never ends
for my $type ('H', 'G', 'W')
{
	my $at = ask_at(hostile('', message('1', '') . message('2', '') . message($type, "\0\0\0")));
	ok(wait_reader($standby, "error = 'malformed' AND last_error_at > '$at'"), "an answer of type $type is malformed");
}
is(logged($standby, 'LOG:  ccm: malformed:'), 1, 'one line in the log');

# statements that end again and again
my $at = ask_at(hostile('', (message('1', '') . message('2', '') . message('C', "SELECT 1\0")) x 1000 . $ready));
ok(wait_reader($standby, "error = 'malformed' AND last_error_at > '$at'"), 'no rows at all are malformed');

ask_at(hostile('', message('1', '') . message('2', '') . message('H', "\0\0\0")));
$standby->stop('fast');
$standby->start;
ok(1, 'the server stops and starts');

# what it says besides
$at = ask_at(hostile(notice('flood') x 100, failure('CM006', 'no')));
ok(wait_reader($standby, "error = 'disabled upstream' AND last_error_at > '$at'"), 'notices at the login');
is(logged($standby, 'flood'), 0, 'are not for the log');

# words in no encoding, with a colour, and longer than what is kept
$at = ask_at(hostile('', failure('CM006', "\e[31mred\xff" . "\xc3\xa9" x 300)));
ok(wait_reader($standby, "error = 'disabled upstream' AND last_error_at > '$at'"), 'strange words');
is(reader($standby, "last_error ~ '^[ -~]+\$' AND last_error ~ 'red' AND length(last_error) > 200"), 't', 'are made plain');
is(logged($standby, "\e"), 0, 'in the log, too');
# END OF TESTS
$standby->stop;
$primary->stop;
done_testing();
