package param

import (
	"fmt"
	"slices"
)

// mostBackends is the largest number of processes that PostgreSQL can count.
const mostBackends = 262143

// CheckStart refuses settings with which PostgreSQL of a major version would not start, although
// each of them is valid. The error wraps ErrValue and names the parameters.
func CheckStart(settings map[string]string, major int) error {
	if err := CheckTogether(settings); err != nil {
		return err
	}
	n := func(name string) int64 { return size(settings, name) }
	reserved, names := plain(settings, "superuser_reserved_connections", 3), "superuser_reserved_connections"
	if major >= 16 {
		reserved += plain(settings, "reserved_connections", 0)
		names = "reserved_connections and superuser_reserved_connections together"
	}
	if reserved >= n("max_connections") {
		return fmt.Errorf("%w: %s (%d) must be less than max_connections (%d)", ErrValue, names, reserved, n("max_connections"))
	}
	workers := "autovacuum_max_workers"
	if major >= 18 {
		workers = "autovacuum_worker_slots"
	}
	if all := n("max_connections") + n(workers) + 1 + n("max_worker_processes") + n("max_wal_senders"); all > mostBackends {
		return fmt.Errorf("%w: max_connections, %s, max_worker_processes and max_wal_senders ask for %d processes together, and there can be %d", ErrValue, workers, all, mostBackends)
	}
	return nil
}

// plain returns a setting as a whole number without a unit, or otherwise if it is not set.
func plain(settings map[string]string, name string, otherwise int64) int64 {
	n, err := (Parameter{Type: "integer"}).Number(settings[name])
	if err != nil {
		return otherwise
	}
	return int64(n)
}

// CheckTogether is the part of CheckStart that depends only on the given values. No group can have
// values that it refuses, whoever uses the group.
func CheckTogether(values map[string]string) error {
	on := func(name string) bool { b := boolOf(values[name]); return b != nil && *b }
	stages := []string{"log_parser_stats", "log_planner_stats", "log_executor_stats"}
	if i := slices.IndexFunc(stages, on); i >= 0 && on("log_statement_stats") {
		return fmt.Errorf("%w: log_statement_stats and %s cannot both be on", ErrValue, stages[i])
	}
	return nil
}
