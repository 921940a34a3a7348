package param

import (
	"maps"
	"testing"
)

// No group has a database keep more WAL than its storage bears, nor hold a standby's replay up
// for ever, whatever it was allowed to say once.
func TestWALIsBounded(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for _, c := range []struct {
		name      string
		storage   int64
		set, want map[string]string
	}{
		{
			"small", 20 * gib,
			map[string]string{"max_slot_wal_keep_size": "1TB", "wal_keep_size": "2147483647", "max_wal_size": "100GB", "min_wal_size": "80000"},
			map[string]string{"max_slot_wal_keep_size": "4096", "wal_keep_size": "4096", "max_wal_size": "4096", "min_wal_size": "4096"},
		},
		{"smallest", gib, map[string]string{"max_wal_size": "4GB", "wal_keep_size": "1GB"}, map[string]string{"max_wal_size": "2048", "wal_keep_size": "1GB"}},
		{"huge", 64000 * gib, map[string]string{"max_wal_size": "1TB"}, map[string]string{"max_wal_size": "65536"}},
		{"not for ever", 20 * gib, map[string]string{"max_slot_wal_keep_size": "-1"}, map[string]string{"max_slot_wal_keep_size": "4096"}},
		{"what fits stays as it is", 20 * gib, map[string]string{"max_wal_size": "4GB", "wal_keep_size": "128", "max_standby_streaming_delay": "30s", "max_standby_archive_delay": "0"}, nil},
		{
			"replay", 0,
			map[string]string{"max_standby_streaming_delay": "-1", "max_standby_archive_delay": "2h"},
			map[string]string{"max_standby_streaming_delay": "3600000", "max_standby_archive_delay": "3600000"},
		},
		{"a formula", 20 * gib, map[string]string{"max_wal_size": "{DBInstanceClassMemory/1024}"}, map[string]string{"max_wal_size": "4096"}},
	} {
		want := c.want
		if want == nil {
			want = c.set
		}
		if got := Apply(c.set, Machine{Memory: gib, Storage: c.storage}).Settings; !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", c.name, got, want)
		}
	}
}
