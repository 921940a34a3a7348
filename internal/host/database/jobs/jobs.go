// Package jobs has what a host does of databases' backups for operations: it makes a backup of a
// member that runs here, and lists or removes what a database has in a repository, whoever runs the
// database. internal/model/backup has the arguments and results; package job has them done.
// And it restores backups on trial, and for whoever fetches them, and copies them into other
// repositories.
//
// Invariants: the engine never runs as root. A backup runs as the member's own user, and whatever
// else as a user that has nothing but the job's directory. A job that is begun again finds what was
// done: a backup has the id of its operation with it.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/host/database/archive"
	"howdah/internal/host/job"
	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
	model "howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/repository/store"
	"howdah/internal/system/owner"
)

// Host is what jobs need of their host. All fields are required.
type Host struct {
	Engine backup.Engine
	// Place returns the place of a member that runs here, with the engine's files in it, or
	// archive.ErrAwaited. User is whom the member runs as; nil is our own.
	Place func(member string) (backup.Place, error)
	User  func(member string) *owner.User
	// Own is the directory of a member with what it shows as a client, and with whom it trusts.
	Own func(member string) string
	// Port finds a port of this host's address that is free now.
	Port func(ctx context.Context) (address string, port int, err error)
	// Checkpoint has a member that runs here make a checkpoint, or a restartpoint if it is a standby.
	Checkpoint func(ctx context.Context, member string) error
	// Backed is told that a database has a backup that is newer than all before.
	Backed func(database string)
	// Admit lets a job into parts of repositories until Dismiss. CAFile is not set in what it
	// returns.
	Admit   func(ctx context.Context, holder string, parts ...archive.Part) ([]backup.Access, error)
	Dismiss func(holder string) error
	Store   func(repository string) (store.Store, error)
	// Give makes a directory that belongs to a user who has nothing else here; nil is our own.
	Give func(dir string) (*owner.User, error)
	// Encrypt has an empty directory of ours, and all that will lie in it, be encrypted with a key that
	// is on no disk. It empties a directory that is not.
	Encrypt func(dir string) error
	// CA returns the certificates, as PEM, that sign those of the host.
	CA func() []byte
	// Sockets makes a directory for a server's socket, with a short path, and gives it to a user. It
	// is removed by us.
	Sockets func(name string, user *owner.User) (string, error)
	// Room returns how large the disk is on which drills are, in bytes, and how much of it is free.
	Room func() (size, free int64, err error)
	// Offers has what control planes may fetch from here.
	Offers *Offers
	// at is called at the steps of a download, for tests; nil: it is not.
	at    func(step string) error
	Procs *proc.Host
	Log   *slog.Logger
}

// ownDir is the directory of a job's user, in that of the job.
const ownDir = "user"

// Kinds returns the kinds of jobs.
func (h *Host) Kinds() []job.Kind {
	return []job.Kind{
		{Name: model.JobBackup, Run: h.backUp, Adopts: true},
		{Name: model.JobServe, Run: h.serve, Adopts: true, Light: true},
		{Name: model.JobList, Run: h.list, Light: true},
		{Name: model.JobTidy, Run: h.tidy},
		{Name: model.JobDrill, Run: h.drill},
		{Name: model.JobCopy, Run: h.copy},
		// Others do not wait for somebody who fetches slowly.
		{Name: model.JobDownload, Run: h.download, Light: true},
	}
}

// Refuse returns the same kinds for a host that has no engine: they say why.
func Refuse(why error) []job.Kind {
	kinds := (&Host{}).Kinds()
	for n := range kinds {
		kinds[n].Run = func(context.Context, job.Call) (any, error) { return nil, why }
	}
	return kinds
}

// run is a job under way in a place.
type run struct {
	*Host
	call  job.Call
	place backup.Place
	user  *owner.User
	// copies says that the engine copies files.
	copies atomic.Bool
}

// aside prepares a place of the job's own for the part of a database in a repository. end has to be
// called when the job is over.
func (h *Host) aside(ctx context.Context, call job.Call, part archive.Part) (r *run, end func(), err error) {
	holder := "job/" + call.Name
	accesses, err := h.Admit(ctx, holder, part)
	if err != nil {
		return nil, nil, fmt.Errorf("open repository %s: %w", part.Repository, err)
	}
	// A key that stays opens one database's part to a user that is gone.
	end = func() { _ = h.Dismiss(holder) }
	defer func() {
		if err != nil {
			end()
		}
	}()
	dir := filepath.Join(call.Dir, ownDir)
	user, err := h.Give(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("make a directory for a job: %w", err)
	}
	ca := filepath.Join(dir, "ca.crt")
	if err := user.ReplaceFile(ca, h.CA(), 0o600); err != nil {
		return nil, nil, fmt.Errorf("write what the job verifies by: %w", err)
	}
	for n := range accesses {
		accesses[n].CAFile = ca
	}
	place := backup.Place{
		Database: part.Database, Dir: filepath.Join(dir, "engine"), DataDir: filepath.Join(dir, "no-data"), Repositories: accesses,
	}
	if err := user.MakeDir(place.Dir); err != nil {
		return nil, nil, fmt.Errorf("make a directory for a job: %w", err)
	}
	for _, file := range h.Engine.Files(place) {
		if err := user.ReplaceFile(file.Path, file.Data, file.Mode); err != nil {
			return nil, nil, fmt.Errorf("write %s: %w", filepath.Base(file.Path), err)
		}
	}
	return &run{Host: h, call: call, place: place, user: user}, end, nil
}

// program is a command of the engine as a program of the job.
func (r *run) program(name string, c backup.Command, line func(string)) job.Program {
	p := job.Program{Name: name, Line: line, Command: proc.Command{
		Path: c.Path, Args: c.Args, Yields: true,
		Env: append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"}, c.Env...),
	}}
	if r.user != nil {
		p.Command.User = &proc.User{UID: uint32(r.user.UID), GID: uint32(r.user.GID)}
	}
	return p
}

// mostOutput bounds what is kept of a command's output: a list has a few hundred bytes a backup.
const mostOutput = 32 << 20

// do runs a command to its end, and returns what it printed.
func (r *run) do(ctx context.Context, name string, c backup.Command) (out []byte, err error) {
	var text strings.Builder
	exit, err := r.call.Process(ctx, r.program(name, c, func(line string) {
		if text.Len()+len(line) < mostOutput {
			text.WriteString(line)
			text.WriteByte('\n')
		}
		r.tell(line)
	}))
	out = []byte(text.String())
	if err != nil {
		return out, err
	}
	return out, r.judge(out, exit)
}

// tell reports the progress that a line tells of.
func (r *run) tell(line string) {
	if p, ok := r.Engine.Progress(line); ok {
		r.copies.Store(true)
		r.call.Progress(p.Done, p.Of, operation.Parts+" of files")
	}
}

// judge says what an end means.
func (r *run) judge(out []byte, exit proc.Exit) error {
	code := exit.Code
	switch {
	case exit.Signal != 0:
		return fmt.Errorf("%s was killed (%s)", r.Engine.Name(), exit.Signal)
	case code == 0:
		return nil
	}
	failure := r.Engine.Failed(out, code)
	err := fmt.Errorf("%s", failure.Reason)
	switch {
	case failure.Final:
		return job.Final(err)
	case failure.Suspect:
		return fmt.Errorf("%w: %s", errSuspect, failure.Reason)
	}
	return err
}

// errSuspect says that a file of a backup may be damaged.
var errSuspect = errors.New("a backup in the repository may be damaged")

// listing returns what the place's database has in a repository.
func (r *run) listing(ctx context.Context, repository string) (backup.Listing, error) {
	out, err := r.do(ctx, "list", r.Engine.List(r.place, repository))
	if err != nil {
		return backup.Listing{}, fmt.Errorf("list the backups: %w", err)
	}
	return r.Engine.ParseList(out)
}

const (
	// placeWithin is how long a member may need to come to its place after its agent was started. A
	// backup that goes on meanwhile is not given up for that.
	placeWithin = 30 * time.Second
	placeAgain  = 200 * time.Millisecond
)

// memberPlace returns the place of a member as a run.
func (h *Host) memberPlace(ctx context.Context, call job.Call, id string) (*run, error) {
	place, err := h.Place(id)
	for until := time.Now().Add(placeWithin); errors.Is(err, archive.ErrAwaited) && time.Now().Before(until) && pace.Sleep(ctx, placeAgain); {
		place, err = h.Place(id)
	}
	if err != nil {
		return nil, fmt.Errorf("back %s up: %w", id, err)
	}
	return &run{Host: h, call: call, place: place, user: h.User(id)}, nil
}

// id is that of the member that a backup is made of.
func id(args model.BackupJob) string { return member.ID(args.Database, args.Member) }
