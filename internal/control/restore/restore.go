// Package restore makes a home anew from a backup, or the etcd of a home anew from what is left of
// one member. Nothing of the home may run. It makes a state of the past, on hosts that went on.
// Package regain has the rest.
package restore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"howdah/internal/identity/home"
	"howdah/internal/model/regain"
	"howdah/internal/state"
	"howdah/internal/state/backup"
	"howdah/internal/state/etcd"
	"howdah/internal/state/format"
)

var (
	// ErrRuns says that something of the home runs.
	ErrRuns = errors.New("something of this home runs: end it first")
	// ErrState says that there is a state, which would be replaced.
	ErrState = errors.New("this home has a state")
	// ErrOther says that there is another home.
	ErrOther = errors.New("there is another home in this directory")
)

// Config says what is to be restored, and where.
type Config struct {
	Dir    string // the home
	Backup string // path of the backup; "": from the state in Dir, of a member whose others are lost
	// Name and PeerAddr are those with which the control plane will be started.
	Name, PeerAddr string
	// Replace puts an existing state aside.
	Replace bool
	Version string // of this program
	Log     *slog.Logger
}

// Plan says what is restored.
type Plan struct {
	Home string `json:"home"`
	// Network is the home's part of loopback.
	Network string    `json:"network"`
	From    string    `json:"from"`
	Taken   time.Time `json:"taken"`
	// Aside is where an existing state goes. It is "" if there is none.
	Aside string `json:"aside,omitempty"`
	// Held is how many databases are to be taken over.
	Held int `json:"held,omitempty"`
	// Missing has the directories of repositories that are not on this machine. The backups of
	// databases are there, not in that of the home.
	Missing []Missing `json:"missing,omitempty"`

	own bool // the home's files are there
}

const (
	asideMark   = ".before-"
	stagingDir  = "restoring"
	stagedEtcd  = "etcd"
	stagedHome  = "home"
	stagedState = "state"
)

// Check returns what Run would do. It changes nothing.
func Check(cfg Config) (Plan, error) {
	if pid := home.FileHolder(filepath.Join(cfg.Dir, "run", "serve.lock")); pid != 0 {
		return Plan{}, fmt.Errorf("process %d serves it: %w", pid, ErrRuns)
	}
	return cfg.plan()
}

func (cfg Config) plan() (Plan, error) {
	h, err := home.OpenAny(cfg.Dir)
	own := err == nil
	if err != nil && !errors.Is(err, home.ErrNone) {
		return Plan{}, err
	}
	if pid := home.FileHolder(filepath.Join(cfg.Dir, "run", "up.lock")); pid != 0 {
		return Plan{}, fmt.Errorf("process %d supervises it: %w", pid, ErrRuns)
	}
	p := Plan{From: cfg.Backup, own: own}
	if cfg.Backup == "" {
		if !own {
			return Plan{}, err
		}
		info, err := os.Stat(cfg.survivor())
		if err != nil {
			return Plan{}, fmt.Errorf("find the state of a member: %w", err)
		}
		p.From, p.Home, p.Network, p.Taken = "its own member of etcd", h.ID, h.Network, info.ModTime().UTC()
	} else {
		b, err := backup.Verify(cfg.Backup)
		if err != nil {
			return Plan{}, err
		}
		saved, err := home.OpenAny(filepath.Join(cfg.Backup, backup.HomeDir))
		if err != nil {
			return Plan{}, err
		}
		p.Home, p.Network, p.Taken = b.Home, saved.Network, b.Taken
		if own && h.ID != b.Home {
			return Plan{}, fmt.Errorf("it is %s, and the backup is of %s: %w", h.ID, b.Home, ErrOther)
		}
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, "etcd")); err == nil {
		p.Aside = filepath.Join(cfg.Dir, "etcd"+asideMark+time.Now().UTC().Format("20060102T150405Z"))
		if !cfg.Replace && !unfinished(cfg.Dir) {
			return p, ErrState
		}
	}
	return p, nil
}

// survivor returns the data directory of the member in the home, or the one that an interrupted
// attempt put aside.
func (cfg Config) survivor() string {
	at := filepath.Join(cfg.Dir, "etcd")
	if _, err := os.Stat(at); err == nil || !unfinished(cfg.Dir) {
		return filepath.Join(at, "member")
	}
	aside, err := filepath.Glob(at + asideMark + "*")
	if err != nil || len(aside) == 0 {
		return filepath.Join(at, "member")
	}
	return filepath.Join(slices.Max(aside), "member")
}

func unfinished(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, home.RestoringFile))
	return err == nil
}

// Run restores. It makes everything beside what is there, and puts it in place by renames. A home
// that is half in place does not start. Call Run again to finish it.
func Run(ctx context.Context, cfg Config) (Plan, error) {
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return Plan{}, fmt.Errorf("make home: %w", err)
	}
	lock, err := home.LockFile(filepath.Join(cfg.Dir, "run", "serve.lock"))
	if errors.Is(err, home.ErrLocked) {
		return Plan{}, ErrRuns
	}
	if err != nil {
		return Plan{}, err
	}
	defer lock.Release()
	p, err := cfg.plan()
	if err != nil {
		return p, err
	}
	staging := filepath.Join(cfg.Dir, stagingDir)
	if err := os.RemoveAll(staging); err != nil {
		return p, fmt.Errorf("remove what is left of an earlier attempt: %w", err)
	}
	if err := os.Mkdir(staging, 0o700); err != nil {
		return p, fmt.Errorf("restore: %w", err)
	}
	defer os.RemoveAll(staging)
	if err := cfg.stage(ctx, &p, staging); err != nil {
		return p, err
	}
	return p, cfg.install(p, staging)
}

// stage makes the new state, ready to be started.
func (cfg Config) stage(ctx context.Context, p *Plan, staging string) (err error) {
	files := cfg.Dir
	snapshot := filepath.Join(cfg.Backup, backup.SnapshotFile)
	if cfg.Backup == "" {
		if snapshot, err = cfg.salvage(ctx, staging); err != nil {
			return err
		}
	} else {
		if _, err := home.Reinstate(filepath.Join(cfg.Backup, backup.HomeDir), filepath.Join(staging, stagedHome)); err != nil {
			return err
		}
		files = filepath.Join(staging, stagedHome)
	}
	dir := filepath.Join(staging, stagedEtcd)
	if err := etcd.Unpack(snapshot, dir, cfg.Name, cfg.PeerAddr); err != nil {
		return err
	}
	m, err := etcd.StartAside(ctx, dir, filepath.Join(files, "pki"), cfg.Name, false, cfg.Log)
	if err != nil {
		return err
	}
	defer m.Close()
	now, err := format.Read(ctx, m.Client)
	if err == nil {
		err = now.Check(cfg.Version)
	}
	if err != nil {
		return err
	}
	id := make([]byte, 8)
	if _, err := rand.Read(id); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	store := &state.Store{Client: m.Client}
	if p.Missing, err = missing(ctx, store); err != nil {
		return err
	}
	p.Held, err = Rewrite(ctx, store, regain.Home{ID: hex.EncodeToString(id), From: p.From, Taken: p.Taken, At: time.Now().UTC()}, cfg.Log)
	if err != nil {
		return err
	}
	m.Close()
	return home.SyncTree(dir)
}

// salvage takes a snapshot of a member whose others are lost. It works on a copy, and does not
// change the member itself.
func (cfg Config) salvage(ctx context.Context, staging string) (string, error) {
	at := filepath.Join(staging, stagedState)
	if err := os.CopyFS(filepath.Join(at, "member"), os.DirFS(cfg.survivor())); err != nil {
		return "", fmt.Errorf("copy the state: %w", err)
	}
	if err := private(at); err != nil {
		return "", err
	}
	m, err := etcd.StartAside(ctx, at, filepath.Join(cfg.Dir, "pki"), cfg.Name, true, cfg.Log)
	if err != nil {
		return "", err
	}
	defer m.Close()
	path := filepath.Join(staging, backup.SnapshotFile)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("take a snapshot: %w", err)
	}
	if err := errors.Join(m.Snapshot(ctx, file), file.Close()); err != nil {
		return "", err
	}
	return path, nil
}

func private(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := os.FileMode(0o600)
		if e.IsDir() {
			mode = 0o700
		}
		return os.Chmod(path, mode)
	})
}

// install puts the new state in place. While the mark is there, nothing starts.
func (cfg Config) install(p Plan, staging string) error {
	mark := filepath.Join(cfg.Dir, home.RestoringFile)
	if err := os.WriteFile(mark, []byte(p.From+"\n"), 0o600); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := home.SyncDir(cfg.Dir); err != nil {
		return err
	}
	at := filepath.Join(cfg.Dir, "etcd")
	if p.Aside != "" {
		if err := os.Rename(at, p.Aside); err != nil {
			return fmt.Errorf("put the state aside: %w", err)
		}
	}
	if err := os.Rename(filepath.Join(staging, stagedEtcd), at); err != nil {
		return fmt.Errorf("put the state in place: %w", err)
	}
	if !p.own {
		if _, err := home.Reinstate(filepath.Join(staging, stagedHome), cfg.Dir); err != nil {
			return err
		}
	}
	if err := home.SyncDir(cfg.Dir); err != nil {
		return err
	}
	if err := os.Remove(mark); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return home.SyncDir(cfg.Dir)
}
