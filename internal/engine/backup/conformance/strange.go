package conformance

import (
	"testing"

	"howdah/internal/engine/backup"
	backupmodel "howdah/internal/model/backup"
	"howdah/internal/testkit/pgtest"
)

// A wrong passphrase is told as what it is, and is final.
func testWrongKey(t *testing.T, c Config) {
	w := begin(t, c, main)
	full := w.backup(backupmodel.Full, "op-1")
	wrong := w.place
	wrong.Dir, wrong.DataDir = w.dir(w.server, "wrong"), w.dir(w.server, "data-wrong")
	wrong.Repositories = []backup.Access{w.place.Repositories[0]}
	wrong.Repositories[0].Passphrase = "another passphrase of the same kind"
	w.write(w.server, wrong)
	const words = "cannot be read with this key"
	w.refused(w.engine.Restore(wrong, backup.Restore{Repository: main, Label: full.Label}), words)
	wrong.DataDir = w.place.DataDir
	w.write(w.server, wrong)
	w.refused(w.engine.Backup(wrong, backup.Take{Repository: main, Kind: backupmodel.Full, Operation: "op-2"}), words)
	w.refused(w.engine.Create(wrong)[0], words)
	if got := len(w.list().Backups); got != 1 {
		t.Errorf("%d backups are there after that", got)
	}
}

// Data of another server are not taken for the database's, until it is said that they are.
func testOtherData(t *testing.T, c Config) {
	w := begin(t, c, main)
	first := w.backup(backupmodel.Full, "op-1")
	other := pgtest.Start(t, pgtest.Options{Settings: "archive_mode = always\narchive_timeout = 0\narchive_command = 'false'\n"})
	p := w.placeOf(other)
	p.Repositories = w.place.Repositories
	w.write(other, p)
	const words = "another system identifier"
	w.refused(w.engine.Backup(p, backup.Take{Repository: main, Kind: backupmodel.Full, Operation: "op-2"}), words)
	w.refused(w.engine.Create(p)[0], words)

	w.server.Kill()
	w.server, w.place = other, p
	for range 2 {
		for _, command := range w.engine.Renew(p) {
			w.must(command)
		}
	}
	archiveBy(w.server, w.engine.ArchiveCommand(p))
	w.exec("CREATE TABLE kept AS SELECT 5 AS n")
	second := w.backup(backupmodel.Incremental, "op-2")
	if second.Kind != backupmodel.Full || second.SystemID == first.SystemID {
		t.Errorf("the backup after that is %+v", second)
	}
	w.restore("first", backup.Restore{Label: first.Label}).has("SELECT 'there'", "there")
	w.restore("second", backup.Restore{Label: second.Label, Target: backup.Target{Newest: true}}).has(count, "5")
}
