package fault

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"howdah/api/rds"
	"howdah/internal/identity/kms"
	"howdah/internal/state"
	"howdah/internal/system/fscrypt"
	"howdah/internal/testkit/loopdisk"
	"howdah/internal/testkit/rig"
)

// A database has encrypted storage on three hosts of one disk. A failover works as ever. Nothing
// that users wrote is on the disk. When the database is stopped, it has no key in the kernel, and
// when it is deleted, it has none at all.
func TestEncryptedStorage(t *testing.T) {
	disk := loopdisk.New(t, "3000", "-O", "encrypt")
	s := begin(t, func(o *rig.Options) { o.Dir = disk.Dir })
	const name, secret = "orders", "nobody-may-find-this-text"
	s.must(s.rig.AskWith(s.Context(), name, func(in *rds.CreateDBInstanceMessage) {
		in.MultiAZ, in.StorageEncrypted = new(true), new(true)
	}), "create it")
	s.must(s.rig.WaitStatus(s.Context(), name, "available", time.Minute), "wait for it")
	id, err := s.rig.Database(s.Context(), name)
	s.must(err, "find it")
	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	s.eventually(20*time.Second, func() error {
		i, err := s.rig.Instance(s.Context(), name)
		if err == nil && (!*i.StorageEncrypted || i.KmsKeyId == nil) {
			err = errors.New("it is not shown as encrypted")
		}
		return err
	})
	w := s.writing(name)
	s.must(s.exec(name, "CREATE TABLE secrets AS SELECT '"+secret+"' || n AS text FROM generate_series(1, 20000) n"), "write")

	old := s.leader(id)
	s.must(old.KillPostgres(), "kill PostgreSQL of "+old.Name)
	w.works(15 * time.Second)
	s.eventually(90*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	w.nothingLost()

	keys := map[string]fscrypt.ID{}
	members, err := s.rig.Members(s.Context(), id)
	s.must(err, "list members")
	for _, m := range members {
		key, encrypted, err := fscrypt.Of(filepath.Dir(m.DataDir()))
		if err != nil || !encrypted {
			t.Fatalf("%s is encrypted: %v, %v", m.Name, encrypted, err)
		}
		keys[m.Name] = key
	}
	if len(keys) != 2 || keys[members[0].Name] == keys[members[1].Name] {
		t.Errorf("keys of the members: %v", keys)
	}
	s.must(s.rig.Call(s.Context(), "StopDBInstance", &rds.StopDBInstanceMessage{DBInstanceIdentifier: new(name)}, &rds.StopDBInstanceResult{}), "stop it")
	s.must(s.rig.WaitStatus(s.Context(), name, "stopped", 90*time.Second), "wait until it is stopped")
	s.keysGo(disk, keys)
	unix.Sync()
	image, err := os.ReadFile(disk.Image)
	s.must(err, "read the disk")
	if bytes.Contains(image, []byte(secret)) {
		t.Error("what was written is on the disk in the clear")
	}
	record, err := state.Get[kms.Storage](s.Context(), s.rig.Store, state.StorageKey(id))
	s.must(err, "find its key")

	s.must(s.rig.Call(s.Context(), "StartDBInstance", &rds.StartDBInstanceMessage{DBInstanceIdentifier: new(name)}, &rds.StartDBInstanceResult{}), "start it")
	s.must(s.rig.WaitStatus(s.Context(), name, "available", 90*time.Second), "wait until it runs again")
	s.must(s.exec(name, "DO $$BEGIN ASSERT (SELECT count(*) FROM secrets) = 20000; END$$"), "read")
	s.removed(name)
	s.keysGo(disk, keys)
	if _, err := state.Get[kms.Storage](s.Context(), s.rig.Store, record.Key); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("the key of a deleted database: %v", err)
	}
}

// keysGo waits until the kernel has none of these keys.
func (s *story) keysGo(disk loopdisk.Disk, keys map[string]fscrypt.ID) {
	s.Helper()
	s.eventually(60*time.Second, func() error {
		for name, key := range keys {
			if now, err := fscrypt.KeyState(disk.Dir, key); err != nil || now != fscrypt.Absent {
				return fmt.Errorf("the kernel has the key of %s: %v, %w", name, now, err)
			}
		}
		return nil
	})
}
