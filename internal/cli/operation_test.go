package cli

import (
	"strings"
	"testing"
	"time"

	"howdah/internal/admin"
	"howdah/internal/model/operation"
)

func TestOperationIDs(t *testing.T) {
	for _, name := range []string{"orders", "Cluster/Shop", "db-ABC", "ä/ö;", strings.Repeat("x", 100)} {
		for _, prefix := range []string{"drill", "backup"} {
			if id := OperationID(prefix, name, time.Now()); !operation.ValidID(id) || !strings.HasPrefix(id, prefix+"-") {
				t.Errorf("%s: %q", name, id)
			}
		}
	}
	now := time.Now()
	if a, b := OperationID("drill", "orders", now), OperationID("drill", "orders", now.Add(1)); a == b {
		t.Errorf("twice %q", a)
	}
}

func TestHowFarAnOperationIs(t *testing.T) {
	now := time.Now()
	f := Pace{Now: func() time.Time { return now }}
	for _, look := range []struct {
		unit     string
		done, of int64
		after    time.Duration
		want     string
	}{
		{"", 0, 0, 0, ""},
		{"bytes of files", 1 << 30, 0, 0, "1.0 GiB"},
		{"bytes of files", 1 << 30, 4 << 30, time.Minute, "1.0 GiB of 4.0 GiB (25 %)"},
		{"bytes of files", 2 << 30, 4 << 30, time.Minute, "2.0 GiB of 4.0 GiB (50 %), about 4m0s left"},
		{"bytes of files", 4 << 30, 4 << 30, time.Minute, "4.0 GiB of 4.0 GiB (100 %)"},
		{"bytes of wal", 1 << 20, 0, time.Minute, "1.0 MiB"},
		{"objects", 3, 4, time.Minute, ""},
		{"parts of files", 0, 10000, 0, "0 %"},
		{"parts of files", 2500, 10000, time.Minute, "25 %, about 3m0s left"},
		{"parts of files", 10000, 10000, time.Minute, "100 %"},
		{"bytes", 0, 100, 0, "0 B of 100 B (0 %)"}, // another host begins anew
		{"bytes", 50, 100, time.Second, "50 B of 100 B (50 %), about 1.0 s left"},
	} {
		now = now.Add(look.after)
		if got := f.Text(admin.Operation{Unit: look.unit, Done: look.done, Of: look.of}); got != look.want {
			t.Errorf("%+v: %q", look, got)
		}
	}
}
