package place

import (
	"testing"

	"howdah/internal/model/member"
)

func TestLow(t *testing.T) {
	t.Parallel()
	const gib = int64(1) << 30
	for _, tt := range []struct {
		size, free int64
		want       string
	}{
		{100 * gib, 50 * gib, ""},
		{100 * gib, 5 * gib, ""},
		{100 * gib, 5*gib - 1, "5119 of 102400 MiB are free on its disk, less than a twentieth"},
		{100 * gib, 0, "0 of 102400 MiB are free on its disk, less than a twentieth"},
		{0, 0, ""},
	} {
		if got := low(tt.size, tt.free); got != tt.want {
			t.Errorf("%d of %d: %q, want %q", tt.free, tt.size, got, tt.want)
		}
	}
	for _, r := range []member.Repository{{Kind: "s3", Path: t.TempDir()}, {Kind: "directory", Path: "/nowhere/at/all"}} {
		if got := Low(r); got != "" {
			t.Errorf("%+v: %q", r, got)
		}
	}
}
