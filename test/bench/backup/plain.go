package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/testkit/rig"
)

// trust is the line by which a server lets its own user copy it without TLS, as a plain server does.
const trust = "local replication rdsadmin peer map=platform\n"

// baseBackup copies the database by PostgreSQL's own tool, to the disk on which all is, and returns how
// long it took.
func (s *site) baseBackup(ctx context.Context) (took time.Duration, err error) {
	m, err := s.primary(ctx)
	if err != nil {
		return 0, err
	}
	distrust, err := trusting(m)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, distrust()) }()
	to := filepath.Join(s.path, "basebackup")
	cmd, err := asMember(ctx, m, "pg_basebackup", "-D", to, "-c", "fast", "-X", "stream")
	if err != nil {
		return 0, err
	}
	if err := errors.Join(os.Mkdir(to, 0o700), os.Chown(to, int(cmd.SysProcAttr.Credential.Uid), int(cmd.SysProcAttr.Credential.Gid))); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(to)) }()
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("pg_basebackup: %w: %s", err, out)
	}
	return time.Since(began), nil
}

// trusting has a server let its own user copy it. distrust undoes that.
func trusting(m rig.Member) (distrust func() error, err error) {
	path := filepath.Join(m.DataDir(), "pg_hba.conf")
	before, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	write := func(text string) error {
		pid, err := postgres.Postmaster(m.DataDir())
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o600) // it keeps its owner
		}
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGHUP)
		}
		return err
	}
	distrust = func() error { return write(string(before)) }
	if err := write(trust + string(before)); err != nil {
		return nil, err
	}
	time.Sleep(500 * time.Millisecond) // the server reads it when it gets to it
	return distrust, nil
}

// copyFiles copies the files of the database but for its WAL, as cp does it, and returns how long it
// took until they were on the disk.
func (s *site) copyFiles(ctx context.Context) (took time.Duration, err error) {
	m, err := s.primary(ctx)
	if err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(m.DataDir())
	if err != nil {
		return 0, err
	}
	to := filepath.Join(s.path, "copy")
	if err := os.Mkdir(to, 0o700); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(to)) }()
	args := []string{"-a", "--reflink=never", "-t", to}
	for _, e := range entries {
		if e.Name() != "pg_wal" && e.Name() != "postmaster.pid" && !strings.HasPrefix(e.Name(), "howdah_") {
			args = append(args, filepath.Join(m.DataDir(), e.Name()))
		}
	}
	began := time.Now()
	if out, err := exec.CommandContext(ctx, "cp", args...).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("cp -a: %w: %s", err, out)
	}
	if err := run(ctx, "sync", "-f", to); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}
