# Odd values of all types, and calls of functions with them.
package Odd;
use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Utils;

# Texts that are tried as values of every type; those that a type takes are its values.
my @texts = (
	'', '0', '1', '-1', 'a', '*', ' ', '%s%n', "'", '{}', '{NULL}', '{1,2}', '{1,NULL}', '{a}', '[]', '[1]', '[1,2]', '[NaN]', '()', '(1,2)', '(,)', '(1)', '(1,2),(3,4)',
	'2147483647', '-2147483648', '9223372036854775807', '-9223372036854775808', '4294967295', '32767', '1e308', '-1e308', '1e-320', '1e-5', 'NaN', 'Infinity', '-Infinity', '1.5', '1e1000',
	'epoch', 'infinity', '1970-01-01', '4713-01-01 BC', '294276-12-31 23:59:59', '00:00:00', '1 year', '-178000000 years',
	'true', '\x', '\x00', '\xff00ff00ff00ff00ff00', '1010', 'null', '"a"', '{"a":1}', '{"a":[{}]}', '<a/>', 'a & b', "'a':1A", 'a=>b', 'a=>NULL', 'a.b.c', '1..2', '1 .. 2', '< 2', '*.*', 'a|b', '!a',
	'10.0.0.0/8', '10.0.0.1-10.0.0.2', '::/0', '::1', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '08:00:2b:01:02:03', '123[4-5]', '1.2.3', '1.2.3-a', '{1,2}/3', '{1:1,3:2}/9',
	'978-0-393-04002-9', '0-393-04002-X', '1436-4522', '9780393040029', '12345678-1234-1234-1234-123456789012', 'pg_class', 'pg_catalog.now()', 'now()', 'pg_catalog', '0/0', 'FFFFFFFF/FFFFFFFF', '[1,2)', 'empty', '(,)',
	'POINT EMPTY', 'POINT(1 2)', 'POINT ZM(1 2 3 4)', 'POINT(NaN NaN)', 'POINT(1e308 -1e308)', 'POINT(Infinity 0)', 'SRID=4326;POINT(1 2)', 'SRID=999999;POINT(1 2)', 'LINESTRING EMPTY', 'LINESTRING(0 0,0 0)', 'LINESTRING(0 0,1 1,1 0)',
	'LINESTRING Z(0 0 1,1 1 NaN)', 'LINESTRING M(0 0 1,1 1 2)', 'LINESTRING(0 0,1e300 1e300)', 'POLYGON EMPTY', 'POLYGON((0 0,0 1,1 1,0 0))', 'POLYGON((0 0,1 1,0 1,1 0,0 0))', 'POLYGON((0 0,0 0,0 0,0 0))', 'MULTIPOINT(1 1,2 2)', 'MULTIPOINT EMPTY',
	'MULTILINESTRING((0 0,1 1),(2 2,3 3))', 'MULTIPOLYGON(((0 0,0 1,1 1,0 0)),EMPTY)', 'GEOMETRYCOLLECTION EMPTY', 'GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1),GEOMETRYCOLLECTION EMPTY)', 'CIRCULARSTRING(0 0,1 1,2 0)', 'CIRCULARSTRING EMPTY',
	'COMPOUNDCURVE((0 0,1 1))', 'CURVEPOLYGON(CIRCULARSTRING(0 0,1 1,2 0,1 -1,0 0))', 'MULTICURVE EMPTY', 'MULTISURFACE EMPTY', 'POLYHEDRALSURFACE EMPTY', 'POLYHEDRALSURFACE Z(((0 0 0,0 0 1,0 1 1,0 0 0)))', 'TIN(((0 0,0 1,1 1,0 0)))', 'TRIANGLE((0 0,0 1,1 1,0 0))', 'TRIANGLE EMPTY',
	'BOX(0 0,1 1)', 'BOX(NaN NaN,NaN NaN)', 'BOX3D(0 0 0,1 1 1)', 'SPHEROID["WGS 84",6378137,298.257223563]', '{"type":"Point","coordinates":[1,2]}', '0101000000000000000000F03F0000000000000040', '00', '01', '0107000000FFFFFFFF',
	'0100000000000000000000F03F000000000000F0BF00000000000000000000000000000000000000000000000000000000000000000000000001000100', 'x' x 300, 'x' x 70000, '((' x 5000, "\x01", "\xc3\xa9");

# Queries, for functions that run one: of a graph, and of one that is none.
my $graph = 'SELECT 1::int8 AS id, 1::int8 AS source, 2::int8 AS target, %1$s::float8 AS cost, %1$s::float8 AS reverse_cost, 0::float8 AS x, 0::float8 AS y, 0::float8 AS x1, 0::float8 AS y1, %1$s::float8 AS x2, 1::float8 AS y2,'
  . ' 1::int8 AS start_vid, 2::int8 AS end_vid, %1$s::float8 AS agg_cost, 1::int8 AS capacity, 1::int8 AS reverse_capacity, 1::int8 AS pid, 1::int8 AS edge_id, 0.5::float8 AS fraction, ARRAY[1,1]::int8[] AS path';
push @texts, map { sprintf($graph, $_) } ('1', '-1', "'NaN'", "'Infinity'", '1e308', 'NULL');
push @texts, sprintf($graph, '1') . ' WHERE false', sprintf($graph, '1') =~ s/2::int8 AS target/1::int8 AS target/r, sprintf($graph, '1') . ' FROM generate_series(1, 100)', 'SELECT 1', 'SELECT 1, 2, 3', 'SELECT NULL::text, NULL::text, NULL::text', 'SELECT';

# Values that no text stands for.
my %expressions = (
	raster => [ 'ST_AddBand(ST_MakeEmptyRaster(3, 2, 0, 0, 1), 1, \'8BUI\'::text, 1, 0)', 'ST_AddBand(ST_MakeEmptyRaster(2, 2, 1e300, -1e300, 0), 1, \'64BF\'::text, \'NaN\', \'NaN\')', 'ST_MakeEmptyRaster(0, 0, 0, 0, 1)', 'ST_MakeEmptyRaster(65535, 65535, 0, 0, 1e-300)' ],
	hll => [ 'hll_empty()', 'hll_add(hll_empty(), hll_hash_integer(1))', 'hll_empty(4, 1, 0, 1)' ],
	text => [ "repeat('ab', 500000)", "repeat(chr(233), 1000)" ],
	bytea => [ "decode(repeat('00', 100000), 'hex')", "decode(repeat('ff', 1000), 'hex')" ],
	record => [ "ROW(1, 'a'::text)", 'ROW()', 'ROW(NULL::int)' ],
	vector => [ "array_fill(1::real, ARRAY[16000])::vector" ],
	internal => [], trigger => [], event_trigger => [], language_handler => [], fdw_handler => [], index_am_handler => [], tsm_handler => []);
# What stands for a type that means any.
my %any = (anyelement => 'integer', anyarray => 'integer[]', anynonarray => 'text', anycompatible => 'text', anycompatiblearray => 'text[]', any => 'text', '"any"' => 'text', anyenum => undef, anyrange => 'int4range', anymultirange => undef);

# What a session begins with, so that calls get further.
my %first = (orafce => "SELECT dbms_sql.open_cursor();\nSELECT dbms_sql.parse(0, 'SELECT 1 AS a, :b AS b');\n");

sub new
{
	my ($class, $suite) = @_;
	my $self = bless { suite => $suite, values => {}, dir => PostgreSQL::Test::Utils::tempdir() }, $class;
	my $node = $suite->{node};
	# After the end of a process the server starts again, and a call takes no more memory than this.
	$node->append_conf('postgresql.conf', "restart_after_crash = on\nlogging_collector = off\nlog_min_messages = fatal\nlog_min_error_statement = fatal");
	$node->reload;
	system('prlimit', '--pid', $node->{_pid}, '--as=6442450944', '--core=0') == 0 or die 'prlimit';
	return $self;
}

# Create an extension in a new database, and return its C functions, each as a hash.
sub create
{
	my ($self, $name) = @_;
	my $suite = $self->{suite};
	$suite->fresh;
	$self->{values} = {};
	$self->{first} = $first{$name} // '';
	# The schema public is anybody's, as it was before 15, so that the calls need no schema.
	$suite->admin('target', 'GRANT CREATE ON SCHEMA public TO master');
	$suite->as('master', 'target', "CREATE EXTENSION \"$name\" CASCADE");
	my $rows = $suite->admin('target', <<~"END");
		SET search_path = public;
		SELECT concat_ws('|', quote_ident(nspname), quote_ident(proname), (SELECT string_agg(format_type(a, NULL), ';' ORDER BY n) FROM unnest(proargtypes) WITH ORDINALITY AS t (a, n)))
		FROM pg_proc p JOIN pg_namespace s ON s.oid = pronamespace JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
		JOIN pg_extension e ON e.oid = d.refobjid
		WHERE extname = '$name' AND prokind = 'f' AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'c') AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
			AND 'internal'::regtype <> ALL (proargtypes)
		ORDER BY 1
		END
	return map { my ($schema, $function, $types) = split(/\|/); { name => "$schema.$function", types => [ split(/;/, $types // '') ] } } split(/\n/, $rows);
}

# Values of a type, as SQL. NULL is one of them.
sub values
{
	my ($self, $type) = @_;
	return $self->{values}{$type} //= [ $self->find_values($type) ];
}

sub find_values
{
	my ($self, $type) = @_;
	return $any{$type} ? @{ $self->values($any{$type}) } : 'NULL' if exists $any{$type};
	return map { "'" . s/'/''/gr . "'::cstring" } @texts if $type eq 'cstring';
	my @values = ("NULL::$type", map { "($_)::$type" } @{ $expressions{$type} // [] });
	return @values if $expressions{$type} && $type =~ /^(internal|record|.*_handler)$/;
	if ($type =~ /^(.*)\[\]$/)
	{
		my @elements = @{ $self->values($1) };
		my @some = map { $elements[ rand @elements ] } 1 .. 6;
		push @values, "'{}'::$type", (map { "ARRAY[$_]::$type" } @some), 'ARRAY[' . join(',', @some) . "]::$type", "ARRAY[[$some[0],$some[1]],[$some[2],$some[3]]]::$type", "array_fill($some[5], ARRAY[3000])::$type", "array_fill($some[4], ARRAY[2], ARRAY[-5])::$type";
		return @values;
	}
	my $sql = "\\o /dev/null\n";
	for my $i (0 .. $#texts)
	{
		$sql .= "SELECT '" . $texts[$i] =~ s/'/''/gr . "'::$type IS NULL;\n\\if :ERROR\n\\else\n\\echo #$i\n\\endif\n";
	}
	my ($output) = $self->run($sql);
	push @values, map { "'" . $texts[$_] =~ s/'/''/gr . "'::$type" } $output =~ /^#(\d+)$/mg;
	return @values;
}

# Make calls of each function. Returns how many, and what ended the server: two calls of a
# function at most, as each takes the server a while.
sub call
{
	my ($self, $calls, @functions) = @_;
	my @left;
	for my $function (@functions)
	{
		my @values = map { $self->values($_) } @{ $function->{types} };
		my %seen;
		push @left, map { { function => $function, sql => $_ } } grep { !$seen{$_}++ } map { draw($function, $_, @values) } 1 .. (@values ? $calls + @values : 1);
	}
	my ($made, @ended) = (0);
	while (@left)
	{
		my ($output, $end) = $self->run("\\o /dev/null\nSET statement_timeout = '2s';\n$self->{first}" . join('', map { "\\echo #$_\n$left[$_]{sql};\n" } 0 .. $#left));
		my ($last) = $end ? $output =~ /.*^#(\d+)$/ms : $#left;
		my $call = $left[ $last // die 'the server is away' ];
		splice(@left, 0, $last + 1);
		$made += $last + 1;
		next unless $end;
		push @ended, "$end: $call->{sql}" =~ s/^(.{600}).*/$1…/sr;
		print "# $ended[-1]\n";
		@left = grep { $_->{function} != $call->{function} } @left if ++$call->{function}{ended} > 1;
	}
	return ($made, @ended);
}

# A call: first all NULL, then each argument NULL, then the first few values for all of them at
# once (an empty text, 0, 1, -1), then any values.
sub draw
{
	my ($function, $n, @values) = @_;
	my @arguments = map { $_->[ rand @$_ ] } @values;
	my $alone = $n - 2;
	my $same = $alone - @values + 1;
	if ($n == 1) { @arguments = map { $_->[0] } @values; }
	elsif ($alone < @values) { $arguments[$alone] = $values[$alone][0]; }
	elsif ($same <= 6) { @arguments = map { $_->[ $same % @$_ ] } @values; }
	return "SELECT $function->{name}(" . join(', ', @arguments) . ')';
}

# Wait for the server after the end of a process.
sub wait_until_up
{
	my ($self) = @_;
	for (1 .. 600)
	{
		my $output = '';
		my $run = eval { IPC::Run::run([ 'psql', '-X', '-A', '-t', '-c', 'SELECT 1', '-d', $self->{suite}->connection('master', 'target') ], '<', '/dev/null', '>', \$output, '2>', '/dev/null', IPC::Run::timeout(60)) };
		return if $run && $output =~ /^1$/m;
		select(undef, undef, undef, 0.2);
	}
	die 'the server does not start again';
}

# Run a script as the master user. Returns what it printed, and how the server ended, if it did.
sub run
{
	my ($self, $sql) = @_;
	my $suite = $self->{suite};
	my $output = '';
	my $file = "$self->{dir}/calls.sql";
	unlink($file);
	append_to_file($file, $sql);
	my $harness = IPC::Run::start([ 'stdbuf', '-oL', 'psql', '-X', '-q', '-A', '-t', '-f', $file, '-d', $suite->connection('master', 'target') ], '<', '/dev/null', '>', \$output, '2>', '/dev/null', my $timer = IPC::Run::timer(25));
	my ($heard, $stuck) = (0, 0);
	while ($harness->pumpable)
	{
		$harness->pump;
		if (length($output) != $heard) { $heard = length($output); $timer->start(25); }
		elsif ($timer->is_expired)
		{
			$stuck = 1;
			my $pid = $suite->admin('rdsadmin', q{SELECT pid FROM pg_stat_activity WHERE usename = 'master' LIMIT 1});
			kill 'KILL', $pid if $pid;
			$timer->start(25);
		}
	}
	$harness->finish;
	my $status = $harness->full_result(0) >> 8;
	return ($output) if $status != 2;
	$self->wait_until_up;
	return ($output, $stuck ? 'cannot be cancelled' : 'ended the server');
}

1;
