package fault

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/rig"
)

// A primary whose host answers nothing is replaced in seconds, without STONITH. When it wakes up,
// it follows.
func TestAFrozenPrimaryIsReplaced(t *testing.T) {
	begin(t, nil).replacesAFrozenPrimary(8 * time.Second)
}

// The same happens if nobody may change the kernel's rules. The standby's host ends the WAL
// receiver instead, and the standby's own Patroni does not bring it back.
func TestAFrozenPrimaryOfAnOrdinaryUserIsReplaced(t *testing.T) {
	depth.Deep(t)
	s := begin(t, func(o *rig.Options) { o.User = &rig.Account{UID: 65534, GID: 65534} })
	s.replacesAFrozenPrimary(20 * time.Second)
}

func (s *story) replacesAFrozenPrimary(within time.Duration) {
	s.Helper()
	id := s.given("orders", true)
	w := s.writing("orders")
	old := s.leader(id)
	s.must(old.Freeze(), "freeze the primary's host")
	defer old.Thaw()
	w.works(within)
	if s.leader(id).Name == old.Name {
		s.Fatal("the frozen primary leads still")
	}
	s.must(old.Thaw(), "thaw it")
	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	w.works(5 * time.Second)
	w.nothingLost()
	s.toldWhy(id, "was lost", "quorum")
}

// toldWhy checks the post-mortem of the newest failover.
func (s *story) toldWhy(database, cause, method string) {
	s.Helper()
	s.eventually(20*time.Second, func() error {
		all, err := s.rig.Failovers(s.Context(), database)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return errors.New("no post-mortem")
		}
		r := all[len(all)-1]
		switch {
		case !strings.Contains(r.Cause, cause):
			return fmt.Errorf("cause %q", r.Cause)
		case r.Method != method:
			return fmt.Errorf("method %q", r.Method)
		case r.Detected.IsZero() || r.Fenced.IsZero() || r.Revoked.IsZero() || r.Elected.IsZero() || r.Promoted.IsZero() || r.Switched.IsZero() || r.FirstWrite.IsZero():
			return fmt.Errorf("a phase is missing: %+v", r)
		case r.Fork == 0:
			return errors.New("it is not known where the new timeline began")
		}
		return nil
	})
}

// The network of the primary's host is cut, and its own clients still reach it. It must acknowledge
// nothing that is lost later.
func TestAloneAPartitionedPrimaryAcknowledgesNothing(t *testing.T) {
	s := alone(t, func(o *rig.Options) { o.Netns = true })
	id := s.given("orders", true)
	w := s.writing("orders")
	old := s.leader(id)
	s.must(s.rig.CutLink(old.ZoneLetter()), "cut the link")
	defer s.rig.HealLink(old.ZoneLetter())
	w.works(8 * time.Second)
	local := s.localInsert(old, "partitioned")
	s.must(s.rig.HealLink(old.ZoneLetter()), "heal the link")
	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	w.nothingLost()
	if local == nil {
		t.Error("the partitioned primary acknowledged a write after another one was promoted")
	}
	s.toldWhy(id, "was lost", "quorum")
	// Only the host that was cut off knows where its WAL ended.
	s.eventually(20*time.Second, func() error {
		all, err := s.rig.Failovers(s.Context(), id)
		if err == nil && (len(all) == 0 || all[len(all)-1].Discarded < 0) {
			err = errors.New("it is not known what was discarded")
		}
		return err
	})
}

// localInsert writes on a host itself, past the endpoint.
func (s *story) localInsert(m rig.Member, what string) error {
	return s.onHost(m, fmt.Sprintf("CREATE TABLE %s (n int)", what))
}

// onHost runs one statement on a member's host, past the endpoint.
func (s *story) onHost(m rig.Member, sql string) error {
	args := s.rig.HostCommand(m.ZoneLetter(), "timeout", "5", "psql", "-X", "-q", "-c", sql,
		fmt.Sprintf("host=%s port=%d user=app dbname=postgres sslmode=require connect_timeout=3", m.Address, m.Port))
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(cmd.Environ(), "PGPASSWORD="+rig.Password)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s on %s: %w: %s", sql, m.Name, err, bytes.TrimSpace(out))
	}
	return nil
}

// The standby of a lost host is rebuilt in another zone without a person. The old copy is removed
// when its host returns.
func TestALostStandbyIsRebuiltElsewhere(t *testing.T) {
	s := begin(t, func(o *rig.Options) { o.Serve = []string{"--replace-after", "4s"} })
	id := s.given("orders", true)
	w := s.writing("orders")
	lost := s.standby(id)
	s.must(lost.Lose(), "lose the standby's host")
	w.works(10 * time.Second)
	s.eventually(60*time.Second, func() error {
		if err := s.rig.InSync(s.Context(), id, 1); err != nil {
			return err
		}
		if now := s.standby(id); now.Zone == lost.Zone && now.Name != lost.Name {
			return fmt.Errorf("rebuilt in zone %s again", now.Zone)
		}
		return nil
	})
	s.must(s.rig.StartPart("agent-"+lost.ZoneLetter()), "the host returns")
	s.eventually(60*time.Second, func() error {
		all, err := s.rig.Members(s.Context(), id)
		if err == nil && len(all) != 2 {
			err = fmt.Errorf("%d members", len(all))
		}
		return err
	})
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", 20*time.Second), "orders")
	w.nothingLost()
}

// Only the standby is lost. Writes go on without it, as on RDS, and stall no longer than it takes
// to notice.
func TestWritesGoOnWithoutAStandby(t *testing.T) {
	s := begin(t, nil)
	id := s.given("orders", true)
	w := s.writing("orders")
	standby := s.standby(id)
	s.must(standby.Freeze(), "freeze the standby's host")
	defer standby.Thaw()
	w.works(15 * time.Second)
	s.must(standby.Thaw(), "thaw it")
	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	w.nothingLost()
}
