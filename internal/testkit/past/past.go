// Package past restores moments of a database as somebody would who has lost all but a repository: with
// a copy of what a directory has of the database, the passphrase, and the engine. A moment costs a few
// seconds, since no database of a home is made for it: a private server replays up to it, and is asked.
package past

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	engine "howdah/internal/engine/backup"
	"howdah/internal/engine/pgbackrest"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/proc"
	"howdah/internal/host/restore"
	"howdah/internal/identity/repository"
	"howdah/internal/model/backup"
	"howdah/internal/state"
	"howdah/internal/system/owner"
)

// Config says whose past it is. All fields are required.
type Config struct {
	// Binary and Home are asked for the key of the repository Name. Store has the records of backups.
	Binary, Home, Name string
	Store              *state.Store
	// Repository is its directory, and Database a resource id.
	Repository, Database string
	Major                int
	// Dir is an empty directory that others may pass through, with a short path: sockets lie below it.
	Dir string
	// DBName is where to look.
	DBName string
}

// Past is a copy of a database's backups and WAL.
type Past struct {
	Config
	// Backups are all that can be restored.
	Backups    []backup.Backup
	passphrase string
	user       *owner.User
	engine     pgbackrest.Engine
	install    postgres.Install
	procs      *proc.Host
	count      atomic.Int64
}

// ErrNoBase says that no backup is from before a moment.
var ErrNoBase = errors.New("no backup is from before it")

const part = "part"

// Open copies what the repository has of the database now.
func Open(ctx context.Context, c Config) (*Past, error) {
	p := &Past{Config: c}
	var err error
	if err = errors.Join(p.unlock(ctx), p.asPostgres()); err != nil {
		return nil, err
	}
	if p.engine, err = pgbackrest.Find(); err != nil {
		return nil, err
	}
	if p.install, err = postgres.Find(c.Major); err != nil {
		return nil, err
	}
	name := strings.ToLower(filepath.Base(c.Dir)) + "-past"
	if p.procs, err = proc.Open(proc.Config{Parent: name, StateDir: filepath.Join(c.Dir, "groups")}); err != nil {
		return nil, err
	}
	// Backups that were removed meanwhile have no record then.
	records, err := state.List[backup.Backup](ctx, c.Store, state.BackupPrefix(c.Database))
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if r.Value.Repository == c.Name {
			p.Backups = append(p.Backups, r.Value)
		}
	}
	copied := filepath.Join(c.Dir, part)
	for _, args := range [][]string{
		{"cp", "-a", filepath.Join(c.Repository, c.Database), copied},
		{"chown", "-R", strconv.Itoa(p.user.UID) + ":" + strconv.Itoa(p.user.GID), copied},
	} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("copy the part of %s: %w: %s", c.Database, err, out)
		}
	}
	return p, nil
}

// unlock finds out what opens the part of the database.
func (p *Past) unlock(ctx context.Context) error {
	text, err := exec.CommandContext(ctx, p.Binary, "--home", p.Home, "repository", "key", "export", p.Name).Output()
	if err != nil {
		return fmt.Errorf("export the key: %w", err)
	}
	key, err := repository.Parse(string(text))
	if err != nil {
		return err
	}
	p.passphrase = repository.Passphrase(key.Key, p.Database)
	return nil
}

// asPostgres finds the user who runs PostgreSQL, which refuses to run as root.
func (p *Past) asPostgres() error {
	u, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, errUID := strconv.Atoi(u.Uid)
	gid, errGID := strconv.Atoi(u.Gid)
	p.user = &owner.User{Name: u.Username, UID: uid, GID: gid}
	return errors.Join(errUID, errGID)
}

// Look restores a moment, and has look ask the server that replayed WAL up to it, as a superuser. Zero is
// as late as there is WAL. Several may be looked at at once. Nothing is left.
func (p *Past) Look(ctx context.Context, at time.Time, look func(ctx context.Context, conn *pgx.Conn) error) (restore.Result, error) {
	target := engine.Target{Until: at}
	base, ok := backup.Base(p.Backups, at)
	if at.IsZero() {
		target = engine.Target{Newest: true}
		base, ok = backup.Newest(p.Backups)
	}
	if !ok {
		return restore.Result{}, ErrNoBase
	}
	name := "m" + strconv.FormatInt(p.count.Add(1), 10)
	dir := filepath.Join(p.Dir, name)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, p.user.UID, p.user.GID)); err != nil {
		return restore.Result{}, err
	}
	group, err := p.procs.Group(name)
	if err != nil {
		return restore.Result{}, err
	}
	work := filepath.Join(dir, "r")
	result, err := restore.Restore(ctx, restore.Request{
		Dir: work, User: p.user, Procs: p.procs, Group: group, Install: p.install, Engine: p.engine,
		Place: engine.Place{Database: p.Database, Repositories: []engine.Access{{
			Name: "main", Path: filepath.Join(p.Dir, part), Passphrase: p.passphrase,
		}}},
		Source:    engine.Restore{Repository: "main", Label: base.Label, Target: target},
		SocketDir: dir, Port: 5432, Superuser: "rdsadmin", DBName: p.DBName, Finish: look, Log: slog.New(slog.DiscardHandler),
		Settings: map[string]string{"full_page_writes": "off", "shared_buffers": "16MB"},
	})
	left := context.WithoutCancel(ctx)
	return result, errors.Join(err, restore.Discard(left, group, p.user, work), os.RemoveAll(dir))
}
