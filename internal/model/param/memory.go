package param

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// How much shared memory PostgreSQL asks for by each thing that it has room for, in bytes. Each
// number is slightly more than any version from 15 on needs.
const (
	bytesPerLock      = 430
	bytesPerPredicate = 280 // a lock of serializable transactions
	bytesPerProcess   = 8 << 10
	bytesPerSlot      = 512
	bytesPerWorker    = 256 // of logical replication
	bytesPerStatement = 480 // of pg_stat_statements
	bytesPerPage      = 8<<10 + 256
	// This is always there, as are PostgreSQL's own processes.
	bytesAtLeast    = 8 << 20
	ownProcesses    = 12
	ioWorkers       = 32  // there may be so many, from 18 on
	bytesPerRequest = 300 // of asynchronous I/O, from 18 on
	mostRequests    = 64  // of a process, unless it is set
)

// sizes holds the settings that shared memory depends on. Each has its unit, and PostgreSQL's
// default in that unit.
var sizes = map[string]struct {
	unit     string
	fallback int64
}{
	"shared_buffers": {"8kB", 16384}, "wal_buffers": {"8kB", -1}, "min_dynamic_shared_memory": {"MB", 0},
	"max_connections": {"", 100}, "max_worker_processes": {"", 8}, "max_wal_senders": {"", 10}, "max_prepared_transactions": {"", 0},
	"autovacuum_max_workers": {"", 3}, "autovacuum_worker_slots": {"", 16},
	"max_locks_per_transaction": {"", 64}, "max_pred_locks_per_transaction": {"", 64},
	"track_activity_query_size": {"B", 1024}, "max_replication_slots": {"", 10}, "max_logical_replication_workers": {"", 4}, "max_active_replication_origins": {"", 10},
	"pg_stat_statements.max":   {"", 5000},
	"commit_timestamp_buffers": {"8kB", 0}, "multixact_member_buffers": {"8kB", 32}, "multixact_offset_buffers": {"8kB", 16}, "notify_buffers": {"8kB", 16},
	"serializable_buffers": {"8kB", 32}, "subtransaction_buffers": {"8kB", 0}, "transaction_buffers": {"8kB", 0},
	"io_max_concurrency": {"", -1}, "io_max_combine_limit": {"8kB", 16},
}

// SharedMemory returns how many bytes of shared memory PostgreSQL of a major version asks for when
// it starts with the given settings. The result is never too small, and at most a quarter too
// large. A setting that is not given has PostgreSQL's default.
func SharedMemory(settings map[string]string, major int) int64 {
	n := func(name string) int64 { return size(settings, name) }
	backends := n("max_connections") + n("max_worker_processes") + n("max_wal_senders") + 1
	if major >= 18 {
		backends += n("autovacuum_worker_slots")
	} else {
		backends += n("autovacuum_max_workers")
	}
	processes := backends + ownProcesses
	transactions := processes + n("max_prepared_transactions")
	if major >= 18 {
		processes += ioWorkers
	}
	perTransaction := n("max_locks_per_transaction")*bytesPerLock + n("max_pred_locks_per_transaction")*bytesPerPredicate + bytesPerProcess
	wal := n("wal_buffers")
	if wal < 0 {
		wal = min(n("shared_buffers")/32, 2048)
	}
	total := bytesAtLeast + (n("shared_buffers")+wal)*bytesPerPage + n("min_dynamic_shared_memory")<<20 +
		transactions*perTransaction + processes*n("track_activity_query_size") +
		(n("max_replication_slots")+n("max_active_replication_origins"))*bytesPerSlot + n("max_logical_replication_workers")*bytesPerWorker +
		n("pg_stat_statements.max")*bytesPerStatement
	if major >= 17 {
		for name := range sizes {
			if strings.HasSuffix(name, "_buffers") && name != "shared_buffers" && name != "wal_buffers" {
				total += statusBuffers(n(name), n("shared_buffers")) * bytesPerPage
			}
		}
	}
	if major >= 18 {
		concurrent := n("io_max_concurrency")
		if concurrent < 0 {
			concurrent = min(max(n("shared_buffers")/processes, 1), mostRequests)
		}
		total += processes * concurrent * (bytesPerRequest + 24*n("io_max_combine_limit"))
	}
	return total
}

// statusBuffers returns how many pages a cache of transaction states has. If the setting is 0,
// PostgreSQL derives it from shared_buffers.
func statusBuffers(set, sharedBuffers int64) int64 {
	if set > 0 {
		return set
	}
	return min(max(sharedBuffers/512, 16), 1024)
}

// size returns a setting that shared memory depends on, in the unit that sizes has for it.
func size(settings map[string]string, name string) int64 {
	s := sizes[name]
	n, err := (Parameter{Type: "integer", Unit: s.unit}).Number(settings[name])
	if err != nil {
		return s.fallback
	}
	return int64(n)
}

// Heaviest names the setting that saves most shared memory if it is left out.
func Heaviest(settings map[string]string, major int) string {
	heaviest, least := "shared_buffers", SharedMemory(settings, major)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if _, counts := sizes[name]; !counts {
			continue
		}
		without := maps.Clone(settings)
		delete(without, name)
		if n := SharedMemory(without, major); n < least {
			heaviest, least = name, n
		}
	}
	return heaviest
}

// Plain returns a setting in the form that RDS shows. Numbers are in the parameter's own unit.
func (p Parameter) Plain(value string) string {
	switch p.Type {
	case "bool":
		if on, ok := parseBool(value); ok && on {
			return "1"
		}
		return "0"
	case "integer", "real":
		p.Min, p.Max = "", ""
		if n, err := p.Number(value); err == nil {
			return strconv.FormatFloat(n, 'f', -1, 64)
		}
	}
	return value
}
