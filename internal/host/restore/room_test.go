package restore

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"howdah/internal/engine/backup"
	modelbackup "howdah/internal/model/backup"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/loopdisk"
)

// TestARestoreWithoutRoom says so, whether files do not fit or WAL, leaves nothing that could be taken
// for data, and goes on when there is room.
func TestARestoreWithoutRoom(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	engine, place := s.repository(t)
	s.Keep("a")
	s.does(engine.Backup(place, backup.Take{Repository: "main", Kind: modelbackup.Full, Operation: "x"}))
	list, err := engine.ParseList([]byte(s.does(engine.List(place, "main"))))
	s.Must(err)
	// It takes room when it is replayed, and not in the archive.
	s.Exec("CREATE TABLE public.much AS SELECT i, repeat('x', 2000) FROM generate_series(1, 40000) i")
	s.Keep("b")
	s.waits(t)
	left := map[string]int64{"for files": 8 << 20, "for what is replayed": 72 << 20}
	for _, name := range depth.Some(t, 1, slices.Sorted(maps.Keys(left))) {
		t.Run(name, func(t *testing.T) {
			disk := loopdisk.New(t, "700")
			r := s.request(t, backup.Restore{Repository: "main", Label: list.Backups[0].Label, Target: backup.Target{Newest: true}})
			r.Engine, r.Place.Repositories = engine, place.Repositories
			s.movedTo(t, &r, disk.Dir)
			filler := filepath.Join(disk.Dir, "filler")
			s.Must(fill(filler, disk.Dir, left[name]))
			_, err := Restore(t.Context(), r)
			if err == nil || Final(err) || !strings.Contains(err.Error(), "No space left on device") && !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("final %v, error %v", Final(err), err)
			}
			if _, err := os.Stat(DataDir(r.Dir)); !os.IsNotExist(err) {
				t.Errorf("data are there: %v", err)
			}
			if again, err := Restore(t.Context(), r); err == nil || Final(err) {
				t.Errorf("once more: %+v, final %v, error %v", again, Final(err), err)
			}
			s.Must(os.Remove(filler))
			s.goesOn(t, r, "a b")
		})
	}
}

// movedTo has a restore be made in another file system.
func (s source) movedTo(t *testing.T, r *Request, top string) {
	t.Helper()
	dir := filepath.Join(top, "m")
	s.Must(os.Mkdir(dir, 0o700))
	if s.User != nil {
		s.Must(os.Chown(dir, s.User.UID, s.User.GID))
	}
	r.Dir = filepath.Join(dir, "restore")
	group, user, made := r.Group, r.User, r.Dir
	t.Cleanup(func() {
		if err := Discard(context.WithoutCancel(t.Context()), group, user, made); err != nil {
			t.Error(err)
		}
	})
}

// fill takes the room of a file system but for so many bytes, of which root has none in reserve.
func fill(path, dir string, free int64) error {
	var room syscall.Statfs_t
	if err := syscall.Statfs(dir, &room); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(syscall.Fallocate(int(file.Fd()), 0, 0, int64(room.Bavail)*room.Bsize-free), file.Close())
}
