package fault

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"howdah/internal/testkit/rig"
)

// The old primary comes back to a new one that is alone, and cannot be rewound. Its data are kept
// until they are no longer the only other copy.
func TestTheOldCopyStaysUntilAStandbyIsInSync(t *testing.T) {
	s := begin(t, nil)
	id := s.given("orders", true)
	w := s.writing("orders")
	old := s.leader(id)
	const mark = "mark-of-the-old-copy"
	s.must(os.WriteFile(filepath.Join(old.DataDir(), mark), nil, 0o600), "mark the old copy")
	s.must(old.Lose(), "lose the primary's host")
	w.works(20 * time.Second)
	// With this the rewind fails, before it has changed anything.
	s.must(s.asPlatform(s.leader(id), "REVOKE EXECUTE ON FUNCTION pg_read_binary_file(text) FROM rdsrepladmin"), "forbid the rewind")
	s.must(s.rig.StartPart("agent-"+old.ZoneLetter()), "start the host again")

	copies, kept := filepath.Join(filepath.Dir(old.DataDir()), "data*", mark), false
	s.eventually(90*time.Second, func() error {
		there, err := filepath.Glob(copies)
		synced := s.rig.InSync(s.Context(), id, 1)
		if err == nil && len(there) == 0 && synced != nil {
			s.Fatalf("the old copy is gone, and no standby is in sync: %v", synced)
		}
		kept = kept || len(there) > 0 && filepath.Base(filepath.Dir(there[0])) != filepath.Base(old.DataDir())
		return errors.Join(err, synced)
	})
	if !kept {
		t.Error("the old copy was rewound: the story tells nothing")
	}
	s.eventually(20*time.Second, func() error {
		if there, err := filepath.Glob(copies); err != nil || len(there) > 0 {
			return fmt.Errorf("the old copy is there still: %q, %w", there, err)
		}
		return nil
	})
	w.works(5 * time.Second)
	w.nothingLost()
}

// asPlatform runs a statement as the platform does, on a member's private socket.
func (s *story) asPlatform(m rig.Member, sql string) error {
	_, err := s.onSocket(m, "rdsadmin", sql)
	return err
}

// onSocket asks a member's server for a text, in a database, as the platform does.
func (s *story) onSocket(m rig.Member, database, sql string) (string, error) {
	out, err := exec.Command("psql", "-X", "-q", "-At", "-c", sql, "-h", m.SocketDir(), "-p", strconv.Itoa(m.Port), "-U", "rdsadmin", "-d", database).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s on %s: %w: %s", sql, m.Name, err, out)
	}
	return strings.TrimSpace(string(out)), err
}
