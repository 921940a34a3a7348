package param

import (
	"slices"
	"strings"
)

// owned lists the parameters that the platform sets itself, with the reason. A pattern ends in a
// star.
var owned = []struct {
	why   string
	names []string
}{
	{"Patroni, which decides who is primary, sets it", []string{
		"cluster_name", "hot_standby", "listen_addresses", "port", "primary_conninfo", "primary_slot_name", "promote_trigger_file",
		"recovery_*", "restore_command", "archive_cleanup_command", "wal_log_hints", "synchronous_standby_names", "synchronized_standby_slots",
		"sync_replication_slots", "restart_after_crash", "summarize_wal", "idle_replication_slot_timeout",
	}},
	{"wal_level follows from rds.logical_replication", []string{"wal_level"}},
	{"the platform keeps the WAL and its archive", []string{"archive_*", "wal_recycle", "wal_init_zero"}},
	{"how long a standby may hold commits up depends on it", []string{"wal_sender_timeout", "wal_receiver_timeout", "wal_retrieve_retry_interval", "wal_receiver_status_interval"}},
	{"the certificates and the encryption of connections are the platform's: see rds.force_ssl", []string{"ssl", "ssl_c*", "ssl_d*", "ssl_e*", "ssl_g*", "ssl_k*", "ssl_max_protocol_version", "ssl_passphrase*", "ssl_prefer*", "ssl_tls13_ciphers", "ssl_groups"}},
	{"who may log in, and how, is the platform's", []string{"hba_file", "ident_file", "krb_*", "db_user_namespace", "gss_accept_delegation", "oauth_*", "authentication_timeout", "password_encryption", "md5_password_warnings"}},
	{"files and directories of the server are the platform's", []string{
		"data_directory", "config_file", "external_pid_file", "unix_socket_*", "stats_temp_directory", "dynamic_library_path", "local_preload_libraries",
		"bonjour*", "event_source", "extension_control_path", "data_directory_mode", "dynamic_shared_memory_type", "shared_memory_type", "io_method", "in_hot_standby",
		"allow_alter_system", "jit_provider", "extension_destdir", "output_plugin_libraries",
	}},
	{"Howdah finds and shows the logs by it", []string{"log_directory", "log_filename", "log_file_mode", "logging_collector", "log_destination", "log_rotation_*", "log_truncate_on_rotation", "log_timezone", "syslog_*"}},
	{"without it a crash loses or damages data", []string{"fsync", "full_page_writes", "data_sync_retry", "wal_sync_method", "zero_damaged_pages", "ignore_*", "allow_system_table_mods", "allow_in_place_tablespaces", "remove_temp_files_after_crash"}},
	{"it belongs to a session or a transaction, which sets it itself", []string{"application_name", "transaction_deferrable", "transaction_isolation", "transaction_read_only"}},
	{"Patroni does not pass it on", []string{"composite_type_mismatch", "restrict_nonsystem_relation_kind"}},
	{"it is for developers of PostgreSQL", []string{
		"force_parallel_mode",
		"debug_*", "trace_*", "wal_debug", "wal_consistency_checking", "post_auth_delay", "pre_auth_delay", "jit_debugging_support", "jit_dump_bitcode", "jit_expressions",
		"jit_profiling_support", "jit_tuple_deforming", "backtrace_functions", "send_abort_for_*", "exit_on_error", "event_triggers",
	}},
	{"pg_cron runs jobs in background workers, as who scheduled them", []string{"cron.host", "cron.use_background_workers", "cron.enable_superuser_jobs", "cron.launch_active_jobs"}},
	{"it lets users read files of the server, and addresses", []string{"postgis.gdal_*", "postgis.enable_outdb_rasters"}},
	{"the platform's extension keeps master users within their rights by it; the extensions that users may create are rds.extensions", []string{"howdah.*"}},
}

// shared lists the parameters that must be the same on all members of a database. For most of them,
// a standby must not have less than its primary.
var shared = []string{
	"max_connections", "max_worker_processes", "max_wal_senders", "max_prepared_transactions", "max_locks_per_transaction",
	"max_replication_slots", "track_commit_timestamp", "wal_keep_size",
	forceSSL, logicalReplication, ccm,
}

// narrow holds ranges that are narrower here than PostgreSQL's. Patroni silently corrects values
// below its own limits, and replication needs some of the others.
var narrow = map[string]struct{ least, most string }{
	"max_connections":           {"30", "200000"},
	"max_locks_per_transaction": {"32", ""},
	"max_wal_senders":           {"20", "10000"},
	"max_replication_slots":     {"20", "10000"},
	"max_worker_processes":      {"8", "10000"},
	// bound may lower the upper limits of these for a machine with little storage.
	"wal_keep_size": {"16", "65536"},
	// PostgreSQL does not start with fewer than two segments.
	"min_wal_size": {"32", "65536"},
	"max_wal_size": {"32", "65536"},
	// A query on a standby must not keep WAL for ever.
	"max_standby_streaming_delay": {"0", "3600000"},
	"max_standby_archive_delay":   {"0", "3600000"},
	// PostgreSQL wants half a megabyte less than the stack of a process, which is 8 MB.
	"max_stack_depth": {"100", "7680"},
	// As on RDS, at least one connection is left for the platform.
	"superuser_reserved_connections": {"2", "20"},
	// A replica that does not come back must not fill the disk.
	"max_slot_wal_keep_size": {"0", "65536"},
}

// choices holds parameters that take fewer values here than PostgreSQL allows.
var choices = map[string][]string{
	// With "on", PostgreSQL does not start if the host has no huge pages.
	"huge_pages":               {"off", "try"},
	"ssl_min_protocol_version": {"TLSv1.2", "TLSv1.3"},
	// Every host has these locales. PostgreSQL does not start with a locale that the host lacks.
	"lc_messages": locales, "lc_monetary": locales, "lc_numeric": locales, "lc_time": locales,
	// With a lower level, a commit could be acknowledged before a standby has it. Such a commit is
	// lost with the primary, and a primary that is cut off would go on to acknowledge.
	"synchronous_commit": {"on", "remote_apply"},
	// A standby refuses "serializable": neither Patroni nor the platform could query it any more.
	"default_transaction_isolation": {"read committed", "repeatable read", "read uncommitted"},
}

var locales = []string{"C", "C.UTF-8", "POSIX"}

func narrowed(p Parameter) Parameter {
	if n, ok := narrow[p.Name]; ok {
		p.Min = n.least
		if n.most != "" {
			p.Max = n.most
		}
	}
	if c, ok := choices[p.Name]; ok {
		p.Enum = c
	}
	return p
}

// Owned says why a parameter cannot be changed in groups of a kind, and "" if it can.
func Owned(p Parameter, f Family, kind Kind) string {
	if p.Context == "internal" {
		return "it was decided when PostgreSQL was built or the database was made"
	}
	for _, o := range owned {
		if slices.ContainsFunc(o.names, func(pattern string) bool { return matches(pattern, p.Name) }) {
			return o.why
		}
	}
	if kind == Instance && f.Engine == auroraEngine && Shared(p.Name) {
		return "it must be the same on all instances of a cluster: set it in the DB cluster parameter group"
	}
	return ""
}

// Shared reports whether the parameter belongs to a whole database, and not to a member.
func Shared(name string) bool { return slices.Contains(shared, name) }

func matches(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// RDS's own parameters, which PostgreSQL does not have.
const (
	forceSSL           = "rds.force_ssl"
	logicalReplication = "rds.logical_replication"
	rdsExtensions      = "rds.extensions"
	allowedExtensions  = "rds.allowed_extensions"
	logRetention       = "rds.log_retention_period"
	ccm                = "apg_ccm_enabled"
)

// rdsParameter is a parameter of RDS that PostgreSQL does not have.
type rdsParameter struct {
	Parameter
	aurora   bool // in Aurora's families only
	fallback func(Catalogue) string
}

func (r rdsParameter) make(c Catalogue) Parameter {
	p := r.Parameter
	if r.fallback != nil {
		p.Default = r.fallback(c)
	}
	return p
}

var rdsParameters = []rdsParameter{
	{Parameter: Parameter{Name: forceSSL, Type: "bool", Context: "sighup", Default: "1", Text: "Refuses connections without TLS."}},
	{Parameter: Parameter{Name: logicalReplication, Type: "bool", Context: "postmaster", Default: "0", Text: "Sets wal_level to logical."}},
	{
		Parameter: Parameter{Name: rdsExtensions, Type: "string", Context: "sighup", Text: "Extensions that users may create."},
		fallback:  func(c Catalogue) string { return strings.Join(c.Extensions, ",") },
	},
	{Parameter: Parameter{Name: allowedExtensions, Type: "string", Context: "sighup", Default: "*", Text: "Narrows the extensions that users may create; * is all of rds.extensions."}},
	// RDS keeps logs for at least a day and at most a week.
	{Parameter: Parameter{Name: logRetention, Type: "integer", Min: "1440", Max: "10080", Context: "sighup", Default: "4320", Text: "How long log files are kept, in minutes."}},
	{Parameter: Parameter{Name: ccm, Type: "bool", Context: "sighup", Default: "0", Text: "Cluster cache management: the reader of promotion tier 0 keeps in its cache what the writer has in its own."}, aurora: true},
}
