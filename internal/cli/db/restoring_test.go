package db

import (
	"testing"
	"time"

	"howdah/internal/admin"
)

func TestHowFarARestoreIs(t *testing.T) {
	began := time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)
	for want, r := range map[string]admin.Restoring{
		"copied 1.0 GiB of 4.0 GiB (25 %), about 3m0s left": {Phase: "files", Done: 1 << 30, Of: 4 << 30, Began: began},
		"copied 0 B":                                  {Phase: "files", Began: began},
		"copied 4.0 GiB of 4.0 GiB (100 %)":           {Phase: "files", Done: 4 << 30, Of: 4 << 30, Began: began},
		"all files are there; replayed WAL: 32.0 MiB": {Phase: "wal", Done: 32 << 20, Began: began},
	} {
		if got := restoringText(r, began.Add(time.Minute)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
