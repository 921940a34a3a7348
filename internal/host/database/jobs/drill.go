package jobs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/postgres"
	"howdah/internal/engine/postgres/whole"
	"howdah/internal/host/database/archive"
	"howdah/internal/host/database/mark"
	"howdah/internal/host/job"
	"howdah/internal/host/proc"
	"howdah/internal/host/restore"
	"howdah/internal/host/tree"
	model "howdah/internal/model/backup"
	"howdah/internal/model/member"
)

const (
	// drillDir is in the directory of a drill.
	drillDir = "restored"
	// socketPrefix makes the name of a job one that no member has.
	socketPrefix = "drill-"
)

// The server of a drill listens on a socket of its own, so its port is no other server's.
const drillPort = 5432

// drill restores a backup, looks at all of it, and throws it away.
func (h *Host) drill(ctx context.Context, call job.Call) (any, error) {
	var args model.DrillJob
	if err := call.Decode(&args); err != nil {
		return nil, err
	}
	ctx, end, err := h.withRoom(ctx, args.Room)
	if err != nil {
		return nil, err
	}
	defer end()
	done := model.Drilled{Label: args.Label}
	s, leave, err := h.scratch(ctx, call, args)
	if err != nil {
		return nil, err
	}
	defer leave()
	// What is left of a drill is the user's own, and goes with the job at the latest.
	defer s.discard(ctx)
	s.request.Limit = func(p proc.Process) { done.Unlimited = h.hold(s.request.Group, s.bounds, p) }
	s.request.Finish = func(ctx context.Context, conn *pgx.Conn) error { return s.check(ctx, conn, &done) }
	result, err := restore.Restore(ctx, s.request)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case restore.Final(err):
		return h.unrestorable(ctx, args, done, err)
	case err != nil:
		return nil, err
	}
	done.Newest, done.EndLSN, done.Timeline = result.LastCommit, result.EndLSN, result.Timeline
	done.Bytes, done.Files, done.Replay = result.Bytes, result.Files, max(0, result.Replay-done.Check)
	return done, nil
}

// mostLabels is how many damaged backups are told of.
const mostLabels = 20

// unrestorable says what a drill found that could not restore the backup.
func (h *Host) unrestorable(ctx context.Context, args model.DrillJob, done model.Drilled, err error) (model.Drilled, error) {
	done.Unrestorable = err.Error()
	e, ok := errors.AsType[*restore.Error](err)
	if !ok {
		return done, nil
	}
	done.Backups = e.Backups[:min(len(e.Backups), mostLabels)]
	if done.LostWAL = e.Lost; e.Lost == "" {
		return done, nil
	}
	file, ok := mark.ParseSegment(e.Lost)
	if !ok {
		return done, nil
	}
	done.EndLSN, done.Timeline = file.Begin(), file.Timeline
	objects, err := h.opened(ctx, args.Repository)
	if err != nil {
		return done, err
	}
	var past mark.History
	for _, b := range e.Past {
		past = append(past, mark.Branch{Timeline: b.Timeline, Until: b.Until})
	}
	newest, err := mark.Before(ctx, objects, args.Database, past, file.Begin())
	if done.Reaches = e.Reaches; newest.At.After(e.Reaches) {
		done.Reaches = newest.At
	}
	return done, err
}

// scratch is a place on a host in which a backup is restored for a while.
type scratch struct {
	*run
	bounds  proc.Limits
	request restore.Request // without Finish, and with limits that nobody is told of
}

// scratch prepares a place for a backup, with an operating-system user and limits of its own. leave has
// to be called when the job is over. It may be called again for the same job.
func (h *Host) scratch(ctx context.Context, call job.Call, args model.DrillJob) (s *scratch, leave func(), err error) {
	install, err := postgres.Find(args.Major)
	if err != nil {
		return nil, nil, err
	}
	if args.Encrypted {
		// Also the engine's files: they have the passphrase.
		if err := h.Encrypt(call.Dir); err != nil {
			return nil, nil, fmt.Errorf("encrypt what is restored: %w", err)
		}
	}
	r, end, err := h.aside(ctx, call, archive.Part{Database: args.Database, Repository: args.Repository, ReadOnly: true})
	if err != nil {
		return nil, nil, err
	}
	group, err := call.Group("restore")
	var sockets string
	if err == nil {
		sockets, err = h.Sockets(socketPrefix+filepath.Base(call.Dir), r.user)
	}
	if err != nil {
		end()
		return nil, nil, fmt.Errorf("make a directory for a socket: %w", err)
	}
	bounds := boundsOf(args, totalMemory())
	if device, err := proc.DeviceOf(call.Dir); err == nil {
		bounds.Device = device
	} else {
		bounds.IOPS = 0
	}
	s = &scratch{run: r, bounds: bounds, request: restore.Request{
		Dir: filepath.Join(filepath.Dir(r.place.Dir), drillDir), User: r.user, Procs: h.Procs, Group: group, Install: install, Engine: h.Engine, Place: r.place,
		Source:    backup.Restore{Repository: args.Repository, Label: args.Label, Target: backup.Target{Newest: args.Newest}},
		SocketDir: sockets, Port: drillPort, Superuser: superuser, DBName: superuser, Settings: drillSettings(bounds.MemoryBytes), Log: h.Log,
		Limit:    func(p proc.Process) { h.hold(group, bounds, p) },
		Progress: func(p member.Restoring) { call.Progress(p.Done, p.Of, "bytes of "+p.Phase) },
	}}
	return s, func() {
		_ = tree.Remove(context.WithoutCancel(ctx), sockets) // it outlasts no reboot
		end()
	}, nil
}

// discard throws away what was restored.
func (s *scratch) discard(ctx context.Context) {
	left, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := restore.Discard(left, s.request.Group, s.user, s.request.Dir); err != nil {
		s.Log.Warn("throw away what was restored", "job", s.call.Name, "error", err)
	}
}

// superuser is the platform's role in each database, and its own database.
const superuser = "rdsadmin"

// drillSettings are for a server that is thrown away, and that may use so many bytes of memory: it
// need not outlive a loss of power.
func drillSettings(memory int64) map[string]string {
	buffers := min(max(memory/4, 16<<20), 1<<30) // what is looked at is read once or twice
	return map[string]string{"fsync": "off", "autovacuum": "off", "full_page_writes": "off", "shared_buffers": strconv.FormatInt(buffers>>10, 10) + "kB"}
}

// sessions is how many relations are looked at at a time.
const sessions = 2

// patience is how long a look at so many bytes may take before it stands still. Disks that are slow,
// and others' work, leave more than a twentieth of what a disk does.
func patience(bytes int64) time.Duration {
	return 10*time.Minute + time.Duration(bytes/(2<<20))*time.Second
}

// check looks at all of the restored databases.
func (r *run) check(ctx context.Context, conn *pgx.Conn, done *model.Drilled) error {
	began := time.Now()
	report, err := whole.Check(ctx, conn.Config(), whole.Options{Sessions: sessions, Patience: patience, Progress: func(seen whole.Seen) {
		r.call.Progress(seen.Bytes, seen.OfBytes, fmt.Sprintf("bytes in %d/%d relations", seen.Relations, seen.Of))
	}})
	if err != nil {
		return fmt.Errorf("check what was restored: %w", err)
	}
	done.Check = time.Since(began)
	done.Databases, done.Tables, done.Indexes, done.Faults, done.Damaged = report.Databases, report.Tables, report.Indexes, report.Faults, nil
	for _, f := range report.Described {
		done.Damaged = append(done.Damaged, f.String())
	}
	return nil
}
