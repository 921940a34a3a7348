package agent

import (
	"context"
	"path/filepath"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/engine/postgres/lsn"
)

// walEndTimeout bounds how long reading the WAL may delay the member's return.
const walEndTimeout = 3 * time.Second

// walEnd is where the WAL of a server that does not run ends: what it has beyond
// the place where its successor began was never acknowledged. 0 if it cannot be
// read in time.
func (r *runner) walEnd(ctx context.Context) lsn.LSN {
	ctx, cancel := context.WithTimeout(ctx, walEndTimeout)
	defer cancel()
	install, err := postgres.Find(r.want.Major)
	if err != nil {
		return 0
	}
	end, err := postgres.WALEnd(ctx, install, r.agent.user, filepath.Clean(r.dataDir()))
	if err != nil {
		r.log.Info("read end of WAL", "error", err)
		return 0
	}
	return end
}
