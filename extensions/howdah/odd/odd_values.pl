# Calls every C function of every extension that users may create, as the master user, with
# values that its author may not have thought of. A call that ends the server, or that cannot
# be cancelled, fails the test, which says the call. make test-extensions runs it.
#
#   ODD_SEED=7       draws the same calls again
#   ODD_CALLS=100    calls of each function (40 by default)
#   ODD=REGEX        extensions of these names alone
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../t", $FindBin::RealBin;
use Escape;
use Odd;
use Test::More;

# What is left, and is told in the guide: calls that go on for longer than a cancel should take, as
# a loop in PL/Perl does, and a function that is too useful to be withheld for polygons without
# an area.
my $known = qr/^cannot be cancelled: SELECT (public\.(st_aslatlontext|word_similarity\w*|_pgr_contraction)|dbms_pipe\.create_pipe|oracle\.[rl]pad)\(|^ended the server: SELECT public\.st_concavehull\(/;

my $seed = $ENV{ODD_SEED} // time % 100000;
my $calls = $ENV{ODD_CALLS} // 40;
print "# ODD_SEED=$seed ODD_CALLS=$calls draws the same calls again\n";

my $suite = Escape->new;
my $odd = Odd->new($suite);
my $all = 0;
for my $extension (@{ $suite->{extensions} })
{
	my $name = $extension->{name};
	next if $ENV{ODD} && $name !~ /$ENV{ODD}/;
	srand($seed + unpack('%32C*', $name));
	my @functions = $odd->create($name);
	next unless @functions;
	my ($made, @ended) = $odd->call($calls, @functions);
	$all += $made;
	@ended = grep { !/$known/ } @ended;
	is(join("\n", @ended), '', "$name: $made calls of " . @functions . ' functions');
}
cmp_ok($all, '>', 0, "$all calls");
$suite->{node}->stop;
done_testing();
