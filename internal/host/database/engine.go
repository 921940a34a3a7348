package database

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"

	"howdah/internal/engine/backup"
	"howdah/internal/system/owner"
)

// mostOutput is how much a program may print that is kept, in bytes: a list of backups is long.
const mostOutput = 64 << 20

var errOutput = errors.New("it printed too much")

// limited keeps what a program prints.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > mostOutput {
		return 0, errOutput
	}
	return l.Buffer.Write(p)
}

// runAs runs a short command of the engine as a member's user. err says that it could not be run to
// its end.
func runAs(ctx context.Context, user *owner.User, c backup.Command) (out []byte, exit int, err error) {
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Dir, cmd.Env = "/", append([]string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"}, c.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if user != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(user.UID), Gid: uint32(user.GID)}
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var printed limited
	cmd.Stdout, cmd.Stderr = &printed, &printed
	err = cmd.Run()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		return printed.Bytes(), failed.ExitCode(), nil
	}
	if err != nil {
		err = fmt.Errorf("run %s: %w", filepath.Base(c.Path), errors.Join(err, ctx.Err()))
	}
	return printed.Bytes(), 0, err
}

var errList = errors.New("list backups")

// listBackups asks a repository which backups it has of a place's database.
func (a *Host) listBackups(ctx context.Context, user *owner.User, place backup.Place, repository string) (backup.Listing, error) {
	out, exit, err := runAs(ctx, user, a.engine.List(place, repository))
	if err != nil {
		return backup.Listing{}, err
	}
	if exit != 0 {
		return backup.Listing{}, fmt.Errorf("%w: %s", errList, a.engine.Failed(out, exit).Reason)
	}
	return a.engine.ParseList(out)
}
