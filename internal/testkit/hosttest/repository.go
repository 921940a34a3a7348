package hosttest

import (
	"os"
	"time"

	"howdah/internal/identity/repository"
	"howdah/internal/model/backup"
	"howdah/internal/repository/store"
	"howdah/internal/state"
)

// Repository makes a repository of a directory, which need not be there, and records it as the
// home's.
func (s *Site) Repository(name, dir string) store.Store {
	s.Helper()
	s.Must(os.MkdirAll(dir, 0o700))
	seal, err := s.Home.SealKey()
	s.Must(err)
	sealer, err := repository.NewSealer(seal)
	s.Must(err)
	record := backup.Repository{Name: name, ID: repository.NewID(), Kind: backup.Directory, Path: dir, Default: true, Created: time.Now().UTC()}
	files, err := store.OpenDirectory(dir, "")
	s.Must(err)
	s.Must(store.WriteMarker(s.Context(), files, store.Marker{ID: record.ID, Home: s.HomeID, Created: record.Created}))
	s.Put(state.Repository(name), sealer.Seal(record, repository.NewKey(), ""))
	return files
}
