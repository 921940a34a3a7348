package backup

import (
	"testing"

	"howdah/internal/model/backup"
)

// What a host says of a backup may come from whoever owns the user of the database.
func TestPlausibleBackups(t *testing.T) {
	t.Parallel()
	for label, is := range map[string]bool{
		"20261124-165758F_20261124-170000I": true, "B001": true,
		"": false, "../other": false, "a/b": false, ".": false, "a\x1b[2J": false, "a\nb": false, string(make([]byte, 200)): false,
	} {
		if err := plausible(backup.Backup{Label: label}); (err == nil) != is {
			t.Errorf("%q: %v", label, err)
		}
		if err := plausible(backup.Backup{Label: "one", Needs: []string{"two", label}}); (err == nil) != is {
			t.Errorf("one that needs %q: %v", label, err)
		}
	}
	for _, b := range []backup.Backup{{Label: "one", Size: -1}, {Label: "one", Stored: -1}} {
		if plausible(b) == nil {
			t.Errorf("%+v", b)
		}
	}
}
