package fault

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"howdah/internal/testkit"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/rig"
)

// PostgreSQL of the primary stands still beside a live Patroni: it is killed by its own
// agent and replaced, long before Patroni would do anything.
func TestAPostgreSQLThatStandsStillIsReplaced(t *testing.T) {
	s := begin(t, nil)
	id := s.given("orders", true)
	w := s.writing("orders")
	old := s.leader(id)
	s.must(old.SignalPostgres(syscall.SIGSTOP), "stop PostgreSQL of the primary")
	s.replaced(id, old)
	w.works(5 * time.Second)
	s.toldWhy(id, "hangs", "killed")
	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	w.nothingLost()
}

// replaced waits until another member leads.
func (s *story) replaced(id string, old rig.Member) {
	s.Helper()
	s.eventually(25*time.Second, func() error {
		m, err := s.rig.Leader(s.Context(), id)
		if err == nil && m.Name == old.Name {
			err = errors.New("it leads still")
		}
		return err
	})
}

// The disk of the primary's host hangs: logins work, and no write ever ends. The standby
// takes over, and the host comes back when its disk does.
func TestADiskThatHangs(t *testing.T) {
	s := begin(t, func(o *rig.Options) {
		for _, zone := range rig.Zones {
			mountFreezable(t, smallDisk(o.Dir, zone))
		}
	})
	id := s.given("orders", true)
	w := s.writing("orders")
	old := s.leader(id)
	thaw := freeze(t, smallDisk(s.rig.Dir, old.ZoneLetter()))
	s.replaced(id, old)
	w.works(10 * time.Second)
	s.toldWhy(id, "for its disk, and so has process", "killed")
	thaw()
	s.eventually(90*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", 60*time.Second), "available at the end")
	w.nothingLost()
}

// If nobody can take over from a disk that hangs, that is told, and nothing is killed.
func TestADiskThatHangsUnderTheOnlyMember(t *testing.T) {
	depth.Deep(t)
	s := begin(t, func(o *rig.Options) {
		for _, zone := range rig.Zones {
			mountFreezable(t, smallDisk(o.Dir, zone))
		}
	})
	id := s.given("orders", false)
	w := s.writing("orders")
	only := s.leader(id)
	thaw := freeze(t, smallDisk(s.rig.Dir, only.ZoneLetter()))
	s.eventually(30*time.Second, func() error {
		i, err := s.rig.Instance(s.Context(), "orders")
		if err == nil && *i.DBInstanceStatus == "available" {
			err = errors.New("available, and nobody can write")
		}
		return err
	})
	s.eventually(20*time.Second, func() error { return s.hasEvent("orders", "hangs") })
	thaw()
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", 60*time.Second), "available after the thaw")
	w.works(10 * time.Second)
	w.nothingLost()
}

// These look like a hang to an impatient observer, and are none: writes to the disk that take three
// seconds, checkpoints without end, and more work than processors.
func TestASlowPrimaryIsNoHang(t *testing.T) {
	s := begin(t, func(o *rig.Options) {
		for _, zone := range rig.Zones {
			mountFreezable(t, smallDisk(o.Dir, zone))
		}
	})
	id := s.given("orders", true)
	w := s.writing("orders")
	primary := s.leader(id)
	s.burnProcessors(8)
	s.checkpoints("orders")
	for range 3 {
		thaw := freeze(t, smallDisk(s.rig.Dir, primary.ZoneLetter()))
		passesFully(3 * time.Second)
		thaw()
		w.works(10 * time.Second)
	}
	if all := must(s.rig.Failovers(s.Context(), id)); len(all) != 0 {
		t.Errorf("%d failovers, for nothing: %+v", len(all), all[0])
	}
	w.nothingLost()
}

// passesFully lets this much time pass. The story is about that time.
func passesFully(d time.Duration) { <-time.After(d) }

// burnProcessors keeps this many processes busy until the test ends.
func (s *story) burnProcessors(n int) {
	s.Helper()
	for range n {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		testkit.Start(s, cmd)
		s.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
}

// checkpoints makes the primary write all its pages again and again, until the test ends.
func (s *story) checkpoints(name string) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
				// An error says that the disk is slow, as it is meant to be.
				_, _ = s.query(name, "SELECT count(*)::text FROM (SELECT pg_logical_emit_message(true, 'storm', repeat('x', 100000)) FROM generate_series(1, 50)) w")
				_, _ = s.query(name, "CHECKPOINT")
			}
		}
	}()
	s.Cleanup(func() { close(done); <-ended })
}

// mountFreezable puts a disk that can be made to hang where a host keeps its files.
func mountFreezable(t *testing.T, dir string) {
	t.Helper()
	disk, err := rig.MakeDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Remove(); err != nil {
			t.Error(err)
		}
	})
}

// freeze makes a disk hang until it is thawed, by the test or at its end.
func freeze(t *testing.T, dir string) (thaw func()) {
	t.Helper()
	undo, err := rig.DiskAt(dir).Freeze()
	if err != nil {
		t.Fatal(err)
	}
	thaw = func() {
		if err := undo(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(thaw)
	return thaw
}
