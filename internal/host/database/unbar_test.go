package database

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"howdah/internal/failover/gate"
)

// TestNothingBarsAStandby for longer than a promotion takes. What a primary needs for its standbys
// stays.
func TestNothingBarsAStandby(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	r := unstarted(w.open(), "db-1.m1")
	w.Must(r.host.Give(r.host.MemberDir(r.ID)))
	wal := filepath.Join(r.dataDir, "pg_wal")
	w.Must(r.User().MakeDir(wal))
	w.Must(r.User().MakeDir(filepath.Join(r.dataDir, "global")))
	control := make([]byte, 100)
	binary.NativeEndian.PutUint32(control[48:], 2)
	w.Must(r.User().ReplaceFile(filepath.Join(r.dataDir, "global", "pg_control"), control, 0o600))
	write := func(n int, text string) {
		w.Must(r.User().ReplaceFile(filepath.Join(wal, gate.HistoryName(n)), []byte(text), 0o600))
	}
	left := func() (all string) {
		for n := range 10 {
			if _, err := os.Lstat(filepath.Join(wal, gate.HistoryName(n))); err == nil {
				all += fmt.Sprint(n)
			}
		}
		return all
	}
	for _, n := range []int{2, 3, 5, 6} {
		write(n, gate.Barred)
	}
	write(4, "1\t0/3000000\tx\n")
	w.Must(r.removeBarred(time.Now().Add(-time.Hour)))
	if got := left(); got != "23456" {
		t.Errorf("there are left %s, although a promotion may be under way", got)
	}
	w.Must(r.removeBarred(time.Now().Add(time.Second)))
	if got := left(); got != "234" {
		t.Errorf("there are left %s", got)
	}
	w.Must(os.Remove(filepath.Join(wal, gate.HistoryName(4))))
	w.Must(r.removeBarred(time.Now().Add(time.Second)))
	if got := left(); got != "2" {
		t.Errorf("there are left %s", got)
	}
}
