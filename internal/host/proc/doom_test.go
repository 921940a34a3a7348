package proc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

// A process that waits for a disk which does not answer cannot be proved dead. It is proved to do
// nothing any more, and it is proved dead once the disk answers.
func TestDoom(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			disk, thaw := frozenDisk(t, w.dir)
			w.start(`sleep 1000 & (echo $DATA > ` + disk + `/file) & exec sleep 1001`)
			w.waitsForDisk()
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if _, err := w.group.Kill(ctx); !errors.Is(err, ErrNotProved) {
				t.Fatalf("kill: %v", err)
			}
			again, cancelAgain := context.WithTimeout(t.Context(), patience.For(5*time.Second))
			defer cancelAgain()
			proof, err := w.group.Doom(again)
			switch {
			case w.group.containedDir() == "":
				if !errors.Is(err, ErrNoControlGroup) || !errors.Is(err, ErrNotProved) {
					t.Errorf("doom without a control group: %v", err)
				}
			case err != nil:
				t.Fatal(err)
			case proof.Found != 1 || !strings.Contains(proof.Evidence, "SIGKILL pending") || !strings.Contains(proof.Evidence, "(sh)"):
				t.Errorf("%+v", proof)
			}
			thaw()
			w.kill()
		})
	}
}

// A process that ends when it is killed is proved dead, and needs no Doom.
func TestDoomOfTheLiving(t *testing.T) {
	w := newWorld(t, best)
	if w.group.containedDir() == "" {
		t.Skip("needs a control group")
	}
	w.start(`sleep 1000 & kill -STOP $$; sleep 1001`)
	w.running(2)
	ctx, cancel := context.WithTimeout(t.Context(), patience.For(10*time.Second))
	defer cancel()
	if proof, err := w.group.Doom(ctx); err != nil || proof.Found != 0 {
		t.Errorf("%+v, %v", proof, err)
	}
	w.kill()
}

// waitsForDisk waits until a process of the member waits for its disk.
func (w *world) waitsForDisk() {
	w.t.Helper()
	testkit.Eventually(w.t, 10*time.Second, func() error {
		all, err := w.group.Processes()
		if err != nil {
			return err
		}
		for _, p := range all {
			if entry, err := w.host.Look(p); err == nil && entry.State == 'D' {
				return nil
			}
		}
		return errors.New("nobody waits")
	})
}

// frozenDisk returns a disk that does not answer until it is thawed. It is thawed at the end of the
// test, or, if the test dies, by a process that outlives it.
func frozenDisk(t *testing.T, dir string) (disk string, thaw func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a disk")
	}
	disk = filepath.Join(dir, "disk")
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v: %s", name, args, err, out)
		}
	}
	if err := os.MkdirAll(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	run("truncate", "-s", "32M", disk+".img")
	run("mkfs.ext4", "-q", disk+".img")
	run("mount", "-o", "loop", disk+".img", disk)
	t.Cleanup(func() { run("umount", disk) })
	watch := exec.Command("setsid", "sh", "-c", `read line; fsfreeze -u "$0"`, disk)
	end, err := watch.StdinPipe() // it ends with us
	if err == nil {
		err = watch.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	thaw = func() {
		_ = end.Close()
		_ = watch.Wait() // a disk that was thawed before makes it fail
	}
	t.Cleanup(thaw)
	run("fsfreeze", "-f", disk)
	return disk, thaw
}

func TestDoomedThread(t *testing.T) {
	cases := []struct {
		name, status string
		want         bool
	}{
		{"of the thread", "Name:\tx\nState:\tD (disk sleep)\nSigPnd:\t0000000000000100\nShdPnd:\t0000000000000000\n", true},
		{"of the process", "State:\tD (disk sleep)\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000101\n", true},
		{"ended", "State:\tZ (zombie)\n", true},
		{"runs still", "State:\tR (running)\nSigPnd:\t0000000000000100\n", false},
		{"another signal", "State:\tD (disk sleep)\nSigPnd:\t0000000000000200\nShdPnd:\t0000000000000080\n", false},
		{"blocked ones do not count", "State:\tD (disk sleep)\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\nSigBlk:\t0000000000000100\n", false},
		{"nothing", "", false},
	}
	for _, c := range cases {
		if got := doomedThread(c.status); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
