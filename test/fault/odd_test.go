package fault

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/testkit/rig"
)

// Someone else listens where a member should. The member gets another port.
func TestAPortThatIsTaken(t *testing.T) {
	s := begin(t, nil)
	for i := 1; i <= 3; i++ {
		l, err := net.Listen("tcp", s.rig.Home.Address(1, i)+":15432")
		s.must(err, "take the port")
		defer l.Close()
	}
	s.given("orders", false)
	if out, err := s.query("orders", "SELECT 'works'"); err != nil || out != "works" {
		t.Errorf("%q, %v", out, err)
	}
}

// Someone flushes the kernel's rules. Sessions survive, and new ones get through.
func TestAloneTheKernelsRulesAreFlushed(t *testing.T) {
	s := alone(t, nil)
	s.given("orders", true)
	w := s.writing("orders")
	s.must(exec.Command("nft", "flush", "ruleset").Run(), "flush the rules")
	w.works(3 * time.Second)
	if out, err := s.query("orders", "SELECT 'works'"); err != nil || out != "works" {
		t.Errorf("a new session: %q, %v", out, err)
	}
	w.nothingLost()
}

// The disk of the primary's host is full. PostgreSQL stops there, the standby takes over, and the
// member comes back when there is room again.
func TestADiskThatIsFull(t *testing.T) {
	s := begin(t, func(o *rig.Options) {
		for _, zone := range rig.Zones {
			mountSmall(t, smallDisk(o.Dir, zone))
		}
	})
	id := s.given("orders", true)
	w := s.writing("orders")
	zone := s.leader(id).ZoneLetter()
	ballast := filepath.Join(smallDisk(s.rig.Dir, zone), "ballast")
	exec.Command("dd", "if=/dev/zero", "of="+ballast, "bs=1M").Run() // ends when the disk is full
	s.eventually(60*time.Second, func() error {
		// A server stops if its WAL finds no room.
		s.query("orders", "SELECT pg_logical_emit_message(false, 'fill', repeat('x', 4000000))::text")
		m, err := s.rig.Leader(s.Context(), id)
		if err == nil && m.ZoneLetter() == zone {
			err = errors.New("the primary is still on the full disk")
		}
		return err
	})
	w.works(10 * time.Second)
	// The disk is looked at each second. A server that found no room may have died before.
	s.eventually(20*time.Second, func() error { return s.hasEvent("orders", "is nearly full") })
	s.must(os.Remove(ballast), "make room")
	s.eventually(90*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	w.nothingLost()
}

func smallDisk(dir, zone string) string { return filepath.Join(dir, "home", "hosts", zone) }

// mountSmall puts a disk of 400 MB where a host keeps its files.
func mountSmall(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=400M,mode=755", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
}

// The record of what a host is to run is damaged. The member goes on as it was, and the record is
// written again and taken.
func TestADamagedAssignment(t *testing.T) {
	s := begin(t, nil)
	id := s.given("orders", true)
	w := s.writing("orders")
	members, err := s.rig.Members(s.Context(), id)
	s.must(err, "find the members")
	for _, m := range members {
		key := state.Assign(m.Host, member.ID(id, m.Name))
		before, err := state.Get[member.Assignment](s.Context(), s.rig.Store, key)
		s.must(err, "read the assignment")
		_, err = s.rig.Store.Client.Put(s.Context(), key, `{"id": "`)
		s.must(err, "damage the assignment")
		s.eventually(5*time.Second, func() error {
			now, err := state.Get[member.Assignment](s.Context(), s.rig.Store, key)
			if err == nil && now.Value.Generation <= before.Value.Generation {
				err = fmt.Errorf("generation %d, was %d", now.Value.Generation, before.Value.Generation)
			}
			return err
		})
		s.eventually(20*time.Second, func() error {
			now, err := state.Get[member.Report](s.Context(), s.rig.Store, state.Report(m.Host, member.ID(id, m.Name)))
			if err == nil && (now.Value.Problem != member.None || now.Value.Generation <= before.Value.Generation) {
				err = fmt.Errorf("the agent says %q of generation %d", now.Value.Problem, now.Value.Generation)
			}
			return err
		})
	}
	w.works(3 * time.Second)
	if failovers, err := s.rig.Failovers(s.Context(), id); err != nil || len(failovers) > 0 {
		t.Errorf("it cost %d failovers, %v", len(failovers), err)
	}
	w.nothingLost()
}
