package database

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/mark"
	"howdah/internal/system/fscrypt"
	"howdah/internal/system/owner"
)

// A member's user may put anything into its directories. So no more is read of them than is
// sensible, nothing is waited for, and no name gets into a report that PostgreSQL would not give to
// a file of WAL.

// mostNames is how many names are read of a directory, or of a list, of a member's: as many files of
// WAL have 2 TiB.
const mostNames = 1 << 17

// backlog: see mark.Around.
func (c *archiver) backlog() (b mark.Backlog, err error) {
	ready, err := namesIn(c.User(), filepath.Join(c.dataDir, "pg_wal", "archive_status"))
	if err != nil {
		return b, err
	}
	for _, name := range ready {
		if name, ok := strings.CutSuffix(name, ".ready"); ok {
			b.Ready = append(b.Ready, name)
		}
	}
	if b.Broken, err = c.readBroken(); err != nil {
		return b, err
	}
	b.Foreign, err = namesIn(c.User(), c.foreignPath())
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	b.Foreign = slices.DeleteFunc(b.Foreign, func(name string) bool { return !mark.Names(name) })
	return b, err
}

// unarchived says why WAL of a primary that was stopped may not be in the archive, or "". A server that
// is shut down in good order archives all that it has, if the archive takes it. It is called in the
// member's goroutine. What was seen before the storage was locked counts afterwards.
func (c *archiver) unarchived() string {
	locked, err := fscrypt.Locked(c.Dir())
	switch {
	case errors.Is(err, os.ErrNotExist):
		return ""
	case err != nil:
		return err.Error()
	case locked && c.left == nil:
		return "its storage was locked before anybody looked"
	case locked:
		return *c.left
	}
	left := c.look()
	c.left = &left
	return left
}

// look is unarchived of storage that is not locked.
func (c *archiver) look() string {
	control, err := postgres.ReadControl(c.dataDir)
	switch {
	case errors.Is(err, postgres.ErrNoData):
		return ""
	case err != nil:
		return err.Error()
	case control.State == postgres.ShutDownInRecovery || control.State == postgres.InArchiveRecovery:
		return "" // it was a standby
	case control.State != postgres.ShutDown:
		return "it was not shut down in good order: it is " + control.State.String()
	}
	b, err := c.backlog()
	if err != nil {
		return err.Error()
	}
	b.Ready = slices.DeleteFunc(b.Ready, func(name string) bool { return !mark.Names(name) })
	if len(b.Ready) > 0 {
		return "WAL waits to be archived, from " + b.Ready[0] + " on"
	}
	if given := slices.Concat(b.Broken, b.Foreign); len(given) > 0 {
		return "WAL was given up, from " + slices.Min(given) + " on"
	}
	return ""
}

// namesIn returns what is in a directory of a user's, in order. It may be something else by now, such
// as a pipe.
func namesIn(user *owner.User, path string) (names []string, err error) {
	err = user.Do(func() error {
		dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer dir.Close()
		if names, err = dir.Readdirnames(mostNames); errors.Is(err, io.EOF) { // it is empty
			err = nil
		}
		return err
	})
	slices.Sort(names)
	return names, err
}

func (c *archiver) foreignPath() string {
	return filepath.Join(c.host.backupDir(c.ID), backup.Foreign)
}

func (c *archiver) brokenPath() string { return filepath.Join(c.host.backupDir(c.ID), backup.Broken) }

// readBroken returns the files of WAL that were given up, the oldest first.
func (c *archiver) readBroken() ([]string, error) {
	text, err := c.User().ReadFile(c.brokenPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return namesOf(string(text)), err
}

// namesOf returns the names of files of WAL that a text lists.
func namesOf(text string) (names []string) {
	for name := range strings.FieldsSeq(text) {
		if len(names) == mostNames {
			break
		}
		if mark.Names(name) {
			names = append(names, name)
		}
	}
	return names
}

// forgetBroken: see mark.Around.
func (c *archiver) forgetBroken(names []string) error {
	err := c.User().Do(func() error {
		for _, name := range names {
			if err := os.Remove(filepath.Join(c.foreignPath(), name)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	all, err := c.readBroken()
	if err != nil {
		return err
	}
	over := make(map[string]bool, len(names))
	for _, name := range names {
		over[name] = true
	}
	left := slices.DeleteFunc(all, func(name string) bool { return over[name] })
	if len(left) == 0 {
		if err := c.User().Do(func() error { return os.Remove(c.brokenPath()) }); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	return c.User().ReplaceFile(c.brokenPath(), []byte(strings.Join(left, "\n")+"\n"), 0o600)
}

// stopPatience is for how long the end of a server that is stopped for good may wait for its archive. An
// archive that failed before is not waited for. It is less than stopTimeout.
const stopPatience = 25 * time.Second

// patient lets the end of the server wait for its archive. Without that the archive lacks its last
// moments where the machine has much to do.
func (c *archiver) patient() {
	if c.Want.Archive == nil {
		return
	}
	until := strconv.FormatInt(time.Now().Add(stopPatience).Unix(), 10)
	if err := c.User().ReplaceFile(filepath.Join(c.host.backupDir(c.ID), backup.Patience), []byte(until+"\n"), 0o600); err != nil {
		c.Log.Info("let the end of the server wait for its archive", "error", err)
	}
}
