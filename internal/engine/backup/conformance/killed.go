package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/engine/backup"
	backupmodel "howdah/internal/model/backup"
	"howdah/internal/testkit/patience"
)

// Hold has a repository keep the next write but so many until end is called, which lets it through or
// drops it. held is closed when that write is there.
type Hold func(after int) (held <-chan struct{}, end func(through bool))

// RunKilled kills what prepares a repository before the write that comes after so many. Whatever was
// written, the repository is prepared later, and keeps what was archived meanwhile.
func RunKilled(t *testing.T, c Config, hold Hold, after int) {
	t.Helper()
	w := unprepared(t, c, main)
	held, end := hold(after)
	cmd := w.begun(w.engine.Create(w.place)[0])
	w.until(held)
	w.signal(cmd, syscall.SIGKILL)
	_ = cmd.Wait()
	end(false)
	var early string
	if after > 0 { // WAL may be archived before the preparation is at its end
		early = w.switchWAL()
		w.archived(w.server)
	}
	w.prepares()
	w.exec("CREATE TABLE kept AS SELECT 5 AS n")
	full := w.backup(backupmodel.Full, "op-1")
	w.archived(w.server)
	if early != "" && len(w.has(early)) == 0 {
		t.Errorf("%s was archived before the repository was prepared, and is not there", early)
	}
	w.keepsBackups(full.Label)
}

// RunFrozen freezes what prepares a repository before its first write, as a host may be. Another host
// prepares it meanwhile, and makes a backup. What goes on then takes nothing from that.
func RunFrozen(t *testing.T, c Config, hold Hold, other func(backup.Access) backup.Access) {
	t.Helper()
	w := unprepared(t, c, main)
	frozen := w.place
	frozen.Dir = w.dir(w.server, "frozen")
	frozen.Repositories = []backup.Access{other(w.place.Repositories[0])}
	w.write(w.server, frozen)
	held, end := hold(0)
	cmd := w.begun(w.engine.Create(frozen)[0])
	w.until(held)
	w.signal(cmd, syscall.SIGSTOP)
	w.prepares()
	w.exec("CREATE TABLE kept AS SELECT 5 AS n")
	full := w.backup(backupmodel.Full, "op-1")
	w.signal(cmd, syscall.SIGCONT)
	end(true)
	if err := cmd.Wait(); err == nil {
		t.Error("it has prepared the repository a second time")
	}
	w.switchWAL()
	w.archived(w.server)
	if list := w.list().Backups; len(list) != 1 || list[0].Label != full.Label {
		t.Errorf("the backups are now %+v", list)
	}
	w.restore("all", backup.Restore{Label: full.Label, Target: backup.Target{Newest: true}}).has(count, "5")
	w.must(w.engine.Create(frozen)[0])
}

// begun starts a command as the member's user, in a group of processes of its own.
func (w *world) begun(command backup.Command) *exec.Cmd {
	w.Helper()
	cmd := w.command(w.Context(), command)
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	return cmd
}

// signal sends a signal to a command and all that it started.
func (w *world) signal(cmd *exec.Cmd, signal syscall.Signal) {
	w.Helper()
	if err := syscall.Kill(-cmd.Process.Pid, signal); err != nil {
		w.Error(err)
	}
}

// until waits until a write is held.
func (w *world) until(held <-chan struct{}) {
	w.Helper()
	select {
	case <-held:
	case <-time.After(patience.For(within)):
		w.Error("it did not come so far")
	}
}

// prepares prepares the repository, at the second try at the latest if time goes by after the first.
func (w *world) prepares() {
	w.Helper()
	command := w.engine.Create(w.place)[0]
	if out, exit := w.run(command); exit != 0 {
		if failure := w.engine.Failed(out, exit); failure.Final {
			w.Fatalf("that is told as %+v", failure)
		}
		w.later()
	}
	w.must(command)
	w.must(command)
}

// later makes all that is noted in the place an hour older.
func (w *world) later() {
	w.Helper()
	names, err := filepath.Glob(filepath.Join(w.place.Dir, "*"))
	for _, name := range names {
		then := time.Now().Add(-time.Hour)
		if err == nil {
			err = os.Chtimes(name, then, then)
		}
	}
	if err != nil {
		w.Fatal(err)
	}
}

// has lists the files of the repository whose names begin with this.
func (w *world) has(name string) []string {
	w.Helper()
	var all []string
	w.repositories[main].Spoil(w.T, func(path string) bool {
		if strings.HasPrefix(filepath.Base(path), name) {
			all = append(all, path)
		}
		return false
	}, nil)
	return all
}

// keepsBackups takes the list of backups away. That is no preparation that was killed: nothing is made in
// its place, and it may be put back.
func (w *world) keepsBackups(label string) {
	w.Helper()
	heads := w.has("backup.info")
	if len(heads) == 0 {
		return // an engine without such a list
	}
	_, undo := w.repositories[main].Spoil(w.T, func(path string) bool { return strings.HasPrefix(filepath.Base(path), "backup.info") },
		func([]byte) []byte { return nil })
	for range 2 {
		if out, exit := w.run(w.engine.Create(w.place)[0]); exit == 0 {
			w.Errorf("a repository with backups was prepared anew:\n%s", out)
		}
		w.later()
	}
	undo()
	if list := w.list().Backups; len(list) != 1 || list[0].Label != label {
		w.Errorf("the backups are now %+v", list)
	}
	w.restore("all", backup.Restore{Label: label, Target: backup.Target{Newest: true}}).has(count, "5")
}
