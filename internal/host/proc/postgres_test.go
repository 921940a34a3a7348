package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/proc/cgroup"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/pgversion"
)

// postgresBin is the directory of PostgreSQL's programs.
func postgresBin(t *testing.T) string {
	t.Helper()
	install, err := postgres.Find(pgversion.Major())
	if err != nil {
		testkit.Missing(t, err.Error())
	}
	return install.BinDir
}

// The real PostgreSQL is started as Patroni does it: by a helper that is gone afterwards, in a
// session of its own. It is moved, killed, and proved dead. It starts again at once on the same
// directory, which it would not do if anything of it were left.
func TestPostgreSQL(t *testing.T) {
	testkit.NeedRoot(t)
	bin := postgresBin(t)
	dir := sharedDir(t)
	data := filepath.Join(dir, "cluster")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(data, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience.For(time.Minute))
	defer cancel()
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", data, "-U", "admin", "-A", "trust", "--no-sync")
	initdb.Dir = "/"
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { removeShared(t, data) })
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			w.data = data
			postmaster := w.startPostgres(bin)
			if err := w.group.MoveDatabase(postmaster); err != nil {
				t.Fatal(err)
			}
			family, err := w.group.family(postmaster)
			if err != nil || len(family) < 5 {
				t.Fatalf("the postmaster's family: %d, %v", len(family), err)
			}
			for _, dir := range w.group.databaseDirs() {
				if inside, err := cgroup.Processes(dir); err != nil || len(inside) != len(family) {
					t.Errorf("%s holds %v, %v; PostgreSQL has %d processes", dir, inside, err, len(family))
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience.For(20*time.Second))
			defer cancel()
			exits, err := w.host.Watch(ctx, postmaster)
			if err != nil {
				t.Fatal(err)
			}
			proof := w.kill()
			t.Logf("found %d, dead in %s: %s", proof.Found, proof.At.Sub(proof.Began), proof.Evidence)
			if proof.Found != len(family)+1 {
				t.Errorf("found %d processes, where PostgreSQL had %d and Patroni 1", proof.Found, len(family))
			}
			if exit, ok := <-exits; !ok || exit.Process != postmaster {
				t.Errorf("exit %+v, %v", exit, ok)
			}
			again := w.startPostgres(bin)
			w.kill()
			// The next containment's member knows nothing of this one.
			testkit.Eventually(t, 10*time.Second, func() error {
				if entry, err := w.host.processes.Get(again.PID); err == nil && entry.ID == again {
					return errors.New("init has not taken note of the dead postmaster")
				}
				return nil
			})
		})
	}
}

// removeShared removes the shared memory that a killed PostgreSQL leaves for the next one to find.
// Its id is the second number on a line of the pid file.
func removeShared(t *testing.T, data string) {
	t.Helper()
	lines := strings.Split(read(t, filepath.Join(data, "postmaster.pid")), "\n")
	if len(lines) < 7 {
		t.Fatalf("pid file of %d lines", len(lines))
	}
	id := number(t, strings.Fields(lines[6])[1])
	if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil {
		t.Errorf("remove shared memory %d: %v", id, err)
	}
}

// startPostgres starts a Patroni that starts PostgreSQL, and returns its postmaster.
func (w *world) startPostgres(bin string) Process {
	w.t.Helper()
	command := w.command(fmt.Sprintf(`%s/pg_ctl -D $DATA -s -W -o "-k $DATA -c listen_addresses='' -c dynamic_shared_memory_type=mmap" start; exec sleep 1000`, bin))
	command.User = &User{UID: nobody, GID: nobody}
	if _, err := w.group.Start(context.Background(), command); err != nil {
		w.t.Fatal(err)
	}
	var postmaster Process
	testkit.Eventually(w.t, 30*time.Second, func() error {
		text, err := os.ReadFile(filepath.Join(w.data, "postmaster.pid"))
		if err != nil {
			return fmt.Errorf("%w; log: %s", err, w.logged())
		}
		// "ready" is on the last line. A file that the killed one left has it, too.
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		if strings.TrimSpace(lines[len(lines)-1]) != "ready" {
			return errors.New("not ready; log: " + w.logged())
		}
		if postmaster, err = Find(number(w.t, lines[0])); err != nil {
			return fmt.Errorf("%w; log: %s", err, w.logged())
		}
		return nil
	})
	return postmaster
}
