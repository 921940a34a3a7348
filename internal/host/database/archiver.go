package database

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/pgbackrest"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/host/database/archive"
	"howdah/internal/host/database/dial"
	"howdah/internal/host/database/mark"
	"howdah/internal/host/database/origin"
	"howdah/internal/host/database/seed"
	"howdah/internal/host/database/slots"
	"howdah/internal/host/pace"
	"howdah/internal/identity/certs"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/repository/store"
)

const (
	// backupDir has what the engine needs, in the member's directory.
	backupDir = "backup"
	// failsLong is how long the archive fails before that is a problem.
	failsLong = 2 * time.Minute
	// prepareTimeout bounds the making of a database's part of a repository.
	prepareTimeout = 2 * time.Minute
	prepareEvery   = time.Second
)

// openRepositories finds out who was let into repositories before.
func (a *Host) openRepositories() (err error) {
	a.repositories, err = archive.New(a.Agent)
	if err != nil {
		return err
	}
	a.repositories.Wrote, a.repositories.Opened, a.repositories.Backed = a.wrote, a.opened, a.backed
	return nil
}

// listenForArchivers has the agent answer members that archive and back up. Where it cannot listen,
// WAL waits, and databases go on.
func (a *Host) listenForArchivers(ctx context.Context) (answer func(context.Context) error) {
	answer, err := a.repositories.Begin(ctx, a.certificate.get)
	if err != nil {
		a.Log.Error("nothing is archived or backed up on this host", "error", err)
		return func(context.Context) error { return nil }
	}
	return answer
}

// wrote tells whoever makes marks of a database what came into a repository.
func (a *Host) wrote(repository, database, key string) {
	if a.engine == nil {
		return
	}
	name, ok := a.engine.WALOf(strings.TrimPrefix(key, database+"/"))
	if !ok {
		return
	}
	for _, r := range a.allRunners() {
		if r.Database() == database {
			r.archiver.watch.Wrote(repository, name)
		}
	}
}

// opened has a member write its files once it is known what opens its repositories.
func (a *Host) opened(holder string) {
	if m := a.Find(holder); m != nil {
		m.Do(func(context.Context) { runnerOf(m).archiver.write() })
	}
}

// backed has a member look again from where its database can be restored.
func (a *Host) backed(database string) {
	for _, r := range a.allRunners() {
		if r.Database() == database {
			r.archiver.watch.Backed()
		}
	}
}

// restoring ends the name of a holder: a member that is restored.
const restoring = "/restore"

// openSource opens what a member is restored from, to be read.
func (a *Host) openSource(ctx context.Context, id string, from member.Restore) (origin.Source, error) {
	if a.sources != nil {
		return a.sources(ctx, id, from)
	}
	if from.Live {
		return a.openClone(from), nil
	}
	if a.engine == nil {
		return origin.Source{}, a.noEngine
	}
	holder := id + restoring
	all, err := a.repositories.Admit(ctx, holder, archive.Part{Database: from.Database, Repository: from.Repository, ReadOnly: true})
	if err != nil {
		return origin.Source{}, err
	}
	return origin.Source{Engine: a.engine, Access: all[0], CA: a.repositories.CA(), Close: func() {
		if err := a.repositories.Dismiss(holder); err != nil {
			a.Log.Warn("close what a member was restored from", "member", id, "error", err)
		}
	}}, nil
}

// parameters are the settings of a member alone.
func (a *Host) parameters(as member.Assignment) map[string]string {
	all := map[string]string{}
	maps.Copy(all, as.Parameters)
	maps.Copy(all, as.TopologySettings())
	maps.Copy(all, slots.Settings(as))
	all[spec.AgentSocketSetting] = a.exchangeSocket(as.ID)
	all[spec.DatabaseSetting] = as.Scope
	if as.Archive != nil && a.engine != nil {
		maps.Copy(all, spec.ArchiveParameters(a.engine.ArchiveCommand(backup.Place{Dir: a.backupDir(as.ID)})))
	}
	return all
}

// serverPort is where servers for backups of standbys listen, or on one of the ports that follow.
const serverPort = agent.KindPort + 40

// backupPort finds a port that is free. Whoever takes it meanwhile is not trusted: see jobs.
func (a *Host) backupPort(ctx context.Context) (string, int, error) {
	l, err := a.ListenFrom(ctx, serverPort)
	if err != nil {
		return "", 0, err
	}
	return a.Address, l.Addr().(*net.TCPAddr).Port, l.Close()
}

// ownDir is the directory of a member with what it shows as a client.
func (a *Host) ownDir(id string) string { return filepath.Join(a.MemberDir(id), patroni.OwnDir) }

func (a *Host) backupDir(id string) string { return filepath.Join(a.MemberDir(id), backupDir) }

// archiver sees to the archive of one member's WAL: it writes what the engine needs, prepares the
// database's part of each repository, and knows how far the archive is.
type archiver struct {
	*agent.Member
	host    *Host
	runner  *runner
	dataDir string
	watch   *mark.Watch
	left    *string // what look said last, since the member ran; nil: nobody looked

	mu    sync.Mutex
	place backup.Place // guarded by mu: as its files were written last; its zero value: never
	lacks error        // guarded by mu: why they were not, or why nothing is archived there
}

func newArchiver(a *Host, r *runner) *archiver {
	c := &archiver{Member: r.Member, host: a, runner: r, dataDir: r.dataDir}
	c.watch = &mark.Watch{Around: mark.Around{
		Database: r.Database(), Log: r.Log, Primary: c.primary, Connect: c.connect,
		Objects: c.objects, Backups: c.backups, List: c.list, History: c.history,
		Backlog: c.backlog, Forget: c.forgetBroken, Why: c.why,
	}}
	return c
}

// placeOf is the place of a member that reaches repositories like this.
func (a *Host) placeOf(as member.Assignment, repositories []backup.Access) (backup.Place, error) {
	install, err := postgres.Find(as.Major)
	if err != nil {
		return backup.Place{}, err
	}
	repositories = slices.Clone(repositories)
	for n := range repositories {
		repositories[n].CAFile = filepath.Join(a.MemberDir(as.ID), patroni.CertDir, certs.CAFile)
	}
	p := backup.Place{
		Database: as.Scope, Dir: a.backupDir(as.ID), DataDir: filepath.Join(a.MemberDir(as.ID), patroni.DataDir),
		SocketDir: a.SocketDir(as.ID), Port: as.Port, User: "rdsadmin", DBName: "rdsadmin", Major: as.Major, BinDir: install.BinDir,
		Repositories: repositories,
	}
	if as.Archive != nil {
		p.Cap = as.Archive.Cap
	}
	return p, nil
}

// partsOf are the parts of repositories that a member needs to archive.
func partsOf(as member.Assignment) []archive.Part {
	var parts []archive.Part
	if as.Archive != nil {
		for _, repository := range as.Archive.Repositories {
			parts = append(parts, archive.Part{Database: as.Scope, Repository: repository})
		}
	}
	return parts
}

// write brings the files of the engine up to date, as far as it is known what opens the
// repositories. It is called by the member's goroutine, and does not wait: it is called again when
// more is known. Nothing that is written before is taken away, so archiving goes on meanwhile.
func (c *archiver) write() {
	if c.Want.Want != member.Running {
		return
	}
	if c.Want.Archive == nil {
		if err := errors.Join(c.host.repositories.Dismiss(c.ID), seed.Forget(c.User(), c.Dir())); err != nil {
			c.Log.Warn("end the archive of WAL", "error", err)
		}
		return
	}
	place, err := c.writeFiles()
	if errors.Is(err, archive.ErrAwaited) && c.Want.Copy != nil {
		err = errors.Join(err, seed.Announce(c.User(), c.Dir()))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lacks = err
	if err == nil {
		c.place = place
		c.host.repositories.SetPlace(c.ID, place)
		return
	}
	if !errors.Is(err, archive.ErrAwaited) {
		c.Log.Warn("prepare the archive of WAL", "error", err)
	}
}

func (c *archiver) writeFiles() (backup.Place, error) {
	if c.host.engine == nil {
		return backup.Place{}, c.host.noEngine
	}
	repositories, err := c.host.repositories.Known(c.ID, partsOf(c.Want)...)
	if err != nil {
		return backup.Place{}, err
	}
	place, err := c.host.placeOf(c.Want, repositories)
	if err != nil {
		return backup.Place{}, err
	}
	if err := c.User().MakeDir(place.Dir); err != nil {
		return backup.Place{}, err
	}
	files := c.host.engine.Files(place)
	if err := c.removeOthers(place.Dir, files); err != nil {
		return backup.Place{}, err
	}
	for _, f := range files {
		if now, err := c.User().ReadFile(f.Path); err == nil && bytes.Equal(now, f.Data) {
			continue
		}
		if err := c.User().ReplaceFile(f.Path, f.Data, f.Mode); err != nil {
			return backup.Place{}, err
		}
	}
	return place, c.order(place)
}

// order says which backup a standby without data may begin with, if there is one that it reaches.
func (c *archiver) order(place backup.Place) error {
	engine, ok := c.host.engine.(pgbackrest.Engine)
	from := c.Want.Copy
	if !ok || from == nil || !slices.Contains(c.Want.Archive.Repositories, from.Repository) {
		return seed.Forget(c.User(), c.Dir())
	}
	place = seed.Place(place, c.Dir())
	return seed.Write(c.User(), c.Dir(), seed.Order{
		Program: engine.Program, Place: place, Repository: from.Repository, Label: from.Label, Slot: patroni.SlotName(c.Want.PatroniName()),
	}, engine.Files(place))
}

// removeOthers removes configurations of repositories that the member does not use any more: they
// have secrets.
func (c *archiver) removeOthers(dir string, files []backup.File) error {
	return c.User().Do(func() error {
		found, err := filepath.Glob(filepath.Join(dir, "*.conf"))
		for _, path := range found {
			if !slices.ContainsFunc(files, func(f backup.File) bool { return f.Path == path }) {
				err = errors.Join(err, os.Remove(path))
			}
		}
		return err
	})
}

// written is the place whose files were written last.
func (c *archiver) written() (backup.Place, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.place, c.place.Dir != ""
}

// primary: see mark.Around.
func (c *archiver) primary() (repository string, ok bool) {
	target, seen := c.runner.probe.Target(), c.runner.probe.Last()
	if target.Archive == nil || len(target.Archive.Repositories) == 0 || !seen.Ready || seen.Facts.InRecovery || c.runner.fencing.Load() || c.host.engine == nil {
		return "", false
	}
	return target.Archive.Repositories[0], true
}

func (c *archiver) connect(ctx context.Context) (*pgx.Conn, error) {
	return dial.Admin(ctx, c.host.Agent, c.runner.probe.Target())
}

// checkpoint has a member that runs here make a checkpoint. That takes as long as the disk needs.
func (a *Host) checkpoint(ctx context.Context, id string) error {
	m := a.Find(id)
	if m == nil {
		return fmt.Errorf("%s is not on this host", id)
	}
	conn, err := runnerOf(m).archiver.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, "CHECKPOINT")
	return err
}

func (c *archiver) objects(repository string) (store.Objects, error) {
	return c.host.repositories.Store(repository)
}

// prepare makes the database's part of each repository, once the member is a primary. What is there
// already stays.
func (c *archiver) prepare(ctx context.Context) {
	prepared := map[string]bool{}
	var tries pace.Backoff
	for pace.Sleep(ctx, prepareEvery) {
		place, ok := c.written()
		if _, primary := c.primary(); !primary || !ok {
			clear(prepared)
			continue
		}
		key := fmt.Sprint(place)
		now := time.Now()
		if prepared[key] || !tries.Ready(now) {
			continue
		}
		tries.Attempt(now)
		err := c.create(ctx, place)
		c.mu.Lock()
		c.lacks = err
		c.mu.Unlock()
		if err != nil {
			if ctx.Err() == nil {
				c.Log.Info("prepare the repository", "error", err)
			}
			continue
		}
		clear(prepared)
		prepared[key], tries = true, pace.Backoff{}
	}
}

var errEngine = errors.New("prepare the repository")

// create has the engine make the database's part. If that has files of a server before this one,
// it is told of the new one.
func (c *archiver) create(ctx context.Context, place backup.Place) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	e := c.host.engine
	renew := e.Renew(place)
	for n, command := range e.Create(place) {
		out, exit, err := runAs(ctx, c.User(), command)
		if err == nil && exit != 0 {
			if again, code, _ := runAs(ctx, c.User(), renew[n]); code != 0 {
				return fmt.Errorf("%w: %s", errEngine, e.Failed(slices.Concat(out, again), exit).Reason)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// backups: see mark.Around.
func (c *archiver) backups(ctx context.Context, repository string) (all []mark.Backup, err error) {
	place, ok := c.written()
	if !ok || !slices.ContainsFunc(place.Repositories, func(a backup.Access) bool { return a.Name == repository }) {
		return nil, fmt.Errorf("%w %s", archive.ErrAwaited, repository)
	}
	listing, err := c.host.listBackups(ctx, c.User(), place, repository)
	for _, b := range listing.Backups {
		all = append(all, mark.Backup{Timeline: b.Timeline, Start: b.StartLSN, Stop: b.StopLSN})
	}
	return all, err
}

// list: see mark.Around.
func (c *archiver) list(ctx context.Context, repository string, f func(name string)) error {
	objects, err := c.host.repositories.Store(repository)
	if err != nil {
		return err
	}
	part := c.Database() + "/"
	query := store.Query{Prefix: part + c.host.engine.ArchivePrefix(backup.Place{Database: c.Database()}), Max: store.MaxList}
	for {
		page, err := objects.List(ctx, query)
		if err != nil {
			return err
		}
		for _, o := range page.Objects {
			if name, ok := c.host.engine.WALOf(strings.TrimPrefix(o.Key, part)); ok {
				f(name)
			}
		}
		if query.After = page.Next; page.Next == "" {
			return nil
		}
	}
}

// history: see mark.Around.
func (c *archiver) history(timeline int) (string, error) {
	text, err := c.User().ReadFile(filepath.Join(c.dataDir, "pg_wal", fmt.Sprintf("%08X.history", timeline)))
	return string(text), err
}

// why: see mark.Around.
func (c *archiver) why() string {
	if why := c.host.repositories.Why(c.ID); why != "" {
		return why
	}
	c.mu.Lock()
	lacks := c.lacks
	c.mu.Unlock()
	if lacks != nil {
		return lacks.Error()
	}
	text, err := c.User().ReadFile(filepath.Join(c.host.backupDir(c.ID), backup.Failing))
	if err != nil || c.host.engine == nil {
		return ""
	}
	return c.host.engine.Failed(text, 1).Reason
}

// describe says how the archive of a primary's WAL is, and whether that is a problem.
func (c *archiver) describe(report *member.Report, now time.Time) {
	if c.Want.Want == member.Stopped && c.Want.Archive != nil && !report.Patroni && !report.Postgres {
		report.Unarchived = c.unarchived()
	}
	report.Archived = c.watch.Archived()
	if report.Archived == nil && (!report.Ready || report.InRecovery) {
		report.Archived = c.watch.Last(now)
	}
	if c.host.engine == nil && c.Want.Archive != nil && report.Ready && !report.InRecovery && report.Problem == member.None {
		report.Problem, report.Detail = member.ArchiveFails, c.host.noEngine.Error()
	}
	if report.Archived == nil || c.Want.Archive == nil {
		return
	}
	a := report.Archived
	switch {
	case report.Problem != member.None:
	case a.Broken != "":
		report.Problem, report.Detail = member.ArchiveBroken, "WAL from "+a.Broken+" on"
	case a.Failing != "" && now.Sub(a.Since) >= failsLong:
		report.Problem, report.Detail = member.ArchiveFails, a.Failing
	}
}
