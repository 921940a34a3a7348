package param

import (
	"errors"
	"maps"
	"strings"
	"testing"
)

func TestSharedMemory(t *testing.T) {
	settings := map[string]string{
		"shared_buffers": "128MB", "max_connections": "100", "max_worker_processes": "16", "max_wal_senders": "35", "autovacuum_max_workers": "3",
		"max_locks_per_transaction": "64", "wal_buffers": "-1",
	}
	usual := SharedMemory(settings, 15)
	if usual < 128<<20 || usual > 165<<20 {
		t.Errorf("%d MiB", usual>>20)
	}
	for _, c := range []struct {
		name, value string
		major       int
		least, most int64 // MiB more than usual
	}{
		{"max_connections", "1100", 15, 40, 60},
		{"shared_buffers", "1GB", 15, 900, 1000},
		{"min_dynamic_shared_memory", "1024", 15, 1024, 1024},
		{"track_activity_query_size", "1048576", 15, 160, 180},
		{"pg_stat_statements.max", "1000000", 15, 400, 480},
		{"max_pred_locks_per_transaction", "10000", 15, 400, 480},
		{"max_prepared_transactions", "1000", 15, 40, 60},
		{"transaction_buffers", "131072", 15, 0, 0},
		{"transaction_buffers", "131072", 17, 1024, 1100},
		{"autovacuum_max_workers", "1000", 17, 40, 120},
		{"autovacuum_max_workers", "1000", 18, 0, 60},
		{"autovacuum_worker_slots", "1000", 18, 50, 200},
		{"io_max_concurrency", "1024", 18, 100, 300},
		{"work_mem", "1GB", 15, 0, 0},
		{"wal_buffers", "x", 15, 0, 0},
	} {
		more := maps.Clone(settings)
		more[c.name] = c.value
		got := SharedMemory(more, c.major)>>20 - usual>>20
		if got < c.least || got > c.most {
			t.Errorf("%s=%s in %d: %d MiB more", c.name, c.value, c.major, got)
		}
		if c.least > 0 && Heaviest(more, c.major) != c.name {
			t.Errorf("with %s=%s the heaviest is %s", c.name, c.value, Heaviest(more, c.major))
		}
	}
}

func TestCheckStart(t *testing.T) {
	for _, c := range []struct {
		settings string
		major    int
		why      string
	}{
		{"", 15, ""},
		{"max_connections=30 superuser_reserved_connections=20", 15, ""},
		{"max_connections=30 superuser_reserved_connections=30", 15, "superuser_reserved_connections (30) must be less than max_connections (30)"},
		{"max_connections=30 reserved_connections=100", 15, ""},
		{"max_connections=50 reserved_connections=47", 16, "reserved_connections and superuser_reserved_connections together (50) must be less than max_connections (50)"},
		{"max_connections=51 reserved_connections=47", 17, ""},
		{"reserved_connections=97", 18, "max_connections (100)"},
		{"max_connections=200000 autovacuum_max_workers=62143", 15, "autovacuum_max_workers"},
		{"max_connections=200000 autovacuum_max_workers=62143", 18, ""},
		{"max_connections=200000 autovacuum_worker_slots=62143", 18, "autovacuum_worker_slots"},
		{"log_statement_stats=1 log_parser_stats=0 log_executor_stats=on", 15, "log_statement_stats and log_executor_stats"},
		{"log_statement_stats=0 log_parser_stats=1 log_executor_stats=on", 15, ""},
	} {
		settings := map[string]string{}
		for setting := range strings.FieldsSeq(c.settings) {
			name, value, _ := strings.Cut(setting, "=")
			settings[name] = value
		}
		err := CheckStart(settings, c.major)
		if (err == nil) != (c.why == "") || err != nil && (!errors.Is(err, ErrValue) || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s in %d: %v", c.settings, c.major, err)
		}
	}
}

// TestNewerMajors: parameters that PostgreSQL 15 does not have refuse more than their
// ranges say.
func TestNewerMajors(t *testing.T) {
	c := catalogue(t)
	for _, p := range []Parameter{
		{Name: "transaction_buffers", Type: "integer", Unit: "8kB", Min: "0", Max: "131072"},
		{Name: "notify_buffers", Type: "integer", Unit: "8kB", Min: "16", Max: "131072"},
		{Name: "vacuum_buffer_usage_limit", Type: "integer", Unit: "kB", Min: "0", Max: "16777216"},
		{Name: "io_max_concurrency", Type: "integer", Min: "-1", Max: "1024"},
	} {
		for value, good := range map[string]bool{
			"transaction_buffers=0": true, "transaction_buffers=32": true, "transaction_buffers=33": false, "transaction_buffers=128kB": true, "transaction_buffers=8kB": false,
			"notify_buffers=17": false, "notify_buffers={DBInstanceVCPU*16}": true, "notify_buffers={DBInstanceVCPU*9}": false,
			"vacuum_buffer_usage_limit=0": true, "vacuum_buffer_usage_limit=127": false, "vacuum_buffer_usage_limit=128": true, "vacuum_buffer_usage_limit=1MB": true,
			"io_max_concurrency=0": false, "io_max_concurrency=-1": true, "io_max_concurrency=1": true,
		} {
			name, value, _ := strings.Cut(value, "=")
			if name != p.Name {
				continue
			}
			if err := c.Check(p, value, []Machine{small}); (err == nil) != good {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		}
		if why := Owned(p, Family{Engine: postgresEngine, Major: 18}, Instance); why != "" {
			t.Errorf("%s: %s", p.Name, why)
		}
	}
}

func TestPlain(t *testing.T) {
	c := catalogue(t)
	for setting, want := range map[string]string{
		"max_wal_size=2GB": "2048", "wal_log_hints=on": "1", "logging_collector=off": "0", "log_rotation_age=60": "60", "idle_in_transaction_session_timeout=1d": "86400000",
		"checkpoint_completion_target=0.9": "0.9", "log_filename=postgresql.log": "postgresql.log",
	} {
		var name, value string
		for i := range setting {
			if setting[i] == '=' {
				name, value = setting[:i], setting[i+1:]
			}
		}
		p, ok := c.Find(pg15, name)
		if got := p.Plain(value); !ok || got != want {
			t.Errorf("%s: %s", setting, got)
		}
	}
}
