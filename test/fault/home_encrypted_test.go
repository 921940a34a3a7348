package fault

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/system/fscrypt"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/loopdisk"
	"howdah/internal/testkit/rig"
)

// All is lost at once except what is on the hosts' disks, and no kernel has a key any more. The
// member with the newest copy was made after the backup. The home gives its host the key to look,
// and it leads on. What was stopped is told of, too, is locked again, and starts when it is asked
// for. What was made after the backup is left alone, and status says that its key is lost.
func TestALostHomeOfEncryptedStorage(t *testing.T) {
	depth.Deep(t)
	disk := loopdisk.New(t, "4000", "-O", "encrypt")
	s := begin(t, func(o *rig.Options) { o.Dir = disk.Dir })
	id := s.givenEncrypted("orders")
	rests := s.givenEncrypted("resting")
	s.must(s.exec("resting", "CREATE TABLE kept AS SELECT generate_series(1, 1000) n"), "write")
	s.must(s.rig.Call(s.Context(), "StopDBInstance", &rds.StopDBInstanceMessage{DBInstanceIdentifier: new("resting")}, &rds.StopDBInstanceResult{}), "stop it")
	s.must(s.rig.WaitStatus(s.Context(), "resting", "stopped", 90*time.Second), "wait until it is stopped")
	backup := s.backup()
	later := s.givenEncrypted("later")
	in := &rds.ModifyDBInstanceMessage{DBInstanceIdentifier: new("orders"), MultiAZ: new(true), ApplyImmediately: new(true)}
	s.must(s.rig.Call(s.Context(), "ModifyDBInstance", in, &rds.ModifyDBInstanceResult{}), "have a standby made")
	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	w := s.writing("orders")
	primary := s.failOver(id, w)

	keys := map[string]fscrypt.ID{}
	for _, database := range []string{id, rests, later} {
		members, err := s.rig.Members(s.Context(), database)
		s.must(err, "list members")
		for _, m := range members {
			key, encrypted, err := fscrypt.Of(filepath.Dir(m.DataDir()))
			if err != nil || !encrypted {
				t.Fatalf("%s is encrypted: %v, %v", m.Name, encrypted, err)
			}
			keys[database+"."+m.Name] = key
		}
	}
	s.rig.KillPart("serve")
	for _, zone := range rig.Zones {
		s.must(s.rig.LoseHost(zone), "lose zone "+zone)
	}
	s.eventually(30*time.Second, func() error {
		for name, key := range keys {
			if busy, err := fscrypt.RemoveKey(disk.Dir, key); err != nil || busy {
				return fmt.Errorf("remove the key of %s: busy: %v, %w", name, busy, err)
			}
		}
		return nil
	})
	s.loseHome()
	s.restore(backup)
	for _, zone := range rig.Zones {
		s.must(s.rig.ReturnHost(zone), "return zone "+zone)
	}
	s.takenOver()
	w.works(60 * time.Second)
	if now := s.leaderSoon(id); now.Name != primary.Name {
		t.Errorf("%s leads, want %s", now.Name, primary.Name)
	}
	w.nothingLost()
	s.eventually(30*time.Second, func() error {
		all, err := s.problems()
		if err == nil && !strings.Contains(strings.Join(all, "\n"), "the key of it is lost") {
			err = fmt.Errorf("%q", all)
		}
		return err
	})
	for name, key := range keys {
		if strings.HasPrefix(name, id+".") {
			continue
		}
		s.eventually(30*time.Second, func() error {
			now, err := fscrypt.KeyState(disk.Dir, key)
			if err == nil && now != fscrypt.Absent {
				err = errors.New("the kernel has the key of " + name)
			}
			return err
		})
	}
	if left, err := filepath.Glob(filepath.Join(s.rig.HostDir("?"), "members", later+".*")); err != nil || len(left) != 1 {
		t.Errorf("what is left of later: %q, %v", left, err)
	}
	s.must(s.rig.Call(s.Context(), "StartDBInstance", &rds.StartDBInstanceMessage{DBInstanceIdentifier: new("resting")}, &rds.StartDBInstanceResult{}), "start it")
	s.must(s.rig.WaitStatus(s.Context(), "resting", "available", 90*time.Second), "wait until it runs again")
	s.must(s.exec("resting", "DO $$BEGIN ASSERT (SELECT count(*) FROM kept) = 1000; END$$"), "read")
}

// givenEncrypted makes an instance with encrypted storage.
func (s *story) givenEncrypted(name string) (id string) {
	s.Helper()
	s.must(s.rig.AskWith(s.Context(), name, func(in *rds.CreateDBInstanceMessage) { in.StorageEncrypted = new(true) }), "create "+name)
	s.must(s.rig.WaitStatus(s.Context(), name, "available", time.Minute), "wait for "+name)
	id, err := s.rig.Database(s.Context(), name)
	s.must(err, "find "+name)
	return id
}
