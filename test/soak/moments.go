package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"howdah/internal/testkit/ack"
	"howdah/internal/testkit/past"
	"howdah/internal/testkit/pgversion"
)

const (
	// manyMoments is how many moments of a database are restored at a step, momentsAtOnce at a time.
	manyMoments   = 12
	momentsAtOnce = 3
)

// moments restores random moments of a database without the home, while it and the faults go on. Each
// has all that was acknowledged by then, and nothing that was begun later.
func moments(ctx context.Context, s *Soak, d deed) error {
	m := d.database(0)
	w, err := s.window(ctx, m, time.Time{})
	if err != nil {
		return err
	}
	acks := s.everOf(m.Serial).acks()
	config, err := s.config(ctx, d.after, m)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.Rig.Dir, "p")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // PostgreSQL's user passes through
		return err
	}
	p, err := past.Open(ctx, past.Config{
		Binary: s.Rig.Binary, Home: s.Rig.Home.Dir, Name: "main", Store: s.Rig.Store, Repository: filepath.Join(s.Rig.Dir, repositoryName),
		Database: s.idOf(m.Serial), Major: pgversion.Major(), Dir: dir, DBName: config.Database,
	})
	if err != nil {
		return failed("a database's backups cannot be read without the home", err)
	}
	// They depend on when the steps before were done, so no seed would draw the same ones again.
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(momentsAtOnce)
	for range manyMoments {
		at := w.from.Add(time.Duration(rand.Int64N(max(1, int64(w.to.Sub(w.from)))))).Truncate(time.Microsecond) //nolint:gosec // it is no secret
		all.Go(func() error { return s.moment(ctx, p, m.Serial, at, acks) })
	}
	return all.Wait()
}

// moment restores one moment, and compares.
func (s *Soak) moment(ctx context.Context, p *past.Past, serial int, at time.Time, acks []ack.Ack) error {
	var there map[ack.Row]bool
	_, err := p.Look(ctx, at, func(ctx context.Context, conn *pgx.Conn) (err error) {
		there, err = rowsIn(ctx, conn, serial)
		return err
	})
	switch {
	case errors.Is(err, past.ErrNoBase), err != nil && strings.Contains(err.Error(), "branch that was abandoned"):
		s.Log("  %s is refused: %v", at.Format("15:04:05.000000"), err)
		return nil
	case err != nil:
		return failed("a moment cannot be restored without the home", fmt.Errorf("%s of %s: %w", at, s.idOf(serial), err))
	}
	s.Figures.restore()
	return s.hasRows("a moment of "+s.idOf(serial), there, acks, span{at, at})
}
