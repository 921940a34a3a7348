package spec

import "testing"

// TestACapIsASetting of the database.
func TestACapIsASetting(t *testing.T) {
	for _, c := range []struct {
		tag     string
		storage int64
		want    int64
	}{
		{"", 5, 1}, {"", 200, 20}, {"", 10000, 50}, {"7", 200, 7}, {"0", 200, 20}, {"some", 200, 20},
	} {
		got := WALCap([]Tag{{Key: WALCapSetting, Value: c.tag}}, c.storage<<30)
		if got != c.want<<30 {
			t.Errorf("%q of %d GiB: %d bytes, want %d GiB", c.tag, c.storage, got, c.want)
		}
	}
}
