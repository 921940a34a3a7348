package restore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// TestAnOldPrimaryThatGoesOn after it was replaced makes no moment unclear.
func TestAnOldPrimaryThatGoesOn(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.Backup("one")
	b := s.Keep("b")
	s.Archive()
	old := s.Data
	s.Promote("one", b.End)
	next := s.Data
	s.Kill()
	s.Data = old
	s.Up()
	s.Exec(fmt.Sprintf("SELECT pg_sleep(%g)", mostSkew.Seconds()))
	zombie := s.Keep("of nobody")
	s.Archive()
	s.Kill()
	s.Data = next
	s.Up()
	c := s.Keep("c")
	s.Archive()
	for _, at := range []time.Time{zombie.At.Add(time.Millisecond), c.At.Add(-time.Microsecond)} {
		if rows, _ := s.restored(t, backup.Restore{Label: "one", Target: backup.Target{Until: at}}); rows != "b" {
			t.Errorf("it has %q", rows)
		}
	}
}

// TestBegun reads when a promotion began a timeline, as each version of PostgreSQL says it.
func TestBegun(t *testing.T) {
	const record = "rmgr: XLOG        len (rec/tot):     42/    42, tx:          0, lsn: 0/03000148, prev 0/03000110, desc: "
	for text, want := range map[string]string{
		record + "END_OF_RECOVERY tli 2; prev tli 1; time 2026-11-24 17:00:01.250000 UTC\n":                       "17:00:01.25",
		record + "END_OF_RECOVERY tli 2; prev tli 1; time 2026-11-24 17:00:02 UTC; wal_level replica\n":           "17:00:02",
		record + "CHECKPOINT_SHUTDOWN redo 0/3000148; tli 2; prev tli 1; fpw true; xid 0:742; shutdown\n":         "00:00:00",
		record + "NEXTOID 24576\n" + record + "END_OF_RECOVERY tli 3; prev tli 2; time 2026-11-24 17:00:03 UTC\n": "17:00:03",
	} {
		if at, err := begun(text); err != nil || at.Format("15:04:05.999999") != want {
			t.Errorf("%s, %v of %s", at, err, text)
		}
	}
}
