package spec

import (
	"testing"
	"time"
)

func TestNextMaintenance(t *testing.T) {
	for _, c := range []struct{ window, now, want string }{
		{"sun:05:00-sun:06:00", "2026-11-22T04:59:59Z", "2026-11-22T05:00:00Z"},
		{"sun:05:00-sun:06:00", "2026-11-22T05:00:00Z", "2026-11-22T05:00:00Z"},
		{"sun:05:00-sun:06:00", "2026-11-22T05:59:30Z", "2026-11-22T05:00:00Z"},
		{"sun:05:00-sun:06:00", "2026-11-22T06:00:00Z", "2026-11-29T05:00:00Z"},
		{"sat:23:30-sun:00:30", "2026-11-22T00:10:00Z", "2026-11-21T23:30:00Z"},
		{"mon:00:00-mon:01:00", "2026-11-22T12:00:00Z", "2026-11-23T00:00:00Z"},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := NextMaintenance(c.window, now).Format(time.RFC3339); got != c.want {
			t.Errorf("%s at %s: %s, want %s", c.window, c.now, got, c.want)
		}
	}
	if !NextMaintenance("never", time.Now()).IsZero() {
		t.Error("a window that is none has no beginning")
	}
}

func TestOptIns(t *testing.T) {
	var c Common
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	c.OptIn(DBUpgrade, true, now)
	c.OptIn(DBUpgrade, true, now.Add(time.Hour))
	c.OptIn("other", true, now)
	if !c.OptedIn(DBUpgrade) || len(c.OptIns) != 2 {
		t.Errorf("%+v", c.OptIns)
	}
	c.OptIn(DBUpgrade, false, now)
	if c.OptedIn(DBUpgrade) || !c.OptedIn("other") {
		t.Errorf("%+v", c.OptIns)
	}
}
