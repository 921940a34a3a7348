# The suite of escapes: reads the attempts of escape/*.sql, makes each of them on a
# server that is set up as in production, and says what it changed that it must not.
package Escape;
use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;

# Who makes attempts, each in the database "target", which the master user owns.
my %password = (master => 'of the master', plain => 'of a plain user', mover => 'of a member of rds_replication');
# What the suite itself connects as, and is known by in the server's log.
my $me = 'howdah-escape-suite';

sub new
{
	my ($class) = @_;
	my $node = PostgreSQL::Test::Cluster->new('escape');
	$node->init(extra => [ '-U', 'rdsadmin', '--auth=trust' ]);
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my $preload = join(', ', 'howdah', 'ccm', installed_libraries());
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$preload'\nccm.enabled = on\n"
		  . "cron.database_name = 'target'\ncron.use_background_workers = on\nmax_worker_processes = 32\n"
		  . "listen_addresses = '127.0.0.1'\nlog_connections = on\nautovacuum = off\nlog_statement = none\n"
		  . "max_prepared_transactions = 2\nwal_level = logical\nmax_wal_senders = 6\nhowdah.logical_slots = on\n"
		  . "howdah.reserved_wal_senders = 2\nhowdah.reserved_replication_slots = 4\n"
		  . qq(howdah.cluster = 'multi-az'\nhowdah.topology = '{"self":"m1","members":[{"name":"m1","id":"db-I1","instance":"shop-1","endpoint":"shop-1.local"}]}'\n));
	my $self = bless { node => $node, dir => $dir }, $class;
	$self->log_in_as_in_production;
	$node->start;
	$self->{major} = int($self->admin('postgres', 'SHOW server_version_num') / 10000);
	$self->admin('postgres', 'CREATE DATABASE rdsadmin');
	$self->admin($_, slurp_file('bootstrap.sql')) for ('template1', 'postgres', 'rdsadmin');
	$self->set_cache_management_up;
	$self->have_drivers_answered;
	$self->admin($_, slurp_file('slots.sql')) for ('template1', 'postgres'); # as internal/engine/postgres/slots.go does
	$self->admin('postgres', "CREATE ROLE master LOGIN CREATEROLE CREATEDB PASSWORD '$password{master}';"
		  . "CREATE ROLE plain LOGIN PASSWORD '$password{plain}'; GRANT rds_superuser TO master WITH ADMIN OPTION;"
		  . "CREATE ROLE mover LOGIN PASSWORD '$password{mover}'; GRANT rds_replication TO mover; SELECT pg_create_physical_replication_slot('standby')");
	$self->admin('postgres', "ALTER DATABASE $_ OWNER TO master") for ('postgres', 'template1');
	$self->read_extensions;
	$self->fresh;
	$self->{roles} = $self->admin('rdsadmin', "SELECT string_agg(quote_literal(rolname), ',') FROM pg_roles");
	$self->{databases} = $self->admin('rdsadmin', "SELECT string_agg(quote_literal(datname), ',') FROM pg_database");
	($self->{in_target}, $self->{state}, $self->{left}) = $self->look;
	return $self;
}

# What of internal/model/extension has to be preloaded, and is installed.
sub installed_libraries
{
	my ($dir) = split(/\n/, `pg_config --pkglibdir`);
	return grep { -e "$dir/$_.so" } ('pg_cron', 'pg_qualstats', 'pg_wait_sampling', 'pgaudit');
}

# pg_hba.conf and pg_ident.conf as internal/engine/patroni/config/config.go makes them.
sub log_in_as_in_production
{
	my ($self) = @_;
	my $data = $self->{node}->data_dir;
	my $user = getpwuid($<);
	unlink("$data/pg_hba.conf", "$data/pg_ident.conf");
	append_to_file("$data/pg_hba.conf", join("\n",
		'local all rdsadmin,rdsmon peer map=platform',
		'local all all reject',
		'host all rdsadmin,rdsrepladmin,rdsmon all reject',
		'host rdsadmin all all reject',
		'host all all all scram-sha-256', ''));
	append_to_file("$data/pg_ident.conf", "platform $user rdsadmin\nplatform $user rdsmon\n");
}

# Functions as internal/engine/postgres/cache.go and hot.go make them.
sub set_cache_management_up
{
	my ($self) = @_;
	my ($aurora) = slurp_file('../ccm/ccm--1.0.sql') =~ /(CREATE FUNCTION pg_catalog\.aurora_ccm_status.*?;)/s;
	$aurora =~ s/MODULE_PATHNAME/ccm/;
	my $prewarm = "CREATE FUNCTION pg_catalog.howdah_prewarm(regclass, text, text, int8, int8) RETURNS int8"
	  . q{ LANGUAGE C PARALLEL SAFE AS '$libdir/pg_prewarm', 'pg_prewarm'; REVOKE ALL ON FUNCTION pg_catalog.howdah_prewarm FROM PUBLIC;};
	$self->admin($_, "$aurora $prewarm") for ('template1', 'postgres');
	$self->admin('rdsadmin', 'CREATE EXTENSION ccm; CREATE SCHEMA howdah_cache; GRANT USAGE ON SCHEMA howdah_cache TO rdsmon;'
		  . ' CREATE EXTENSION pg_buffercache SCHEMA howdah_cache; GRANT USAGE ON SCHEMA ccm TO rdsrepladmin; GRANT EXECUTE ON FUNCTION ccm.pull TO rdsrepladmin');
}

# Functions as internal/engine/postgres/drivers.go makes them, of both kinds of cluster.
sub have_drivers_answered
{
	my ($self) = @_;
	my ($answers) = split /^-- part: former$/m, slurp_file('drivers.sql');
	$self->admin($_, $answers) for ('template1', 'postgres');
	$self->admin('rdsadmin', "CREATE FUNCTION public.howdah_seen(text) RETURNS void LANGUAGE c STRICT AS 'howdah', 'howdah_seen'");
}

# Run a program with psql's arguments; what it says is for the caller to judge.
sub psql
{
	my ($self, $connstr, $sql) = @_;
	my $output = '';
	IPC::Run::run([ 'psql', '-X', '-q', '-A', '-t', '-d', $connstr ], '<', \$sql, '>', \$output, '2>&1',
		IPC::Run::timeout(60));
	return $output;
}

# How somebody connects, with these options of the session.
sub connection
{
	my ($self, $user, $database, $options) = @_;
	my $connection = 'port=' . $self->{node}->port . " dbname=$database user=$user options='" . ($options // '') . "'";
	return "host=127.0.0.1 password='$password{$user}' $connection" if $password{$user};
	return 'host=' . $self->{node}->host . " application_name=$me $connection";
}

# What somebody sees who runs this, in a session with these options.
sub as
{
	my ($self, $user, $database, $sql, $options) = @_;
	return $self->psql($self->connection($user, $database, $options), $sql);
}

# The platform's own work, which must succeed.
sub admin
{
	my ($self, $database, $sql) = @_;
	my $output = $self->as('rdsadmin', $database, $sql);
	die "the platform cannot run \"$sql\": $output" if $output =~ /^(psql:.*)?(ERROR|FATAL):/m;
	chomp $output;
	return $output;
}

# The database of attempts, as new.
sub fresh
{
	my ($self) = @_;
	$self->admin('rdsadmin', 'DROP DATABASE IF EXISTS target WITH (FORCE)');
	$self->admin('rdsadmin', 'CREATE DATABASE target OWNER master');
}

# What is there after an attempt, in three parts. What is wrong in the database of
# attempts: things that are a superuser's and come from no extension, and extensions that
# rest on what a user wrote. What no attempt may change: who has which rights, the
# platform's settings and databases, the server's files. And what is left behind, once all
# that it was allowed to make is dropped.
my $look = <<'END';
SET search_path = pg_catalog;
SELECT 'a superuser''s function: ' || p.oid::regprocedure FROM pg_proc p JOIN pg_roles r ON r.oid = proowner
	WHERE p.oid >= 16384 AND rolsuper AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e');
SELECT 'in pg_catalog: ' || p.oid::regprocedure FROM pg_proc p
	WHERE p.oid >= 16384 AND pronamespace = 'pg_catalog'::regnamespace AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e');
SELECT 'C code of a user: ' || p.oid::regprocedure FROM pg_proc p JOIN pg_roles r ON r.oid = proowner JOIN pg_language l ON l.oid = prolang
	WHERE NOT rolsuper AND NOT lanpltrusted AND prokind <> 'a';
WITH member AS (SELECT classid, objid FROM pg_depend WHERE deptype = 'e')
SELECT DISTINCT 'an extension rests on ' || pg_describe_object(d.refclassid, d.refobjid, 0) FROM member
	JOIN pg_depend d USING (classid, objid)
	LEFT JOIN pg_proc p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
	LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
	LEFT JOIN pg_type t ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid
	LEFT JOIN pg_class c ON d.refclassid = 'pg_class'::regclass AND c.oid = d.refobjid
	JOIN pg_roles r ON r.oid = coalesce(proowner, oprowner, typowner, relowner)
	WHERE NOT rolsuper AND d.deptype <> 'e' AND (d.refclassid, d.refobjid) NOT IN (SELECT classid, objid FROM member);
\echo ====
SELECT format('role %s', to_jsonb(r)) FROM pg_authid r
	WHERE rolsuper OR rolreplication OR rolbypassrls OR rolname ~ '^(rds_|pg_)' OR rolname IN ('rdsadmin', 'rdsmon', 'rdsrepladmin', 'master', 'plain', 'mover') ORDER BY 1;
SELECT 'member ' || roleid::regrole || ' of ' || member::regrole || ' ' || admin_option FROM pg_auth_members
	WHERE roleid::regrole::text ~ '^(rds|pg_)' AND roleid::regrole::text NOT IN ('pg_read_all_data', 'pg_write_all_data')
		OR member::regrole::text ~ '^(rds|pg_)' ORDER BY 1;
SELECT format('setting %s', to_jsonb(s)) FROM pg_db_role_setting s
	WHERE setrole IN (SELECT oid FROM pg_roles WHERE rolname ~ '^rds') OR setrole = 0 AND setdatabase = 0 ORDER BY 1;
SELECT format('parameter %s', to_jsonb(p)) FROM pg_parameter_acl p ORDER BY 1;
SELECT format('database %s', to_jsonb(d) - '{datfrozenxid,datminmxid}'::text[]) FROM pg_database d
	WHERE datname IN ('rdsadmin', 'template0') ORDER BY 1;
SELECT format('tablespace %s', to_jsonb(t)) FROM pg_tablespace t ORDER BY 1;
SELECT 'slot ' || slot_name FROM pg_replication_slots UNION ALL SELECT 'origin ' || roname FROM pg_replication_origin;
SELECT 'file ' || name || ' ' || md5(pg_read_file(name)) FROM unnest(ARRAY['postgresql.conf', 'postgresql.auto.conf', 'pg_hba.conf', 'pg_ident.conf']) name;
\echo ====
SET client_min_messages = error;
SELECT format('DROP DATABASE %I WITH (FORCE)', datname) FROM pg_database WHERE datname NOT IN (:databases) \gexec
DROP OWNED BY master, plain, mover CASCADE;
SELECT format('DROP OWNED BY %I CASCADE', rolname), format('DROP ROLE %I', rolname) FROM pg_roles WHERE rolname NOT IN (:roles) \gexec
SELECT format('ALTER ROLE %I IN DATABASE %I RESET ALL', rolname, datname) FROM pg_db_role_setting
	JOIN pg_roles r ON r.oid = setrole JOIN pg_database d ON d.oid = setdatabase \gexec
ALTER ROLE master RESET ALL;
ALTER ROLE plain RESET ALL;
ALTER ROLE mover RESET ALL;
ALTER DATABASE target RESET ALL;
ALTER DATABASE target OWNER TO master;
SELECT classid::regclass, pg_describe_object(classid, objid, 0) FROM pg_depend
	WHERE refclassid NOT IN ('pg_namespace'::regclass) AND deptype <> 'i' AND objid >= 16384 ORDER BY 2;
SELECT evtname FROM pg_event_trigger;
SELECT oid FROM pg_namespace WHERE oid >= 16384 AND nspname !~ '^pg_';
END

# The three parts, as lists of lines.
sub look
{
	my ($self) = @_;
	my $sql = $look =~ s/:(databases|roles)/$self->{$1}/gr;
	return map { [ grep { $_ ne '' } split(/\n/) ] } split(/^====$/m, $self->admin('target', $sql), -1);
}

# Sessions of the platform that others have begun, by the server's log.
sub foreign_logins
{
	my ($self, $from) = @_;
	my @lines = grep { /connection authorized: user=rds/ && !/application_name=$me/ }
	  split(/\n/, substr(slurp_file($self->{node}->logfile), $from));
	return map { s/.*connection authorized/a session of the platform/r } @lines;
}

# Make an attempt. Returns what is wrong after it, a line each: nothing, if it did no harm
# and its makers saw what they had to see.
sub attempt
{
	my ($self, $attempt) = @_;
	my $log = -s $self->{node}->logfile;
	my $output = '';
	$output .= $self->as($_->{as}, $_->{database}, $_->{sql}) for @{ $attempt->{parts} };
	my @wrong = map { "not seen: $_" } grep { $output !~ /$_/m } @{ $attempt->{sees} };
	push @wrong, map { "seen: $_" } grep { $output =~ /$_/m } @{ $attempt->{not} };
	push @wrong, map { "it saw: $_" } split(/\n/, $output) if @wrong;
	my ($in_target, $state, $left) = $self->look;
	push @wrong, difference($self->{in_target}, $in_target), difference($self->{state}, $state), $self->foreign_logins($log);
	push @wrong, map { "a file: $_" } glob("$self->{dir}/*");
	$self->fresh if join("\n", @$left) ne join("\n", @{ $self->{left} });
	return @wrong;
}

sub difference
{
	my ($before, $after) = @_;
	my %before = map { $_ => 1 } @$before;
	my %after = map { $_ => 1 } @$after;
	return ((map { "gone: $_" } grep { !$after{$_} } @$before), (map { "new: $_" } grep { !$before{$_} } @$after));
}

# What there is of the extensions that users may create: the oldest version, and functions
# whose names and arguments a user could take before.
sub read_extensions
{
	my ($self) = @_;
	$self->fresh;
	# Not all versions of packages can be created beside each other: attempts that name one see to that.
	# postgis_topology takes the search_path that the session began with.
	my $created = $self->as('rdsadmin', 'target', <<~'END', '-c search_path=public');
		SET client_min_messages = error;
		SELECT format('CREATE EXTENSION IF NOT EXISTS %I CASCADE', name) FROM regexp_split_to_table(current_setting('howdah.extensions'), ', *') name
			JOIN pg_available_extensions USING (name) WHERE name <> 'plpgsql' ORDER BY name \gexec
		END
	print "# created: $created" if $created ne '';
	my $rows = $self->admin('target', <<~'END');
		SET client_min_messages = error;
		SET search_path = public;
		CREATE TEMP TABLE listed AS SELECT name FROM regexp_split_to_table(current_setting('howdah.extensions'), ', *') name
			JOIN pg_available_extensions USING (name) WHERE name <> 'plpgsql';
		SELECT concat_ws('|', name, requires[1], coalesce((SELECT version FROM pg_available_extension_versions o
				WHERE o.name = listed.name AND version <> extversion AND version ~ '^[0-9.]+$' ORDER BY string_to_array(version, '.')::int[] LIMIT 1), '-'),
			schema, lends, (SELECT string_agg(format('%I(%s)', proname, oidvectortypes(proargtypes)), '|') FROM pg_proc p
				JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e' AND d.refobjid = e.oid
				WHERE prokind = 'f' AND pronamespace = 'public'::regnamespace AND NOT EXISTS (SELECT FROM unnest(proargtypes) a JOIN pg_type t ON t.oid = a
					WHERE typtype = 'p' OR typnamespace <> 'pg_catalog'::regnamespace)))
			FROM (SELECT name, extversion, e.oid, coalesce(requires, '{-}') AS requires, coalesce(schema, '-') AS schema, v.superuser AS lends FROM listed JOIN pg_extension e ON extname = name
				JOIN pg_available_extension_versions v USING (name) WHERE v.version = extversion) e (name, extversion, oid, requires, schema, lends)
			JOIN listed USING (name) ORDER BY name;
		END
	for my $row (split(/\n/, $rows))
	{
		my ($name, $requires, $oldest, $schema, $lends, @functions) = split(/\|/, $row);
		push @{ $self->{extensions} }, { name => $name, requires => $requires, oldest => $oldest, schema => $schema, lends => $lends eq 't', functions => \@functions };
	}
}

# The attempts of a file.
sub read_file
{
	my ($self, $file) = @_;
	my (@attempts, $attempt, $database);
	for my $line (split(/\n/, slurp_file($file)))
	{
		if ($line =~ /^-- (attempt|as|in|sees|not|since|until|each|only|needs): (.*)$/)
		{
			my ($key, $value) = ($1, $2);
			if ($key eq 'attempt')
			{
				push @attempts, $attempt = { name => $value, parts => [], sees => [], not => [], since => 0, until => 99 };
				$database = 'target';
			}
			elsif ($key eq 'as')
			{
				push @{ $attempt->{parts} }, { as => $value, database => $database, sql => '' };
			}
			elsif ($key eq 'in') { $database = $value; }
			elsif ($key eq 'sees' || $key eq 'not') { push @{ $attempt->{$key} }, $value; }
			else { $attempt->{$key} = $value; }
		}
		elsif ($attempt && @{ $attempt->{parts} })
		{
			$attempt->{parts}[-1]{sql} .= "$line\n";
		}
	}
	return grep { $self->{major} >= $_->{since} && $self->{major} <= $_->{until} && $self->has($_->{needs}) } map { $self->expand($_) } @attempts;
}

# Is this extension installed here, if one is needed?
sub has
{
	my ($self, $name) = @_;
	return !defined $name || grep { $_->{name} eq $name } @{ $self->{extensions} };
}

# An attempt with what is only known here filled in, once for each extension if it says so.
sub expand
{
	my ($self, $attempt) = @_;
	my %known = (dir => $self->{dir}, port => $self->{node}->port, socket => $self->{node}->host, data => $self->{node}->data_dir);
	return fill($attempt, %known) unless $attempt->{each};
	my %those = (
		'extension' => sub { 1 },
		# One whose script runs as the user lends nothing, and is the user's own.
		'extension with functions' => sub { $_[0]{lends} && @{ $_[0]{functions} } },
		'extension that requires another' => sub { $_[0]{requires} ne '-' },
		'updated extension' => sub { $_[0]{oldest} ne '-' });
	my @extensions = grep { $those{ $attempt->{each} }->($_) } @{ $self->{extensions} };
	return map {
		fill($attempt, %known, extension => "\"$_->{name}\"", name => $_->{name}, oldest => $_->{oldest}, function => $_->{functions}[0] // '',
			into => $_->{schema} eq '-' ? 'SCHEMA public' : '', trap => $_->{schema} eq '-' ? 'SCHEMA trap' : '',
			decoys => join("\n", map { "CREATE FUNCTION trap.$_ RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS \$decoy\$ BEGIN"
					  . " PERFORM set_config('search_path', 'trap, pg_catalog', false); RETURN current_user; END \$decoy\$;" } @{ $_->{functions} }))
	} @extensions;
}

sub fill
{
	my ($attempt, %known) = @_;
	my $fill = sub { $_[0] =~ s/\{(\w+)\}/exists $known{$1} ? $known{$1} : "{$1}"/ger };
	my %filled = (%$attempt, name => $fill->($attempt->{name}) . ($attempt->{each} ? " ($known{name})" : ''));
	$filled{$_} = [ map { $fill->($_) } @{ $attempt->{$_} } ] for ('sees', 'not');
	$filled{parts} = [ map { { %$_, sql => $fill->($_->{sql}) } } @{ $attempt->{parts} } ];
	return \%filled;
}

1;
