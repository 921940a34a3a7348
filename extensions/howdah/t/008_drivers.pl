# What AWS's drivers ask a cluster's servers, in the words in which they ask, on a
# primary, on a standby, and on that standby once it was promoted.
use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{PGUSER} = 'rdsadmin';

# A node's name is what it receives WAL as.
my $primary = PostgreSQL::Test::Cluster->new('db-ONE.m1');
$primary->init(allows_streaming => 1, extra => [ '-U', 'rdsadmin' ]);
$primary->append_conf('postgresql.conf', "shared_preload_libraries = 'howdah'\nwal_receiver_status_interval = 1s\nlog_statement = none\n");
$primary->start;
my $standby = PostgreSQL::Test::Cluster->new('db-ONE.m2');
my $third = PostgreSQL::Test::Cluster->new('db-ONE.m3');
my %node = (1 => $primary, 2 => $standby, 3 => $third);

# The parts of drivers.sql.
my %part;
my ($name);
for my $line (split /^/, slurp_file('drivers.sql'))
{
	$name = $1, next if $line =~ /^-- part: (\S+)/;
	$part{$name} .= $line if defined $name;
}
is(join(' ', sort keys %part), 'aurora common former multi-az', 'the parts of drivers.sql');

$primary->safe_psql('postgres', 'CREATE DATABASE rdsadmin');
$primary->safe_psql($_, slurp_file('bootstrap.sql')) for ('template1', 'postgres', 'rdsadmin');
$primary->safe_psql('postgres', 'CREATE ROLE master LOGIN CREATEROLE CREATEDB; GRANT rds_superuser TO master WITH ADMIN OPTION; CREATE ROLE plain LOGIN;'
	  . ' CREATE DATABASE app OWNER master');
$primary->safe_psql('rdsadmin', "CREATE FUNCTION public.howdah_seen(text) RETURNS void LANGUAGE c STRICT AS 'howdah', 'howdah_seen'");

# A second instance, and a third one that runs much later.
sub belongs
{
	my ($node, $kind, %instance) = @_;	# the instances of members, where they are not those of their numbers
	my ($self) = $node->name =~ /(m\d)$/;
	my @members = map {
		my ($host, $port, $i) = ($node{$_}->host, $node{$_}->port, $instance{$_} // $_);
		qq({"name":"m$_","id":"db-I$i","instance":"shop-$i","endpoint":"shop-$i.x.local","port":5432,"address":"$host","listen":$port,"application":"db-ONE.m$_"})
	} (1 .. 3);
	my $topology = "{\"self\":\"$self\",\"members\":[" . join(',', @members) . "]}";
	$node->append_conf('postgresql.conf', "howdah.cluster = '$kind'\nhowdah.topology = '$topology'\n");
	$node->reload;
	$node->poll_query_until('app', "SELECT current_setting('howdah.cluster') = '$kind' AND current_setting('howdah.topology') = '$topology'") or die;
}

# What the drivers send. JDBC 4.4, Python 3.0 and Node.js 2.1 ask alike, but for the names of columns.
my %ask = (
	is_aurora => q{SELECT (setting OPERATOR(pg_catalog.~~) '%aurora_stat_utils%') AS aurora_stat_utils FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'rds.extensions'},
	is_rds => q{SELECT (setting LIKE '%rds_tools%') AS rds_tools, (setting LIKE '%aurora_stat_utils%') AS aurora_stat_utils FROM pg_settings WHERE name='rds.extensions'},
	exists => q{SELECT 1 FROM pg_catalog.aurora_replica_status() LIMIT 1},
	topology => q{SELECT SERVER_ID, CASE WHEN SESSION_ID OPERATOR(pg_catalog.=) 'MASTER_SESSION_ID' THEN TRUE ELSE FALSE END, CPU, COALESCE(REPLICA_LAG_IN_MSEC, 0) < 10000, LAST_UPDATE_TIMESTAMP IS NOT NULL
		FROM pg_catalog.aurora_replica_status() WHERE EXTRACT(EPOCH FROM(pg_catalog.NOW() OPERATOR(pg_catalog.-) LAST_UPDATE_TIMESTAMP)) OPERATOR(pg_catalog.<=) 300
		OR SESSION_ID OPERATOR(pg_catalog.=) 'MASTER_SESSION_ID' OR LAST_UPDATE_TIMESTAMP IS NULL},
	instance => q{SELECT pg_catalog.aurora_db_instance_identifier(), aurora_db_instance_identifier()},
	writer => q{SELECT SERVER_ID FROM pg_catalog.aurora_replica_status() WHERE SESSION_ID OPERATOR(pg_catalog.=) 'MASTER_SESSION_ID' AND SERVER_ID OPERATOR(pg_catalog.=) pg_catalog.aurora_db_instance_identifier()},
	is_multi_az => q{SELECT multi_az_db_cluster_source_dbi_resource_id FROM rds_tools.multi_az_db_cluster_source_dbi_resource_id()},
	show_topology => q{SELECT id, endpoint, port FROM rds_tools.show_topology('aws_jdbc_driver-4.4.0')},
	dbi => q{SELECT id, SUBSTRING(endpoint FROM 0 FOR POSITION('.' IN endpoint)) FROM rds_tools.show_topology() WHERE id OPERATOR(pg_catalog.=) rds_tools.dbi_resource_id()},
	source => q{SELECT multi_az_db_cluster_source_dbi_resource_id FROM rds_tools.multi_az_db_cluster_source_dbi_resource_id()
		WHERE multi_az_db_cluster_source_dbi_resource_id OPERATOR(pg_catalog.!=) (SELECT dbi_resource_id FROM rds_tools.dbi_resource_id())},
	routine => q{SELECT 1 AS tmp FROM information_schema.routines WHERE routine_schema OPERATOR(pg_catalog.=) 'rds_tools' AND routine_name OPERATOR(pg_catalog.=) 'multi_az_db_cluster_source_dbi_resource_id'},
	regproc => q{SELECT 'rds_tools.show_topology'::pg_catalog.regproc},
);

# What a user who is nobody special is answered.
sub answers
{
	my ($node, $what, $expected, $test) = @_;
	my ($code, $out, $err) = $node->psql('app', $ask{$what}, extra_params => [ '-U', 'plain' ]);
	$out =~ s/\n/ /g;
	is("$out$err", $expected, "$test: $what");
}

sub seen
{
	my ($node, $text) = @_;
	$node->safe_psql('rdsadmin', "SELECT public.howdah_seen(replace('$text', 'NOW', clock_timestamp()::text))");
}

# An instance that is no cluster.
answers($primary, 'is_rds', 'f|f', 'an instance');

# An Aurora cluster.
belongs($primary, 'aurora');
$primary->safe_psql('app', $part{common} . $part{aurora}) for (1, 2);
$primary->backup('backup');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;
belongs($standby, 'aurora');
$primary->wait_for_catchup($standby);
$primary->poll_query_until('app', 'SELECT count(*) = 2 FROM aurora_replica_status()') or die;
for my $node ($primary, $standby)
{
	my $test = $node == $primary ? 'the writer' : 'a reader';
	answers($node, 'is_aurora', 't', $test);
	answers($node, 'is_rds', 'f|t', $test);
	answers($node, 'exists', '1', $test);
	answers($node, 'instance', $node == $primary ? 'shop-1|shop-1' : 'shop-2|shop-2', $test);
	answers($node, 'writer', $node == $primary ? 'shop-1' : '', $test);
	answers($node, 'topology', 'shop-1|t||t|t shop-2|f||t|t', $test);
}
like($standby->safe_psql('app', 'SELECT aurora_version()'), qr/^\d\d\.\d+$/, 'the version');
is($standby->safe_psql('app', q{SELECT count(*) FROM aurora_replica_status() WHERE durable_lsn > 0 AND highest_lsn_rcvd >= current_read_lsn}), 1, 'how far a reader is itself');

# One that takes the place of the member that writes has its instance, and is not the writer.
belongs($standby, 'aurora', 2 => 1);
seen($standby, '{"at":"NOW","leader":"m1","members":{"m1":"NOW","m2":"NOW"}}');
answers($standby, 'instance', 'shop-1|shop-1', 'one that takes the place of the writer');
answers($standby, 'writer', '', 'one that takes the place of the writer');
belongs($standby, 'aurora');

# The list of extensions is as RDS shows it.
$primary->append_conf('postgresql.conf', qq(howdah.extensions = '"citext","uuid-ossp"'));
$primary->reload;
$primary->poll_query_until('app', q{SELECT current_setting('rds.extensions') = 'citext, uuid-ossp, aurora_stat_utils'}) or die;
is($primary->safe_psql('app', q{SELECT setting FROM pg_settings WHERE name = 'rds.extensions'}), 'citext, uuid-ossp, aurora_stat_utils', 'no name is quoted');

# What the agent saw.
seen($standby, '{"at":"NOW","leader":"m1","members":{"m1":"NOW","m2":"NOW","m3":"NOW"}}');
answers($standby, 'topology', 'shop-1|t||t|t shop-2|f||t|t shop-3|f||t|t', 'another reader was seen');
seen($standby, '{"at":"NOW","leader":"m3","members":{"m1":"2026-01-01T00:00:00Z","m3":"NOW"}}');
answers($standby, 'topology', 'shop-2|f||t|t shop-3|t||t|t', 'another one leads, and the old writer was not seen for long');
seen($standby, '{"at":"2026-01-01T00:00:00Z","leader":"m3","writer":"m3","writer_at":"2026-01-01T00:00:00Z","members":{}}');
answers($standby, 'topology', 'shop-1|t||t|t shop-2|f||t|t', 'an old word is worth less than a stream');
seen($standby, '{"at":"2126-01-01T00:00:00Z","leader":"m3","writer":"m3","writer_at":"2126-01-01T00:00:00Z","members":{}}');
answers($standby, 'topology', 'shop-1|t||t|t shop-2|f||t|t', 'as is one of a clock that was wrong');
seen($standby, '{"at":"2026-01-01T00:00:00Z","leader":"m3","writer":"m3","writer_at":"2026-01-01T00:00:00Z","members":{}}');
$primary->stop('immediate');
$standby->poll_query_until('app', q{SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')}) or die;
answers($standby, 'topology', 'shop-2|f||t|t shop-3|t||t|t', 'and more than nothing');
is($standby->safe_psql('app', q{SELECT last_update_timestamp < now() - interval '1 day' FROM aurora_replica_status() WHERE server_id = 'shop-3'}), 't', 'which says how old it is');
seen($standby, '{"at":"NOW","leader":"","members":{"m2":"NOW"}}');
answers($standby, 'topology', 'shop-2|f||t|t', 'nobody leads');
seen($standby, '{"at":"NOW","leader":"m2","writer":"m2","writer_at":"NOW","members":{"m2":"NOW"}}');
answers($standby, 'topology', 'shop-2|f||t|t', 'one that has the leader key, and takes no writes yet');
answers($standby, 'writer', '', 'nor is it the writer');

# What is no word is refused, and the last one stays.
for my $bad ('{', 'x' x 8192, '[1')
{
	my ($code, undef, $err) = $standby->psql('rdsadmin', "SELECT public.howdah_seen('$bad')");
	isnt($code, 0, 'no word: ' . substr($bad, 0, 5));
}
is($standby->safe_psql('rdsadmin', q{SELECT current_setting('howdah.seen')::jsonb->>'leader'}), 'm2', 'the last word stays');

# The standby is promoted: it knows at once, whatever it was told before.
seen($standby, '{"at":"NOW","leader":"m1","writer":"m1","writer_at":"NOW","members":{"m2":"NOW"}}');
$standby->promote;
answers($standby, 'writer', 'shop-2', 'promoted');
answers($standby, 'topology', 'shop-2|t||t|t', 'promoted');
$standby->restart;
is($standby->safe_psql('rdsadmin', q{SHOW howdah.seen}), '', 'a server that starts was told nothing');
answers($standby, 'topology', 'shop-2|t||t|t', 'and knows itself');

# A Multi-AZ DB cluster.
$primary = $standby;
my $reader = $third;
belongs($primary, 'multi-az');
$primary->safe_psql('app', $part{common} . $part{'multi-az'}) for (1, 2);
answers($primary, 'is_aurora', 'f', 'the writer of a Multi-AZ DB cluster');
answers($primary, 'is_rds', 't|f', 'the writer of a Multi-AZ DB cluster');
answers($primary, 'is_multi_az', 'db-I2', 'the writer of a Multi-AZ DB cluster');
answers($primary, 'show_topology', 'db-I1|shop-1.x.local|5432 db-I2|shop-2.x.local|5432 db-I3|shop-3.x.local|5432', 'the writer of a Multi-AZ DB cluster');
answers($primary, 'dbi', 'db-I2|shop-2', 'the writer of a Multi-AZ DB cluster');
answers($primary, 'source', '', 'the writer of a Multi-AZ DB cluster');
answers($primary, 'routine', '1', 'the writer of a Multi-AZ DB cluster');
answers($primary, 'regproc', 'rds_tools.show_topology', 'the writer of a Multi-AZ DB cluster');
answers($primary, 'exists', '', 'is no Aurora');
$primary->backup('again');
$reader->init_from_backup($primary, 'again', has_streaming => 1);
$reader->start;
belongs($reader, 'multi-az');
$primary->wait_for_catchup($reader);
answers($reader, 'is_multi_az', 'db-I2', 'a reader of a Multi-AZ DB cluster');
answers($reader, 'source', 'db-I2', 'a reader of a Multi-AZ DB cluster');
answers($reader, 'dbi', 'db-I3|shop-3', 'a reader of a Multi-AZ DB cluster');
belongs($reader, 'multi-az', 3 => 2);
answers($reader, 'dbi', 'db-I2|shop-2', 'one that takes the place of the writer');
answers($reader, 'source', 'unknown', 'one that takes the place of the writer');
belongs($reader, 'multi-az');
$primary->stop('immediate');
$reader->poll_query_until('app', q{SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')}) or die;
answers($reader, 'source', 'unknown', 'a reader that does not know who writes');
$reader->promote;
answers($reader, 'source', '', 'promoted');
answers($reader, 'is_multi_az', 'db-I3', 'promoted');

# It is an extension, for dumps and for who creates it.
my ($code, $err);
for my $sql ('CREATE EXTENSION rds_tools', 'CREATE EXTENSION IF NOT EXISTS rds_tools', 'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA rds_tools TO plain')
{
	($code, undef, $err) = $reader->psql('app', $sql, extra_params => [ '-U', 'master' ]);
	is($code, 0, "as on RDS: $sql") or diag($err);
}
$reader->safe_psql('postgres', 'CREATE DATABASE fresh OWNER master TEMPLATE template0');
for my $sql ('CREATE EXTENSION rds_tools', 'CREATE EXTENSION IF NOT EXISTS rds_tools')
{
	($code, undef, $err) = $reader->psql('fresh', $sql, extra_params => [ '-U', 'master' ]);
	is("$code", 0, "before the agent was there: $sql") or diag($err);
}
my $dump = '';
IPC::Run::run([ 'pg_dump', '-U', 'master', '-d', $reader->connstr('app') ], '>', \$dump) or die;
is(join(' ', sort($dump =~ /^[A-Z].*(?:rds_tools|howdah|aurora).*/mg)), 'CREATE EXTENSION IF NOT EXISTS rds_tools WITH SCHEMA pg_catalog;', 'what a dump has of it');

# Who drops a database while the agent is there waits until it has gone.
my $visit = IPC::Run::start([ 'psql', '-XAtq', '-d', $reader->connstr('fresh'), '-c', 'SELECT pg_sleep(3)' ], '>', '/dev/null');
$reader->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = 'fresh' AND state = 'active')}) or die;
($code, undef, $err) = $reader->psql('postgres', 'DROP DATABASE fresh WITH (FORCE)', extra_params => [ '-U', 'master' ]);
is("$code$err", '0', 'the visit of the agent is waited for');
$visit->finish;
$reader->safe_psql('postgres', 'CREATE DATABASE fresh OWNER master TEMPLATE template0');

# A schema that a user made before is left alone.
$reader->safe_psql('postgres', 'CREATE DATABASE other OWNER master TEMPLATE template0');
$reader->safe_psql('other', 'CREATE SCHEMA rds_tools', extra_params => [ '-U', 'master' ]);
($code, undef, $err) = $reader->psql('other', "BEGIN;$part{common}$part{'multi-az'}COMMIT", on_error_stop => 1);
like($err, qr/the schema rds_tools belongs to somebody else/, 'somebody else has the name');
is($reader->safe_psql('other', q{SELECT count(*) FROM pg_proc WHERE pronamespace = 'rds_tools'::regnamespace}), 0, 'and keeps it');

# Nobody else says what is true, and an instance that was a cluster is none.
for my $sql (q{SET howdah.topology = ''}, q{SET howdah.cluster = 'aurora'}, q{SET rds.extensions = 'x'}, q{ALTER DATABASE app SET rds.extensions = 'x'},
	'DROP EXTENSION rds_tools', 'DROP SCHEMA rds_tools CASCADE', 'CREATE FUNCTION rds_tools.f() RETURNS int LANGUAGE sql AS $$SELECT 1$$')
{
	($code, undef, $err) = $reader->psql('app', $sql, extra_params => [ '-U', 'master' ]);
	isnt($code, 0, "a master user: $sql");
}
belongs($reader, 'none');
answers($reader, 'is_rds', 'f|f', 'no cluster any more');
answers($reader, 'is_multi_az', '', 'no cluster any more');
isnt($reader->psql('fresh', 'CREATE EXTENSION rds_tools', extra_params => [ '-U', 'master' ]), 0, 'nobody makes it where there is none');
answers($reader, 'show_topology', '', 'no cluster any more');
is($reader->safe_psql('app', 'SELECT aurora_version() IS NULL AND aurora_db_instance_identifier() IS NULL'), 't', 'no cluster any more');
$reader->safe_psql('app', 'DROP EXTENSION rds_tools');
is($reader->safe_psql('app', q{SELECT to_regnamespace('rds_tools') IS NULL}), 't', 'a superuser drops it, as before pg_upgrade');
$reader->stop('immediate');

done_testing();
