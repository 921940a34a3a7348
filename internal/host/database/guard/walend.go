package guard

import (
	"context"
	"path/filepath"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/failover/fence"
	"howdah/internal/model/lsn"
)

// walEndTimeout bounds how long reading the WAL may delay the member's return.
const walEndTimeout = 3 * time.Second

// TellWALEnd records where the WAL of this member ended, which was a primary until
// the case took its role away. The cut keeps it from being rewound before.
func (g *Guard) TellWALEnd(ctx context.Context, c fence.Case) {
	end, timeline := g.walEnd(ctx, g.Want.Major)
	if end == 0 {
		return
	}
	g.Record(ctx, fence.Incident{
		Kind: fence.WALEnd, Database: c.Leadership.Database, Member: c.Leadership.Leader, Host: g.Agent.Name,
		Cause: "its host came back", Detected: time.Now().UTC(), Revoked: c.RevokedAt, OldEnd: end, Timeline: timeline,
	})
}

// walEnd is where the WAL of a server that does not run ends: what it has beyond
// the place where its successor began was never acknowledged. 0 if it cannot be
// read in time.
func (g *Guard) walEnd(ctx context.Context, major int) (end lsn.LSN, timeline int) {
	ctx, cancel := context.WithTimeout(ctx, walEndTimeout)
	defer cancel()
	install, err := postgres.Find(major)
	if err != nil {
		return 0, 0
	}
	end, timeline, err = postgres.WALEnd(ctx, install, g.User(), filepath.Clean(g.DataDir))
	if err != nil {
		g.Log.Info("read end of WAL", "error", err)
		return 0, 0
	}
	return end, timeline
}
