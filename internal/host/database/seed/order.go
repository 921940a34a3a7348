// Package seed makes the data of a standby from a backup of its own database, so that its primary
// has not to send them. Patroni calls it in place of pg_basebackup, as the member's user. If the
// backup will not do, or the repository is away or slow, pg_basebackup does what it does.
//
// What it makes is what pg_basebackup makes: the files of a backup with its label, and the WAL that
// follows. PostgreSQL replays that from pg_wal, and streams what is newer. The standby gets no
// restore_command: with one, it would follow whatever timeline appears in the archive. These are
// what keeps it right:
//
//   - the backup is of the server that the primary is, by its system identifier, and it ended on the
//     primary's own history;
//   - of each file of WAL it gets the one that the primary's history goes by, so nothing of a branch
//     that was left;
//   - the WAL goes on, without a gap, to what the primary keeps for this standby in its slot;
//   - the data get their place at the end, whole and on the disk, by one rename. A kill leaves what
//     the next call removes.
//
// A standby that was made so confirms commits and may be promoted as any other: once Patroni has
// seen it in sync.
package seed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/host/pace"
	"howdah/internal/system/owner"
	"howdah/internal/system/plainfile"
)

// Dir is where data are made, below a member's directory.
const Dir = "seed"

// Names below that.
const (
	orderFile = "order.json"
	usedFile  = "used" // has the label of the backup of which data were made last
	dataDir   = "data"
	engineDir = "engine"
)

// Order says what to make a standby's data of. It has secrets.
type Order struct {
	Program    string       `json:"program"` // of the engine
	Place      backup.Place `json:"place"`
	Repository string       `json:"repository"`
	Label      string       `json:"label"`
	// Slot is the name of the slot in which the primary keeps WAL for the standby.
	Slot string `json:"slot"`
}

// Path is where the order of a member is.
func Path(memberDir string) string { return filepath.Join(memberDir, Dir, orderFile) }

// Place returns where the engine works for the data of a member whose own place is given.
func Place(p backup.Place, memberDir string) backup.Place {
	p.Dir, p.DataDir = filepath.Join(memberDir, Dir, engineDir), filepath.Join(memberDir, Dir, dataDir)
	return p
}

// Write has the next call make data by this order. Files are those of the engine for its place. It
// may be called while data are made.
func Write(user *owner.User, memberDir string, o Order, files []backup.File) error {
	for _, dir := range []string{filepath.Join(memberDir, Dir), o.Place.Dir} {
		if err := user.MakeDir(dir); err != nil {
			return err
		}
	}
	text, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("say what a standby is made of: %w", err)
	}
	for _, f := range append(files, backup.File{Path: Path(memberDir), Data: text, Mode: 0o600}) {
		if now, err := user.ReadFile(f.Path); err == nil && string(now) == string(f.Data) {
			continue
		}
		if err := user.ReplaceFile(f.Path, f.Data, f.Mode); err != nil {
			return err
		}
	}
	return nil
}

// Announce says that there will be an order in a moment, as soon as it is known what opens the
// repository. Whoever is to make data waits for it.
func Announce(user *owner.User, memberDir string) error {
	return user.MakeDir(filepath.Join(memberDir, Dir))
}

// Forget removes a member's order, with what it has of secrets. There may be none. Nobody may make
// data.
func Forget(user *owner.User, memberDir string) error {
	err := user.Do(func() error { return os.RemoveAll(filepath.Join(memberDir, Dir)) })
	if err != nil {
		return fmt.Errorf("forget what a standby is made of: %w", err)
	}
	return nil
}

func remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// announced is how long an order may come after it was announced, and lookEvery how often it is
// looked for.
const (
	announced = 20 * time.Second
	lookEvery = 200 * time.Millisecond
)

// await reads the order, for which it waits.
func await(ctx context.Context, path string) (o Order, err error) {
	for since := time.Now(); ; {
		o, err = read(path)
		if !errors.Is(err, os.ErrNotExist) || time.Since(since) > announced || !pace.Sleep(ctx, lookEvery) {
			return o, err
		}
	}
}

func read(path string) (o Order, err error) {
	text, err := plainfile.Read(path)
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		return o, fmt.Errorf("read what the standby is made of: %w", err)
	}
	return o, nil
}
