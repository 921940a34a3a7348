package restore

import (
	"context"
	"os"

	"howdah/internal/model/backup"
	"howdah/internal/state"
)

// Missing is a repository whose directory is not there.
type Missing struct {
	Repository string `json:"repository"`
	Path       string `json:"path"`
}

// missing returns the repositories whose directory is not on this machine.
func missing(ctx context.Context, store *state.Store) ([]Missing, error) {
	all, err := state.List[backup.Repository](ctx, store, state.RepositoryRoot)
	if err != nil {
		return nil, err
	}
	var lost []Missing
	for _, r := range all {
		if r.Value.Kind != backup.Directory {
			continue
		}
		if _, err := os.Stat(r.Value.Path); err != nil {
			lost = append(lost, Missing{r.Value.Name, r.Value.Path})
		}
	}
	return lost, nil
}
