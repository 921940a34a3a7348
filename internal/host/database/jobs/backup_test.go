package jobs

import (
	"os"
	"path/filepath"
	"testing"

	"howdah/internal/engine/backup"
	"howdah/internal/failover/gate"
	model "howdah/internal/model/backup"
)

// TestABackupOfAnAbandonedBranchIsMadeAgain, as nothing later is restored from it.
func TestABackupOfAnAbandonedBranchIsMadeAgain(t *testing.T) {
	r := &run{place: backup.Place{DataDir: t.TempDir()}}
	wal := filepath.Join(r.place.DataDir, "pg_wal")
	if err := os.Mkdir(wal, 0o700); err != nil {
		t.Fatal(err)
	}
	before, after := model.Backup{Timeline: 2, StopLSN: 0x5000000}, model.Backup{Timeline: 2, StopLSN: 0x5000001}
	if !r.follows(after) {
		t.Error("a database on its first timeline has no abandoned branch")
	}
	for name, text := range map[string]string{"00000002.history": "1\t0/3000000\tx\n", "00000003.history": "1\t0/3000000\tx\n2\t0/5000000\tx\n"} {
		if err := os.WriteFile(filepath.Join(wal, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(wal, "00000004.history"), []byte(gate.Barred), 0o600); err != nil {
		t.Fatal(err)
	}
	if !r.follows(before) || r.follows(after) || !r.follows(model.Backup{Timeline: 3, StopLSN: 0x9000000}) {
		t.Error("it is not known where a timeline was left")
	}
}
