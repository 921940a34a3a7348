package look

import (
	"howdah/api"
	"howdah/internal/aws/wire"
	"howdah/internal/model/backup"
	"howdah/internal/state"
)

// Repository is where databases are backed up by default; ok is false where the home has no
// repository.
func (s *Source) Repository() (r backup.Repository, ok bool) {
	return s.repository(func(r backup.Repository) bool { return r.Default })
}

// CopyRepository is where copies of backups go; ok is false where the home has none for them.
func (s *Source) CopyRepository() (r backup.Repository, ok bool) {
	return s.repository(func(r backup.Repository) bool { return r.Copies })
}

func (s *Source) repository(such func(backup.Repository) bool) (backup.Repository, bool) {
	for _, r := range state.LoadAll[backup.Repository](s.Cache, state.RepositoryRoot) {
		if such(r.Value) {
			return r.Value, true
		}
	}
	return backup.Repository{}, false
}

// RepositoryOf is the name of the repository of a database's backups, as hosts are told; "": there is
// none.
func (s *Source) RepositoryOf(database string) string {
	if kept, ok := s.AutomatedOf(database); ok {
		if _, _, there := s.Cache.Raw(state.Repository(kept.Repository)); there {
			return kept.Repository
		}
	}
	r, _ := s.Repository()
	return r.Name
}

// AutomatedOf is what is recorded of the automated backups of a database; ok is false where nothing
// is.
func (s *Source) AutomatedOf(database string) (a backup.Automated, ok bool) {
	r, err := state.Load[backup.Automated](s.Cache, state.Automated(database))
	return r.Value, err == nil
}

// NoRepository is the error where backups are asked for, and there is no place for them.
func NoRepository() error {
	return wire.NewError(api.ErrInvalidParameterCombination, "This home has no repository for backups: make one with `howdah repository add`, and try again.")
}

// StandardRetention is for how many days an instance's backups are kept for whom nobody says it.
func (s *Source) StandardRetention() int {
	if _, ok := s.Repository(); ok {
		return 1
	}
	return 0
}
