package conformance

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"howdah/internal/engine/backup"
	backupmodel "howdah/internal/model/backup"
	"howdah/internal/repository/transfer"
)

// copied is the database as which a copy lies in the second repository.
const copied = "copy-0123456789abcdef"

// A backup is copied to another repository by its objects, and restores there when the first one is
// gone, with another passphrase.
func testCopy(t *testing.T, c Config) {
	w := prepared(t, c)
	engine, ok := w.engine.(backup.Copier)
	if !ok {
		t.Fatalf("%s does not copy", w.engine.Name())
	}
	full := w.backup(backupmodel.Full, "op-1")
	w.exec("INSERT INTO kept VALUES (2)")
	incremental := w.backup(backupmodel.Incremental, "op-2")
	w.exec("INSERT INTO kept VALUES (4)")
	later := w.backup(backupmodel.Incremental, "op-3")

	w.repositories[second] = c.Open(t, w.server, second, copied)
	to := w.place
	to.Database, to.Dir, to.DataDir = copied, w.dir(w.server, "copy"), filepath.Join(w.place.Dir, "no-data")
	to.Repositories = []backup.Access{w.repositories[second].Access}
	w.write(w.server, to)
	ways := []transfer.Way{{
		From: database + "/" + w.engine.ArchivePrefix(w.place), To: copied + "/" + w.engine.ArchivePrefix(to),
		Want: func(rest string) bool { _, ok := w.engine.WALOf("archive/" + rest); return ok },
	}}
	for _, label := range append(slices.Clone(incremental.Needs), incremental.Label) {
		ways = append(ways, transfer.Way{From: database + "/" + engine.BackupPrefix(w.place, label), To: copied + "/" + engine.BackupPrefix(to, label)})
	}
	from, other := w.repositories[main], w.repositories[second]
	size, err := transfer.Copy{
		Source: from.Objects, Target: other.Objects, Ways: ways, MaxObjects: 1000, MaxBytes: 1 << 30, Progress: func(int64, int64) {},
	}.Run(t.Context())
	if err != nil || size.Bytes < full.Stored/2 {
		t.Fatalf("copied %+v: %v", size, err)
	}
	for n, head := range engine.Heads(w.place) {
		text := w.object(from, database+"/"+head)
		if _, err := engine.Reseal(text, other.Access.Passphrase, ""); err == nil {
			t.Errorf("%s opens with another passphrase", head)
		}
		plain, err := engine.Reseal(text, from.Access.Passphrase, "")
		if err != nil {
			t.Fatalf("%s: %v", head, err)
		}
		moved, err := engine.Reseal(text, from.Access.Passphrase, other.Access.Passphrase)
		if err != nil || bytes.Contains(moved, plain[:16]) {
			t.Fatalf("%s: %v", head, err)
		}
		if _, err := other.Objects.Put(t.Context(), copied+"/"+engine.Heads(to)[n], bytes.NewReader(moved)); err != nil {
			t.Fatal(err)
		}
	}
	if from.Remove(t, "") == 0 {
		t.Fatal("nothing was in the first repository")
	}
	w.must(engine.Settle(to, second))
	listing, err := w.engine.ParseList(w.must(w.engine.List(to, second)))
	if err != nil || len(listing.Backups) != 2 || listing.Backups[1].Label != incremental.Label || !slices.Equal(listing.Backups[1].Needs, []string{full.Label}) {
		t.Fatalf("the copy lists %+v: %v (and not %s)", listing.Backups, err, later.Label)
	}
	w.whole(to, second)
	w.place = to
	w.restore("copy", backup.Restore{Repository: second, Label: incremental.Label}).has(count, "3")
	w.restore("copy-full", backup.Restore{Repository: second, Label: full.Label}).has(count, "1")

	if other.Remove(t, "pg_data") == 0 && other.Remove(t, "1") == 0 {
		t.Fatal("no files of data are in the second repository")
	}
	if faults := w.faults(to, second, ""); len(faults) == 0 {
		t.Error("that a file is missing is not found")
	}
}

func (w *world) object(r Repository, key string) []byte {
	w.Helper()
	body, _, err := r.Objects.Get(w.Context(), key, 0, -1)
	if err != nil {
		w.Fatal(err)
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		w.Fatal(err)
	}
	return text
}
