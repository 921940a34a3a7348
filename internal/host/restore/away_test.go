package restore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/engine/backup"
	"howdah/internal/testkit/sourcetest"
)

// mute is an engine that cannot ask for histories while a file is there.
type mute struct {
	sourcetest.Plain
	flag string
}

func (m mute) Recovery(p backup.Place, r backup.Restore) backup.Recovery {
	recovery := m.Plain.Recovery(p, r)
	command := recovery.Settings["restore_command"]
	recovery.Settings["restore_command"] = "case %f in *.history) test ! -e " + m.flag + " || exit 126 ;; esac; " + command
	return recovery
}

// TestATimelineThatCannotBeAskedFor is not taken for one that never was: the abandoned branch before
// it would be restored.
func TestATimelineThatCannotBeAskedFor(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.Backup("one")
	b := s.Keep("b")
	s.Keep("given up")
	s.Archive()
	s.Promote("one", b.End)
	s.Keep("c")
	s.Archive()
	r := s.request(t, backup.Restore{Label: "one", Target: backup.Target{Newest: true}})
	flag := filepath.Join(s.Dir, "mute")
	r.Engine = mute{sourcetest.Plain{Dir: s.Dir}, flag}
	s.Must(os.WriteFile(flag, nil, 0o600))
	if _, err := Restore(t.Context(), r); err == nil || Final(err) || !strings.Contains(err.Error(), "cannot be asked") {
		t.Fatalf("%v", err)
	}
	s.Must(os.Remove(flag))
	_, err := Restore(t.Context(), r)
	s.Must(err)
	if rows := strings.Join(s.look(t, r), " "); rows != "b c" {
		t.Errorf("it has %q", rows)
	}
}
