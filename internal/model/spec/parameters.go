package spec

import (
	"fmt"
	"strconv"
)

// MemberParameters returns the PostgreSQL settings that follow from an instance's memory. RDS's
// formulas are in the comments. memory is what the member can really use, in bytes. If its class is
// larger than the machine, that is less than the class has.
func MemberParameters(memory int64) map[string]string {
	return map[string]string{
		// {DBInstanceClassMemory/32768} blocks of 8 kB: a quarter.
		"shared_buffers": kilobytes(memory / 4),
		// {DBInstanceClassMemory/16384} blocks of 8 kB: half.
		"effective_cache_size": kilobytes(memory / 2),
		// GREATEST({DBInstanceClassMemory*1024/63963136},65536) kB.
		"maintenance_work_mem": fmt.Sprintf("%dkB", max(memory*1024/63963136, 65536)),
		// GREATEST({DBInstanceClassMemory/64371566592},3).
		"autovacuum_max_workers": strconv.FormatInt(max(memory/64371566592, 3), 10),
	}
}

// DefaultFormulas returns the same settings as formulas, in the form that parameter groups show,
// and the formula of max_connections.
func DefaultFormulas() map[string]string {
	return map[string]string{
		"shared_buffers":         "{DBInstanceClassMemory/32768}",
		"effective_cache_size":   "{DBInstanceClassMemory/16384}",
		"maintenance_work_mem":   "GREATEST({DBInstanceClassMemory*1024/63963136},65536)",
		"autovacuum_max_workers": "GREATEST({DBInstanceClassMemory/64371566592},3)",
		"max_connections":        "GREATEST(LEAST({DBInstanceClassMemory/9531392},5000),30)",
	}
}

func kilobytes(n int64) string { return fmt.Sprintf("%dkB", n/1024) }

// ClusterParameters returns the settings that must be the same on all members. For some of them a
// standby must not have less than its primary; replication and safety need the others. memory is
// that of the largest member, storage is the allocated storage, both in bytes.
func ClusterParameters(memory, storage int64) map[string]string {
	return map[string]string{
		// LEAST({DBInstanceClassMemory/9531392},5000).
		"max_connections":      strconv.FormatInt(max(min(memory/9531392, 5000), 30), 10),
		"max_worker_processes": "16",
		// The module howdah limits what master users can do: extensions/howdah.
		"shared_preload_libraries":  "pg_stat_statements,howdah",
		"max_wal_senders":           "35",
		"max_replication_slots":     "30",
		"max_prepared_transactions": "0",
		"max_locks_per_transaction": "64",
		"wal_level":                 "replica",
		"hot_standby":               "on",
		"wal_log_hints":             "on",
		"wal_keep_size":             "128MB",
		// A replica that does not come back must not fill the disk. Its slot is given up first.
		"max_slot_wal_keep_size": fmt.Sprintf("%dMB", slotCap(storage)>>20),
		"max_wal_size":           "2GB",
		// A standby keeps WAL until the archive has it, so whoever is promoted archives what the old
		// primary had not. Where a database is archived its members have another command, and a
		// timeout: see ArchiveParameters. Without a command WAL would be kept for ever.
		"archive_mode":    "always",
		"archive_command": "/bin/true",
		"archive_timeout": "0",
		// A standby that does not answer stalls commits for at most this long.
		"wal_sender_timeout":                  "5s",
		"wal_receiver_timeout":                "5s",
		"wal_retrieve_retry_interval":         "1s",
		"checkpoint_timeout":                  "5min",
		"checkpoint_completion_target":        "0.9",
		"password_encryption":                 "scram-sha-256",
		"idle_in_transaction_session_timeout": "1d",
		"tcp_keepalives_idle":                 "300",
		"tcp_keepalives_interval":             "30",
		"tcp_keepalives_count":                "2",
		"logging_collector":                   "on",
		"log_filename":                        "postgresql.log.%Y-%m-%d-%H",
		"log_file_mode":                       "0600",
		"log_rotation_age":                    "60",
		// A file holds the log of an hour. By size, PostgreSQL would only open the same file again.
		// The agent limits how much space the files take.
		"log_rotation_size":        "0",
		"log_truncate_on_rotation": "on",
		"log_line_prefix":          "%t:%r:%u@%d:[%p]:",
		"log_checkpoints":          "on",
		"log_timezone":             "UTC",
		"timezone":                 "UTC",
	}
}

// ArchiveParameters returns the settings of a member whose database is archived by this command.
func ArchiveParameters(command string) map[string]string {
	return map[string]string{
		"archive_command": command,
		// What was committed is in the archive half a minute later, also where little is written.
		"archive_timeout": "30s",
	}
}

// AgentSocketSetting is the setting that tells the module howdah where the agent does exports and
// imports for a member.
const AgentSocketSetting = "howdah.agent_socket"

// DatabaseSetting tells the module which database the server belongs to (extensions/howdah/src/heritage.c).
const DatabaseSetting = "howdah.database"

// WALCap returns how many bytes of WAL may wait to be archived: what the database's setting says,
// or a tenth of its storage, which is given in bytes, but at least 1 GiB and at most 50 GiB.
func WALCap(tags []Tag, storage int64) int64 {
	if gib, ok := parseWALCap(Setting(tags, WALCapSetting)); ok {
		return gib << 30
	}
	return min(max(storage/10, 1<<30), 50<<30)
}

// slotCap returns a fifth of the storage, but at least 1 GiB and at most 64 GiB.
func slotCap(storage int64) int64 { return min(max(storage/5, 1<<30), 64<<30) }

// SharedDiffer reports whether two sizes of memory, in bytes, give different values to the settings
// of which a standby must not have less than its primary.
func SharedDiffer(before, after int64) bool {
	return ClusterParameters(before, 0)["max_connections"] != ClusterParameters(after, 0)["max_connections"]
}
