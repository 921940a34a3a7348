package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"howdah/api/rds"
	model "howdah/internal/model/backup"
	"howdah/internal/model/operation"
	"howdah/internal/state"
	"howdah/internal/testkit/rig"
)

// site is a home of its own that a scenario measures.
type site struct {
	*bench
	*rig.Rig
	path string // of all that the scenario makes
}

const (
	source     = "bench" // the instance that is measured
	soon       = 3 * time.Minute
	eventually = 40 * time.Minute
)

// begin starts a home below a directory. end removes all of it. It keeps the logs if err is an error.
func (b *bench) begin(ctx context.Context, within string, repository bool) (s *site, end func(err error) error, err error) {
	path, err := os.MkdirTemp(within, "bench-backup-")
	if err == nil {
		err = os.Chmod(path, 0o755)
	}
	if err != nil {
		return nil, nil, err
	}
	binary, err := filepath.Abs(b.binary)
	if err != nil {
		return nil, nil, err
	}
	r, err := rig.Start(ctx, rig.Options{Binary: binary, Dir: path})
	if err != nil && ctx.Err() != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(path))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("start a home (logs are kept in %s): %w", path, err)
	}
	s = &site{bench: b, Rig: r, path: path}
	end = func(err error) error {
		err = errors.Join(err, r.Close())
		switch {
		case b.keep:
			fmt.Fprintf(os.Stderr, "   everything is kept in %s\n", path)
		case err == nil || ctx.Err() != nil:
			err = errors.Join(err, os.RemoveAll(path))
		default:
			logs, failed := s.keepLogs(context.WithoutCancel(ctx))
			err = fmt.Errorf("%w (logs are kept in %s)", errors.Join(err, failed, os.RemoveAll(path)), logs)
		}
		return err
	}
	if repository {
		err = s.addRepository(ctx)
	}
	if err != nil {
		return nil, nil, end(err)
	}
	return s, end, nil
}

// keepLogs moves the logs to where they stay.
func (s *site) keepLogs(ctx context.Context) (dir string, err error) {
	if dir, err = os.MkdirTemp(s.tmp, "bench-backup-logs-"); err != nil {
		return "", err
	}
	logs, err := filepath.Glob(filepath.Join(s.path, "*.log"))
	for _, log := range logs {
		err = errors.Join(err, run(ctx, "mv", log, dir))
	}
	return dir, err
}

func (s *site) repositoryDir() string { return filepath.Join(s.path, "repository") }

func (s *site) addRepository(ctx context.Context) error {
	if err := os.Mkdir(s.repositoryDir(), 0o700); err != nil {
		return err
	}
	return s.howdah(ctx, "repository", "add", "main", "--directory", s.repositoryDir(), "--default")
}

// howdah runs a command of ours.
func (s *site) howdah(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, s.Binary, append([]string{"--home", s.Home.Dir}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("howdah %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// create makes the instance that is measured, and waits until it is available.
func (s *site) create(ctx context.Context, change func(*rds.CreateDBInstanceMessage)) error {
	err := s.AskWith(ctx, source, func(in *rds.CreateDBInstanceMessage) {
		in.DBInstanceClass, in.AllocatedStorage = &s.class, new(int32(100))
		if change != nil {
			change(in)
		}
	})
	if err != nil {
		return err
	}
	return s.available(ctx, source)
}

func (s *site) available(ctx context.Context, name string) error {
	return until(ctx, eventually, func() error {
		i, err := s.Instance(ctx, name)
		if err == nil && *i.DBInstanceStatus != "available" {
			err = fmt.Errorf("%s is %s", name, *i.DBInstanceStatus)
		}
		return err
	})
}

// snapshot makes a snapshot, and returns how long it took to be available.
func (s *site) snapshot(ctx context.Context, name string) (time.Duration, error) {
	began := time.Now()
	in := &rds.CreateDBSnapshotMessage{DBInstanceIdentifier: new(source), DBSnapshotIdentifier: &name}
	if err := s.Call(ctx, "CreateDBSnapshot", in, &rds.CreateDBSnapshotResult{}); err != nil {
		return 0, err
	}
	err := until(ctx, eventually, func() error {
		var out rds.DBSnapshotMessage
		err := s.Call(ctx, "DescribeDBSnapshots", &rds.DescribeDBSnapshotsMessage{DBSnapshotIdentifier: &name}, &out)
		if err == nil && *out.DBSnapshots[0].Status != "available" {
			err = fmt.Errorf("the snapshot %s is %s", name, *out.DBSnapshots[0].Status)
		}
		return err
	})
	return time.Since(began), err
}

// made returns the backup that a snapshot stands for.
func (s *site) made(ctx context.Context, name string) (model.Backup, error) {
	id, err := s.Database(ctx, source)
	if err != nil {
		return model.Backup{}, err
	}
	shots, err := state.List[model.Snapshot](ctx, s.Store, state.SnapshotRoot)
	if err != nil {
		return model.Backup{}, err
	}
	all, err := state.List[model.Backup](ctx, s.Store, state.BackupPrefix(id))
	if err != nil {
		return model.Backup{}, err
	}
	for _, shot := range shots {
		for _, b := range all {
			if shot.Value.Name == name && b.Value.Label == shot.Value.Label {
				return b.Value, nil
			}
		}
	}
	return model.Backup{}, fmt.Errorf("no backup of the snapshot %s is known", name)
}

// forget deletes snapshots, and has the next one be a first one again: nothing is built upon backups
// that are damaged. Their files go once they are not needed.
func (s *site) forget(ctx context.Context, snapshots ...string) error {
	id, err := s.Database(ctx, source)
	if err != nil {
		return err
	}
	for _, name := range snapshots {
		in := &rds.DeleteDBSnapshotMessage{DBSnapshotIdentifier: &name}
		if err := s.Call(ctx, "DeleteDBSnapshot", in, &rds.DeleteDBSnapshotResult{}); err != nil {
			return err
		}
	}
	if err := until(ctx, soon, func() error { return s.idle(ctx) }); err != nil {
		return err
	}
	all, err := state.List[model.Backup](ctx, s.Store, state.BackupPrefix(id))
	var ops []state.Op
	for _, b := range all {
		b.Value.Damaged = "the benchmark wants a full backup"
		ops = append(ops, state.Swap(b.Key, b.Revision, b.Value))
	}
	if err == nil {
		_, err = s.Store.Commit(ctx, ops...)
	}
	return err
}

// idle returns nil if no operation is under way.
func (s *site) idle(ctx context.Context) error {
	all, err := state.List[operation.Record](ctx, s.Store, state.OperationRoot)
	for _, o := range all {
		if !o.Value.State.Ended() {
			return fmt.Errorf("the operation %s is under way", o.Value.ID)
		}
	}
	return err
}

// drop deletes an instance, and waits until its data are gone.
func (s *site) drop(ctx context.Context, name string) error {
	id, err := s.Database(ctx, name)
	if err != nil {
		return err
	}
	in := &rds.DeleteDBInstanceMessage{DBInstanceIdentifier: &name, SkipFinalSnapshot: new(true)}
	if err := s.Call(ctx, "DeleteDBInstance", in, &rds.DeleteDBInstanceResult{}); err != nil {
		return err
	}
	return until(ctx, soon, func() error {
		left, err := filepath.Glob(filepath.Join(s.Home.Dir, "hosts", "*", "members", id+".*"))
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%s is still there", left[0])
		}
		return err
	})
}

// engineTook says how much of the time of a snapshot its program took, in whole seconds.
func engineTook(b model.Backup, took time.Duration) string {
	return fmt.Sprintf("last: the engine took %.0f s of %.1f s", b.Stop.Sub(b.Start).Seconds(), took.Seconds())
}

// primary returns the primary of the instance that is measured.
func (s *site) primary(ctx context.Context) (rig.Member, error) {
	id, err := s.Database(ctx, source)
	if err != nil {
		return rig.Member{}, err
	}
	return s.Leader(ctx, id)
}

// asMember is a command that runs as a member's own user, whom its server trusts.
func asMember(ctx context.Context, m rig.Member, name string, args ...string) (*exec.Cmd, error) {
	info, err := os.Stat(m.DataDir())
	if err != nil {
		return nil, err
	}
	owner := info.Sys().(*syscall.Stat_t)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}, Pdeathsig: syscall.SIGKILL,
	}
	cmd.Dir = "/"
	cmd.Env = slices.Concat(os.Environ(), []string{"PGHOST=" + m.SocketDir(), fmt.Sprintf("PGPORT=%d", m.Port), "PGUSER=rdsadmin"})
	return cmd, nil
}

// settle has the server write out what it has changed, and the kernel what it holds back, so that the
// next thing to be measured does not pay for the one before.
func (s *site) settle(ctx context.Context) error {
	m, err := s.primary(ctx)
	if err != nil {
		return err
	}
	cmd, err := asMember(ctx, m, "psql", "-qXc", "CHECKPOINT", "rdsadmin")
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make a checkpoint: %w: %s", err, out)
	}
	return run(ctx, "sync", "-f", s.path)
}

func run(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
