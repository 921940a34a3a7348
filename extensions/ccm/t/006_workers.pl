# No worker is left for reading: said once, and tried again.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Ccm;
use Test::More;

# PostgreSQL's logical replication launcher takes one, and ccm's own the other.
my $primary = primary('primary', 'max_worker_processes = 2');
my $standby = standby($primary, 'standby', 'max_worker_processes = 2');
make_hot($primary, 'pg_proc');
ok(wait_reader($standby, "state = 'error' AND error = 'no worker'"), 'no worker');
my $at = reader($standby, 'last_error_at');
ok(wait_reader($standby, "last_error_at > '$at'"), 'tried again');
is(logged($standby, 'LOG:  ccm: no worker:'), 1, 'one line in the log');
$standby->append_conf('postgresql.conf', 'max_worker_processes = 8');
$standby->restart;
ok(comes($standby, 'pg_proc'), 'with more of them it works');

$standby->stop;
$primary->stop;
done_testing();
