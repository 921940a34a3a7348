package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/pace"
	"howdah/internal/system/plainfile"
)

const (
	// lifeFile has the life of the server that a program uses, in the directory of its job.
	lifeFile = "life"
	lifeLook = time.Second
)

var errRestarted = errors.New("the server ended, or was started again, while a backup used it")

// living returns a context that ends once the server that a program uses has ended. The engine does
// not notice that for long: it lost its sessions, but for up to ten minutes it waits for WAL, or for a
// standby to replay, before it uses one again. Until then nothing else could be done of the database's
// backups. over says that the server is not needed any more. end has to be called.
func (r *run) living(ctx context.Context, over func() bool) (_ context.Context, end func(), err error) {
	life, err := postgres.Life(r.place.DataDir)
	if err == nil && life == "" {
		err = errNoServer
	}
	if err == nil {
		err = plainfile.Replace(r.lifePath(), []byte(life), 0o600)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find out which server a backup uses: %w", err)
	}
	ctx, end = r.during(ctx, life, over)
	return ctx, end, nil
}

// livedOn is living for a program that is adopted. It uses the server of the time when it was started.
func (r *run) livedOn(ctx context.Context, over func() bool) (_ context.Context, end func(), err error) {
	life, err := plainfile.Read(r.lifePath())
	if errors.Is(err, os.ErrNotExist) {
		return r.living(ctx, over) // an agent of a release before began it
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find out which server a backup uses: %w", err)
	}
	ctx, end = r.during(ctx, string(life), over)
	return ctx, end, nil
}

func (r *run) lifePath() string { return filepath.Join(r.call.Dir, lifeFile) }

func (r *run) during(ctx context.Context, life string, over func() bool) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !over() {
			// What cannot be read now may be read later.
			if now, err := postgres.Life(r.place.DataDir); err == nil && now != life {
				cancel(errRestarted)
				return
			}
			if !pace.Sleep(ctx, lifeLook) {
				return
			}
		}
	}()
	return ctx, func() { cancel(nil); <-ended }
}

var errNoServer = errors.New("the server does not run")

func never() bool { return false }
