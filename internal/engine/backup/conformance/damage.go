package conformance

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"howdah/internal/engine/backup"
	backupmodel "howdah/internal/model/backup"
)

// faults returns what Verify finds of a backup.
func (w *world) faults(p backup.Place, repository, label string) []backup.Fault {
	w.Helper()
	out, exit := w.run(w.engine.Verify(p, repository, label))
	faults, err := w.engine.Verified(out, exit)
	if err != nil {
		w.Fatalf("%v:\n%s", err, out)
	}
	return faults
}

// whole expects that a repository has all that was written.
func (w *world) whole(p backup.Place, repository string) {
	w.Helper()
	if faults := w.faults(p, repository, ""); len(faults) > 0 {
		w.Errorf("the repository %s is damaged: %v", repository, faults)
	}
}

// copied restores the files of a backup into a new directory. ok says that this worked.
func (w *world) copied(name, label string) (failure backup.Failure, ok bool) {
	w.Helper()
	p := w.place
	p.Dir, p.DataDir = w.dir(w.server, "origin-"+name), w.dir(w.server, "data-"+name)
	w.write(w.server, p)
	out, exit := w.run(w.engine.Restore(p, backup.Restore{Repository: main, Label: label}))
	if exit == 0 {
		return failure, true
	}
	return w.engine.Failed(out, exit), false
}

// flip changes one bit of a file, at a place that follows from its number.
func flip(number int) func([]byte) []byte {
	return func(content []byte) []byte {
		if len(content) == 0 {
			return content
		}
		content[(len(content)-1)*(number%4)/3] ^= 0x10
		return content
	}
}

func gone([]byte) []byte { return nil }

// Whichever file of a backup has another bit, or is gone: a restore does not take it for what was
// written, and Verify names it, and whose it is.
func testDamage(t *testing.T, c Config) {
	w := prepared(t, c)
	// One file is too large to be put together with others.
	w.exec("CREATE TABLE large AS SELECT md5(n::text) AS text, random() AS other FROM generate_series(1, 60000) n")
	full := w.backup(backupmodel.Full, "op-1")
	w.exec("INSERT INTO kept VALUES (2)")
	w.exec("UPDATE large SET other = 0 WHERE random() < 0.01")
	incremental := w.backup(backupmodel.Incremental, "op-2")
	w.switchWAL()
	w.archived(w.server)
	repository := w.repositories[main]

	var files []string
	repository.Spoil(t, func(path string) bool {
		if strings.Contains(path, "/"+full.Label+"/") || strings.Contains(path, "/"+incremental.Label+"/") {
			files = append(files, path)
		}
		return false
	}, nil)
	if len(files) < 6 {
		t.Fatalf("the backups have the files %q", files)
	}
	found, spared := 0, 0
	for n, path := range files {
		changes := map[string]func([]byte) []byte{"flip": flip(n)}
		if n%3 == 0 {
			changes["gone"] = gone
		}
		for what, change := range changes {
			name := fmt.Sprintf("%s-%d", what, n)
			_, undo := repository.Spoil(t, func(p string) bool { return p == path }, change)
			failure, ok := w.copied(name, incremental.Label)
			faults := w.faults(w.place, main, incremental.Label)
			undo()
			if ok {
				spared++ // there is another copy of it, or this backup needs nothing of it
				continue
			}
			found++
			owner := full.Label
			if strings.Contains(path, "/"+incremental.Label+"/") {
				owner = incremental.Label
			}
			named := func(f backup.Fault) bool { return f.Backup == owner }
			if !failure.Suspect || failure.Final || !slices.ContainsFunc(faults, named) {
				t.Errorf("%s of %s is told as %+v, and found as %+v", what, path, failure, faults)
			}
		}
	}
	t.Logf("of %d files %d were found damaged or gone, and %d did no harm", len(files), found, spared)
	if found < len(files)/2 {
		t.Errorf("of %q only %d were found", files, found)
	}

	// Both manifests of the full backup: all of it is unreadable.
	_, undo := repository.Spoil(t, func(p string) bool {
		return strings.Contains(p, "/"+full.Label+"/") && strings.HasPrefix(filepath.Base(p), "backup.manifest")
	}, flip(2))
	failure, ok := w.copied("manifests", full.Label)
	faults := w.faults(w.place, main, full.Label)
	undo()
	if ok || !failure.Suspect || len(faults) == 0 || faults[0].Backup != full.Label {
		t.Errorf("damaged manifests are told as %+v, and found as %+v", failure, faults)
	}

	w.whole(w.place, main)
	if failure, ok := w.copied("whole", incremental.Label); !ok {
		t.Errorf("after that: %+v", failure)
	}
}

// A repository that is away is not damaged.
func testAway(t *testing.T, c Config) {
	w := begin(t, c, main)
	full := w.backup(backupmodel.Full, "op-1")
	back := w.repositories[main].Away(t)
	w.unreached(full.Label)
	out, exit := w.run(w.engine.Verify(w.place, main, full.Label))
	back()
	if faults, err := w.engine.Verified(out, exit); err == nil || len(faults) > 0 {
		t.Errorf("a repository that is away is found to be %+v, %v:\n%s", faults, err, out)
	}
	w.whole(w.place, main)
}

// unreached expects that a restore fails, and not by what the repository has.
func (w *world) unreached(label string) {
	w.Helper()
	if failure, ok := w.copied("away", label); ok || failure.Suspect || failure.Final {
		w.Errorf("a repository that cannot be read is told as %+v, %t", failure, ok)
	}
}

// RunAway tests what becomes of a restore while a repository breaks off: nothing is taken for damaged,
// and all works once it is well.
func RunAway(t *testing.T, c Config) {
	t.Helper()
	w := begin(t, c, main)
	full := w.backup(backupmodel.Full, "op-1")
	back := w.repositories[main].Away(t)
	w.unreached(full.Label)
	back()
	if failure, ok := w.copied("back", full.Label); !ok {
		t.Errorf("after that: %+v", failure)
	}
}

// WAL with another bit ends recovery with an error, or is found by a look at what recovery fetched
// last. It is never taken for the end of WAL.
func testSpoiltWAL(t *testing.T, c Config) {
	w := prepared(t, c)
	full := w.backup(backupmodel.Full, "op-1")
	w.exec("INSERT INTO kept VALUES (2)")
	first := w.switchWAL()
	w.exec("INSERT INTO kept VALUES (4)")
	spoilt := w.switchWAL()
	w.exec("INSERT INTO kept VALUES (8)")
	w.switchWAL()
	w.archived(w.server)
	r := backup.Restore{Repository: main, Label: full.Label, Target: backup.Target{Newest: true}}
	for n := range 4 {
		paths, undo := w.repositories[main].Spoil(t, func(p string) bool { return strings.HasPrefix(filepath.Base(p), spoilt+"-") }, flip(n))
		if len(paths) != 1 {
			t.Fatalf("%s is in the repository as %q", spoilt, paths)
		}
		s := w.restore(fmt.Sprintf("spoilt-%d", n), r)
		said := s.said
		if !s.failed {
			command := w.engine.CheckWAL(w.place, r, spoilt, filepath.Join(w.dir(w.server, fmt.Sprintf("check-%d", n)), spoilt))
			out, exit := w.run(command)
			if said = string(out); exit == 0 {
				t.Errorf("place %d: nobody finds that %s is damaged", n, spoilt)
			}
		}
		if f := w.engine.Failed([]byte(said), 1); f.Lost != spoilt || !f.Final || !strings.Contains(f.Reason, "damaged") {
			t.Errorf("place %d is told as %+v:\n%s", n, f, said)
		}
		undo()
	}
	if out, exit := w.run(w.engine.CheckWAL(w.place, r, first, filepath.Join(w.dir(w.server, "whole"), first))); exit != 0 {
		t.Errorf("%s is taken for damaged:\n%s", first, out)
	}
	w.restore("whole", r).has(count, "15")
}
