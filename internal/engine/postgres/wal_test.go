package postgres

import (
	"os"
	"path/filepath"
	"testing"
)

// The newest timeline is known by its files, whatever the last checkpoint was on.
func TestNewestWAL(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files    []string
		timeline int
		first    string
	}{
		"none":     {nil, 0, ""},
		"one":      {[]string{"000000010000000000000003"}, 1, "0/3000000"},
		"promoted": {[]string{"000000010000000000000004", "00000002.history", "000000020000000000000004", "000000020000000000000005"}, 2, "0/4000000"},
		"far":      {[]string{"0000000A00000012000000FF", "0000000A0000001300000000"}, 10, "12/FF000000"},
		"others":   {[]string{"archive_status", "000000020000000000000005.partial", "000000010000000000000005"}, 1, "0/5000000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "pg_wal"), 0o700); err != nil {
				t.Fatal(err)
			}
			for _, f := range c.files {
				if err := os.WriteFile(filepath.Join(dir, "pg_wal", f), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			timeline, first, err := NewestWAL(dir)
			if err != nil || timeline != c.timeline || first != c.first {
				t.Errorf("timeline %d from %s, %v", timeline, first, err)
			}
		})
	}
}
