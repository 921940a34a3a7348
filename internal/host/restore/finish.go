package restore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/tree"
	"howdah/internal/system/plainfile"
)

var errGone = errors.New("the data that were restored are gone")

// bare makes the configuration what a new database begins with.
func (w *work) bare(context.Context) error {
	if !tree.Exists(w.part()) {
		return errGone
	}
	if err := w.User.Do(w.plain); err != nil {
		return fmt.Errorf("remove what is the source's own: %w", err)
	}
	if err := errors.Join(tree.Sync(w.Dir), w.at("plain")); err != nil {
		return err
	}
	return w.enter(renewing)
}

// finish makes of the data a database of its own, and puts them in their place.
func (w *work) finish(ctx context.Context) error {
	if !tree.Exists(w.part()) {
		return errGone
	}
	if err := postgres.RenewIdentity(ctx, w.Install, w.User, w.part()); err != nil {
		return err
	}
	if err := errors.Join(tree.Sync(w.Dir), w.at("renewed")); err != nil {
		return err
	}
	err := w.User.Do(func() error {
		if err := os.Rename(w.part(), DataDir(w.Dir)); err != nil {
			return err
		}
		for _, name := range []string{fetchDir, confDir, engineDir, logFile, outFile} {
			if err := os.RemoveAll(w.path(name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("put the restored data in their place: %w", err)
	}
	if err := w.at("renamed"); err != nil {
		return err
	}
	if err := w.enter(whole); err != nil {
		return err
	}
	return tree.Sync(w.Dir)
}

// plain leaves a configuration as initdb makes it, and nothing of the recovery. Functions of users
// ran in the server: any file may be missing, or be anything.
func (w *work) plain() error {
	if err := w.scrub(); err != nil {
		return err
	}
	base := filepath.Join(w.part(), baseConf)
	text, err := plainfile.Read(base)
	if err != nil {
		return err
	}
	if err := plainfile.Replace(filepath.Join(w.part(), mainConf), text, 0o600); err != nil {
		return err
	}
	for _, name := range []string{"backup_label", "tablespace_map", baseConf} {
		if err := os.RemoveAll(filepath.Join(w.part(), name)); err != nil {
			return err
		}
	}
	return nil
}
