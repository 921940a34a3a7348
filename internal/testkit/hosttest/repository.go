package hosttest

import (
	"os"
	"time"

	"howdah/internal/identity/repository"
	"howdah/internal/model/backup"
	"howdah/internal/repository/store"
	"howdah/internal/state"
	"howdah/internal/testkit/s3test"
)

// Repository makes a repository of a directory, which need not be there, and records it as the
// home's.
func (s *Site) Repository(name, dir string) store.Store {
	s.Helper()
	s.Must(os.MkdirAll(dir, 0o700))
	files, err := store.OpenDirectory(dir, "")
	s.Must(err)
	s.record(files, backup.Repository{Name: name, Kind: backup.Directory, Path: dir}, "")
	return files
}

// S3 makes a repository of the bucket of a server, whom hosts reach at endpoint.
func (s *Site) S3(name string, server *s3test.Server, endpoint string) {
	s.Helper()
	objects, err := store.OpenS3(store.S3Config{
		Endpoint: server.Endpoint, Bucket: s3test.Bucket, CA: server.CA, AccessKey: s3test.AccessKey, Secret: s3test.Secret,
	})
	s.Must(err)
	s.record(objects, backup.Repository{
		Name: name, Kind: backup.S3, Endpoint: endpoint, Bucket: s3test.Bucket, CA: server.CA, AccessKey: s3test.AccessKey,
	}, s3test.Secret)
}

// record marks a place as the home's default repository.
func (s *Site) record(files store.Store, r backup.Repository, secret string) {
	s.Helper()
	seal, err := s.Home.SealKey()
	s.Must(err)
	sealer, err := repository.NewSealer(seal)
	s.Must(err)
	r.ID, r.Default, r.Created = repository.NewID(), true, time.Now().UTC()
	s.Must(store.WriteMarker(s.Context(), files, store.Marker{ID: r.ID, Home: s.HomeID, Created: r.Created}))
	s.Put(state.Repository(r.Name), sealer.Seal(r, repository.NewKey(), secret))
}
