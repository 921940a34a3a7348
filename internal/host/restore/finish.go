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

// finish makes of the data what a new database begins with, and puts them in their place.
func (w *work) finish(ctx context.Context) error {
	if !tree.Exists(w.part()) {
		return errGone
	}
	if err := w.User.Do(w.plain); err != nil {
		return fmt.Errorf("remove what is the source's own: %w", err)
	}
	if err := w.at("plain"); err != nil {
		return err
	}
	if err := postgres.RenewIdentity(ctx, w.Install, w.User, w.part()); err != nil {
		return err
	}
	// It says that plain has not been here.
	if err := w.User.Do(func() error { return os.RemoveAll(filepath.Join(w.part(), baseConf)) }); err != nil {
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

// plain leaves a configuration as initdb makes it, and nothing of the recovery. It does nothing if
// it was done before.
func (w *work) plain() error {
	base := filepath.Join(w.part(), baseConf)
	if _, err := os.Lstat(base); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := w.scrub(); err != nil {
		return err
	}
	// Functions of users ran in the server: it may be anything.
	text, err := plainfile.Read(base)
	if err != nil {
		return err
	}
	for _, name := range []string{"backup_label", "tablespace_map"} {
		if err := os.RemoveAll(filepath.Join(w.part(), name)); err != nil {
			return err
		}
	}
	return plainfile.Replace(filepath.Join(w.part(), mainConf), text, 0o600)
}
